package policy

import "github.com/google/uuid"

// index finds the document's objects by name; of duplicates it holds the first.
type index struct {
	doc       *Document
	lanes     map[string]*Lane
	groups    map[string]*PoolGroup
	plans     map[string]*Plan
	pools     map[string]*Pool
	models    map[string]*Model
	overrides map[uuid.UUID]*TenantOverride

	home     []*Model                  // enabled models that no rule routes away; filled by widestAtHome
	entitled map[*Plan]map[string]bool // filled by entitles
}

func newIndex(d *Document) *index {
	return &index{
		doc:       d,
		lanes:     keyed(d.Lanes, func(l *Lane) string { return l.Code }),
		groups:    keyed(d.PoolGroups, func(g *PoolGroup) string { return g.Code }),
		plans:     keyed(d.Plans, func(p *Plan) string { return p.Code }),
		pools:     keyed(d.Pools, func(p *Pool) string { return p.Key }),
		models:    keyed(d.Models, func(m *Model) string { return m.Code }),
		overrides: keyed(d.Tenants, func(t *TenantOverride) uuid.UUID { return t.TenantID }),
		entitled:  map[*Plan]map[string]bool{},
	}
}

// effective is Document.Effective without walking the lists.
func (x *index) effective(t Tenant) (TenantSettings, bool) {
	plan, ok := x.plans[t.PlanCode]
	if !ok {
		return TenantSettings{}, false
	}
	if o, found := x.overrides[t.ID]; found {
		return o.Over(plan.Settings), true
	}
	return plan.Settings, true
}

func keyed[T any, K comparable](list []T, key func(*T) K) map[K]*T {
	m := make(map[K]*T, len(list))
	for i := range list {
		k := key(&list[i])
		if _, taken := m[k]; !taken {
			m[k] = &list[i]
		}
	}
	return m
}

// Resolver answers Effective for many tenants of one document without walking its lists. It may be
// used by many goroutines at once.
type Resolver struct{ x *index }

// NewResolver indexes a document that nobody changes any more.
func NewResolver(d *Document) *Resolver { return &Resolver{newIndex(d)} }

// Effective returns what the document grants the tenant; false when its plan does not exist.
func (r *Resolver) Effective(t Tenant) (TenantSettings, bool) { return r.x.effective(t) }
