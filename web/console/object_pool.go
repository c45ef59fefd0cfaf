package console

import (
	"context"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

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
		return poolObject(ctx, doc, p), nil
	}
}

func poolObject(ctx context.Context, doc *policy.Document, p *policy.Pool) object {
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
	}
	o.fields = []field{
		{name: "capacity_units", label: "field.capacity_units", unit: policy.UnitSlots, value: decimal(p.CapacityUnits),
			set: func(v string) policy.Edit { return policy.SetPool(key, "capacity_units", v) }},
		{name: "paused", label: "field.paused", isSwitch: true, on: p.Paused,
			set: func(v string) policy.Edit { return policy.SetPool(key, "paused", v) }},
	}
	o.scope = access.Object{} // what many tenants run on is the whole platform's
	return o
}
