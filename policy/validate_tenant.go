package policy

import (
	"strconv"

	"github.com/google/uuid"
)

func validatePlans(f *faults, x *index) {
	paths := names(f, x.doc.Plans, func(p *Plan) string { return p.Code }, "plans", "code", codeMarks, 64)
	for i := range x.doc.Plans {
		p, path := &x.doc.Plans[i], paths[i]
		numbers(f, path+".settings", planNumbers, &p.Settings)
		refer(f, path+".settings.lane", p.Settings.Lane, x.lanes)
		seen := map[string]bool{}
		for _, m := range p.Models {
			place := path + ".models[" + Printable(m, 80) + "]"
			refer(f, place, m, x.models)
			if seen[m] {
				f.add(place, KeyDuplicate, args{"value": Printable(m, 80)})
			}
			seen[m] = true
		}
		share(f, path+".settings", &p.Settings, x.widestAtHome(p))
	}
}

// share holds that a tenant with a weight can ever start its largest task inside its share.
func share(f *faults, path string, s *TenantSettings, widest int64) {
	if sum := addUp(s.ReservedUnits, s.BurstUnits); s.Weight > 0 && sum < widest {
		f.add(path+".burst_units", KeyShareBelowTask, args{
			"reserved": s.ReservedUnits, "burst": s.BurstUnits, "largest_task": widest, "missing": addUp(widest, -sum), "unit": string(UnitSlots),
		})
	}
}

func validateTenants(f *faults, x *index, tenants []Tenant) {
	known := keyed(tenants, func(t *Tenant) uuid.UUID { return t.ID })
	widest := make(map[string]int64, len(x.plans))
	for code, p := range x.plans {
		widest[code] = x.widestAtHome(p)
	}
	seen := make(map[uuid.UUID]bool, len(x.doc.Tenants))
	for i := range x.doc.Tenants {
		o := &x.doc.Tenants[i]
		path := "tenants[" + strconv.Itoa(i) + "]"
		if f.code(path+".code", o.Code, 64, codeMarks) {
			path = tenantPath(o.Code)
		}
		if seen[o.TenantID] {
			f.add(path+".tenant_id", KeyDuplicate, args{"value": o.TenantID.String()})
		}
		seen[o.TenantID] = true
		validateOverride(f, x, path, o)
		if tenants == nil {
			continue
		}
		t, ok := known[o.TenantID]
		if !ok {
			f.add(path+".tenant_id", KeyUnknown, args{"value": o.TenantID.String()})
			continue
		}
		if t.Code != o.Code {
			f.add(path+".code", KeyCodeMismatch, args{"value": Printable(o.Code, 80), "expected": t.Code})
		}
		plan, ok := x.plans[t.PlanCode]
		if !ok || o.Weight == nil && o.ReservedUnits == nil && o.BurstUnits == nil {
			continue // what the plan breaks is named at the plan
		}
		s := o.Over(plan.Settings)
		share(f, path, &s, widest[t.PlanCode])
	}
	validateReserves(f, x, tenants, widest)
}

func validateOverride(f *faults, x *index, path string, o *TenantOverride) {
	if o.Lane != nil {
		refer(f, path+".lane", *o.Lane, x.lanes)
	}
	for _, n := range planNumbers {
		if at, ok := overrides[n.name]; ok {
			if v := *at(o); v != nil {
				f.whole(path+"."+n.name, *v, n.min, n.max, n.unit)
			}
		}
	}
}

// validateReserves holds that the reserves of a lane's tenants leave room for its largest task, and
// that every tenant's plan is there. Suspended tenants count: coming back is not a publish.
func validateReserves(f *faults, x *index, tenants []Tenant, widest map[string]int64) {
	type lane struct{ reserved, largest int64 }
	lanes := make(map[string]*lane, len(x.lanes))
	for code := range x.lanes {
		lanes[code] = &lane{}
	}
	for i := range x.doc.Models {
		m := &x.doc.Models[i]
		if l, ok := lanes[x.doc.routed(m.ResourceClass)]; ok && m.Enabled {
			l.largest = max(l.largest, m.SlotUnits)
		}
	}
	missing := map[string]int64{}
	first := map[string]string{}
	for _, t := range tenants {
		s, ok := x.effective(t)
		if !ok {
			if missing[t.PlanCode]++; missing[t.PlanCode] == 1 {
				first[t.PlanCode] = t.Code
			}
			continue
		}
		if l, ok := lanes[s.Lane]; ok {
			l.reserved = addUp(l.reserved, max(0, s.ReservedUnits))
			l.largest = max(l.largest, widest[t.PlanCode])
		}
	}
	for _, t := range tenants { // in their order, so that the answer is the same every time
		if n, ok := missing[t.PlanCode]; ok {
			f.add(planPath(t.PlanCode), KeyPlanInUse, args{"tenants": n, "first": first[t.PlanCode]})
			delete(missing, t.PlanCode)
		}
	}
	for i := range x.doc.Lanes {
		l := &x.doc.Lanes[i]
		sum := lanes[l.Code]
		if sum == nil || sum.reserved == 0 {
			continue
		}
		if over := addUp(addUp(sum.reserved, sum.largest), -l.reserved()); over > 0 {
			f.add(lanePath(l.Code)+".reserved_units", KeyReservesOverLane, args{
				"reserved": sum.reserved, "lane_reserved": l.reserved(), "largest_task": sum.largest, "over": over, "unit": string(UnitSlots),
			})
			sum.reserved = 0 // a lane that comes twice is named once
		}
	}
}
