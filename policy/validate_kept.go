package policy

import (
	"slices"

	"github.com/google/uuid"
)

// validateKept checks what pools keep for lanes and tenants. tenants nil: not known.
func validateKept(f *faults, x *index, tenants []Tenant) {
	known := keyed(tenants, func(t *Tenant) uuid.UUID { return t.ID })
	for i := range x.doc.Pools {
		p := &x.doc.Pools[i]
		path := poolPath(Printable(p.Key, 200))
		validateMinimums(f, x, path, p)
		place := path + ".dedicated_lanes"
		if n := len(p.DedicatedLanes); n > maxLanes {
			f.add(place, KeyTooMany, args{"count": int64(n), "max": int64(maxLanes)})
			continue
		}
		for j, lane := range p.DedicatedLanes {
			if _, ok := x.lanes[lane]; !ok {
				f.add(place, KeyUnknown, args{"value": Printable(lane, 80)})
			} else if slices.Contains(p.DedicatedLanes[:j], lane) {
				f.add(place, KeyDuplicate, args{"value": lane})
			}
		}
		place = path + ".dedicated_tenants"
		if n := len(p.DedicatedTenants); n > maxTenants {
			f.add(place, KeyTooMany, args{"count": int64(n), "max": int64(maxTenants)})
			continue
		}
		seen := make(map[uuid.UUID]bool, len(p.DedicatedTenants))
		for _, id := range p.DedicatedTenants {
			if _, ok := known[id]; !ok && tenants != nil {
				f.add(place, KeyUnknown, args{"value": id.String()})
			} else if seen[id] {
				f.add(place, KeyDuplicate, args{"value": id.String()})
			}
			seen[id] = true
		}
	}
}

func validateMinimums(f *faults, x *index, path string, p *Pool) {
	place := path + ".lane_minimums"
	if n := len(p.LaneMinimums); n > maxLanes {
		f.add(place, KeyTooMany, args{"count": int64(n), "max": int64(maxLanes)})
		return
	}
	var sum int64
	seen := map[string]bool{}
	for _, m := range p.LaneMinimums {
		if f.whole(place, m.Units, 1, MaxUnits, UnitSlots) {
			sum = addUp(sum, m.Units)
		}
		switch _, known := x.lanes[m.Lane]; {
		case !known:
			f.add(place, KeyUnknown, args{"value": Printable(m.Lane, 80)})
		case seen[m.Lane]:
			f.add(place, KeyDuplicate, args{"value": m.Lane})
		case !p.admitsLane(m.Lane):
			f.add(place, KeyMinimumNotTaken, args{"value": m.Lane})
		}
		seen[m.Lane] = true
	}
	if over := addUp(sum, -max(0, p.CapacityUnits)); over > 0 && sum > 0 {
		f.add(place, KeyMinimumsOverPool, args{"minimums": sum, "capacity": p.CapacityUnits, "over": over, "unit": string(UnitSlots)})
	}
}

// validateEarmarks holds that an earmark outlasts what runs in its pool: one that ends sooner has kept
// units from others for nothing.
func validateEarmarks(f *faults, d *Document) {
	timeout := d.Scheduling.EarmarkTimeout
	if timeout < 1 {
		return // 0 follows the pools; less is named by its range
	}
	slowest := d.largestP95s()
	var worst *Pool
	for i := range d.Pools {
		if p := &d.Pools[i]; slowest[p.Key] > float64(timeout) && (worst == nil || slowest[p.Key] > slowest[worst.Key]) {
			worst = p
		}
	}
	if worst != nil {
		f.add("scheduling.earmark_timeout_seconds", KeyEarmarkBelowP95, args{
			"value": timeout, "p95": slowest[worst.Key], "pool": Printable(worst.Key, 200), "unit": string(UnitSeconds),
		})
	}
}

// roomFor is what one task of the lane can have at most in a leaf: what the leaf and each cap group above
// it has beside what other lanes keep of it; 0 where a pool is dedicated to others.
func (x *index) roomFor(p *Pool, lane string) int64 {
	room := p.CapacityUnits
	for _, key := range append(x.capGroups(p.Key), p.Key) {
		g, ok := x.pools[key]
		if !ok {
			continue
		}
		if !g.admitsLane(lane) {
			return 0
		}
		room = min(room, addUp(g.CapacityUnits, -g.KeptFrom(lane)))
	}
	return room
}

// roomLeft is the largest room that the pools leave to one task of the lane, in the groups where it has an account.
func (x *index) roomLeft(l *Lane, pools []*Pool) (room int64) {
	for _, p := range pools {
		if slices.ContainsFunc(l.Accounts, func(a LaneAccount) bool { return a.PoolGroup == p.Group }) {
			room = max(room, x.roomFor(p, l.Code))
		}
	}
	return room
}

// validateDedicated holds that whoever may use a model finds a pool of it that takes them.
func validateDedicated(f *faults, x *index, tenants []Tenant) {
	for i := range x.doc.Models {
		m := &x.doc.Models[i]
		if !m.Enabled {
			continue
		}
		allowed, open, served := map[uuid.UUID]bool{}, false, false
		for j := range x.doc.Pools {
			p := &x.doc.Pools[j]
			if !p.takes(m) || x.room(p) < m.SlotUnits {
				continue
			}
			served = true
			if open = x.admitted(p, allowed); open {
				break
			}
		}
		if open || !served {
			continue
		}
		var out int64
		var first string
		for _, t := range tenants {
			if plan, ok := x.plans[t.PlanCode]; ok && x.entitles(plan, m.Code) && !allowed[t.ID] {
				if out++; out == 1 {
					first = t.Code
				}
			}
		}
		if out > 0 {
			f.add(modelPath(m.Code), KeyTenantsKeptOut, args{"tenants": out, "first": first})
		}
	}
}

// admitted adds the tenants that the pool and every cap group above it take; true when they take all.
func (x *index) admitted(p *Pool, to map[uuid.UUID]bool) (all bool) {
	lists := 0
	times := map[uuid.UUID]int{} // in how many of the lists so far
	for _, key := range append(x.capGroups(p.Key), p.Key) {
		g, ok := x.pools[key]
		if !ok || len(g.DedicatedTenants) == 0 {
			continue
		}
		for _, id := range g.DedicatedTenants {
			if times[id] == lists {
				times[id]++
			}
		}
		lists++
	}
	for id, n := range times {
		if n == lists {
			to[id] = true
		}
	}
	return lists == 0
}
