package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/policy"
	"fairlane/policy/access"
	"fairlane/views"
	"fairlane/views/page"
)

// pool loads the pool that the address names.
func (s *Console) pool(c *gin.Context) loader {
	key := c.Param("pool")
	return func(ctx context.Context, doc *policy.Document) (object, error) {
		p, ok := doc.Pool(key)
		if !ok {
			return object{}, control.Errorf(control.CodeNotFound, "there is no such pool")
		}
		who, err := s.dedicatedTo(ctx, c, p)
		if err != nil {
			return object{}, err
		}
		return poolObject(ctx, doc, p, who), nil
	}
}

// dedicated is what is shown of the tenants of a pool, and the accounts by whose codes they are typed.
type dedicated struct {
	text    string
	tenants []policy.Tenant
}

// dedicatedTo reads the tenants where they are needed: to name those of the pool to whoever may read all
// tenants, and to understand a form.
func (s *Console) dedicatedTo(ctx context.Context, c *gin.Context, p *policy.Pool) (dedicated, error) {
	if len(p.DedicatedTenants) == 0 && c.Request.Method != http.MethodPost {
		return dedicated{}, nil
	}
	if !may(c, access.TenantRead, access.Object{}) {
		return dedicated{text: views.N(ctx, "count.tenants", int64(len(p.DedicatedTenants)))}, nil
	}
	tenants, err := s.cfg.Tenants.PlanList(ctx)
	if err != nil {
		return dedicated{}, err
	}
	codes := make(map[uuid.UUID]string, len(tenants))
	for _, t := range tenants {
		codes[t.ID] = t.Code
	}
	list := make([]string, len(p.DedicatedTenants))
	for i, id := range p.DedicatedTenants {
		list[i] = cmp.Or(codes[id], id.String())
	}
	return dedicated{strings.Join(list, ", "), tenants}, nil
}

func poolObject(ctx context.Context, doc *policy.Document, p *policy.Pool, who dedicated) object {
	key := p.Key
	o := object{
		kind: "object.pool", title: key, active: "pools", address: "/pools/" + url.PathEscape(key),
		facts:  []page.Fact{{Label: views.T(ctx, "field.kind"), Value: views.Word(ctx, "pool_kind", string(p.Kind))}},
		causes: map[string]string{"pool_groups[" + p.Group + "].reserved_units": "capacity_units"},
	}
	add := func(label views.Key, value string) {
		if value != "" {
			o.facts = append(o.facts, page.Fact{Label: views.T(ctx, label), Value: value})
		}
	}
	add("field.provider", p.Provider)
	add("field.account", p.Account)
	add("field.region", p.Region)
	add("field.model", p.Model)
	add("field.parents", strings.Join(p.Parents, ", "))
	if p.Group != "" {
		add("field.group", views.T(ctx, "pool.group_value", "Group", p.Group, "Reserved", doc.GroupReserved(p.Group), "Capacity", doc.GroupCapacity(p.Group)))
	}
	for i := range doc.Models { // a pool that becomes too small for a model is mended here
		o.causes["models["+doc.Models[i].Code+"].slot_units"] = "capacity_units"
		o.causes["models["+doc.Models[i].Code+"]"] = "dedicated_tenants"
	}
	for i := range doc.Lanes { // and a lane that it leaves no room to
		o.causes["lanes["+doc.Lanes[i].Code+"].accounts"] = "lane_minimums"
	}
	o.fields = []field{
		{name: "capacity_units", label: "field.capacity_units", unit: policy.UnitSlots, value: decimal(p.CapacityUnits),
			set: func(v string) policy.Edit { return policy.SetPool(key, "capacity_units", v) }},
		{name: "paused", label: "field.paused", isSwitch: true, on: p.Paused,
			set: func(v string) policy.Edit { return policy.SetPool(key, "paused", v) }},
	}
	if p.Kind != policy.PoolCapGroup {
		o.fields = append(o.fields, field{name: "can_look_up", label: "field.can_look_up", isSwitch: true, on: p.CanLookUp,
			set: func(v string) policy.Edit { return policy.SetPool(key, "can_look_up", v) }})
	}
	minimums := make([]string, len(p.LaneMinimums))
	for i, m := range p.LaneMinimums {
		minimums[i] = m.Lane + " " + decimal(m.Units)
	}
	o.fields = append(o.fields,
		field{name: "lane_minimums", label: "field.lane_minimums", isText: true, guide: "hint.minimums", value: strings.Join(minimums, ", "),
			set: func(v string) policy.Edit { return policy.SetPool(key, "lane_minimums", v) }},
		field{name: "dedicated_lanes", label: "field.dedicated_lanes", isText: true, guide: "hint.dedicated", value: strings.Join(p.DedicatedLanes, ", "),
			set: func(v string) policy.Edit { return policy.SetPool(key, "dedicated_lanes", v) }},
		field{name: "dedicated_tenants", label: "field.dedicated_tenants", isText: true, guide: "hint.dedicated", value: who.text,
			set: func(v string) policy.Edit { return policy.SetDedicatedTenants(key, v, who.tenants) }})
	o.scope = access.Object{} // what many tenants run on is the whole platform's
	return o
}
