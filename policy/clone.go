package policy

import (
	"cmp"
	"slices"
)

// Clone returns a document that shares nothing with d. Lists that are absent become empty ones.
func (d *Document) Clone() *Document {
	c := *d
	c.Lanes = clones(d.Lanes, func(l *Lane) {
		l.Accounts = clones(l.Accounts, func(a *LaneAccount) { a.LendsTo = own(a.LendsTo) })
	})
	c.PoolGroups = own(d.PoolGroups)
	c.Plans = clones(d.Plans, func(p *Plan) { p.Models = own(p.Models) })
	c.Tenants = clones(d.Tenants, func(o *TenantOverride) {
		o.Lane = copied(o.Lane)
		for _, at := range overrides {
			p := at(o)
			*p = copied(*p)
		}
	})
	c.Pools = clones(d.Pools, func(p *Pool) {
		p.Parents = own(p.Parents)
		p.LaneMinimums = own(p.LaneMinimums)
		p.DedicatedLanes = own(p.DedicatedLanes)
		p.DedicatedTenants = own(p.DedicatedTenants)
	})
	c.Models = clones(d.Models, func(m *Model) {
		m.Resolutions = own(m.Resolutions)
		m.Seconds = own(m.Seconds)
	})
	c.Routing = own(d.Routing)
	return &c
}

// normal returns a clone without overrides that say nothing, and with everything whose order means
// nothing in a fixed order.
func (d *Document) normal() *Document {
	c := d.Clone()
	c.Tenants = slices.DeleteFunc(c.Tenants, func(o TenantOverride) bool { return o.blank() })
	slices.SortStableFunc(c.Tenants, func(a, b TenantOverride) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), slices.Compare(a.TenantID[:], b.TenantID[:]))
	})
	return c
}

func clones[T any](list []T, deepen func(*T)) []T {
	c := own(list)
	for i := range c {
		deepen(&c[i])
	}
	return c
}

func own[T any](list []T) []T { return append(make([]T, 0, len(list)), list...) }

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// blank reports whether the override says nothing.
func (o *TenantOverride) blank() bool {
	if o.Lane != nil {
		return false
	}
	for _, at := range overrides {
		if *at(o) != nil {
			return false
		}
	}
	return true
}
