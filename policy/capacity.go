package policy

import (
	"math"
	"slices"
)

// GroupCapacity returns the slot units that the lanes of a pool group share: the sum of the group's
// leaf pools, and at most the group's own cap where it has one. Paused pools count: pausing one is
// a matter of hours, what the lanes were promised is not.
func (d *Document) GroupCapacity(group string) int64 {
	var sum int64
	for i := range d.Pools {
		if p := &d.Pools[i]; p.Group == group && p.Kind != PoolCapGroup {
			sum = addUp(sum, p.CapacityUnits)
		}
	}
	if g, ok := find(d.PoolGroups, func(g *PoolGroup) bool { return g.Code == group }); ok && g.CapacityUnits > 0 {
		sum = min(sum, g.CapacityUnits)
	}
	return sum
}

// GroupReserved returns the slot units that all lanes together hold in a pool group.
func (d *Document) GroupReserved(group string) int64 {
	var sum int64
	for i := range d.Lanes {
		for _, a := range d.Lanes[i].Accounts {
			if a.PoolGroup == group {
				sum = addUp(sum, a.ReservedUnits)
			}
		}
	}
	return sum
}

// CapGroups returns every cap group that contains the pool, over any number of levels, sorted.
func (d *Document) CapGroups(key string) []string {
	x := index{pools: keyed(d.Pools, poolKey)} // the whole index would walk ten thousand tenants for each pool
	return x.capGroups(key)
}

// maxAbove bounds the cap groups that may contain one pool: a claim counts in each of them.
const maxAbove = 16

func (x *index) capGroups(key string) []string {
	var above []string
	p, ok := x.pools[key]
	if !ok {
		return above
	}
	for queue := slices.Clone(p.Parents); len(queue) > 0; {
		k := queue[0]
		queue = queue[1:]
		if slices.Contains(above, k) || k == key {
			continue
		}
		if above = append(above, k); len(above) > maxAbove {
			break // refused by the rules
		}
		if up, found := x.pools[k]; found {
			queue = append(queue, up.Parents...)
		}
	}
	slices.Sort(above)
	return above
}

// LargestDemands returns, by pool key, the slot units of the widest enabled task that may lie in the
// pool: a leaf's own models, a cap group's leaves; 1 where nothing is known.
func (d *Document) LargestDemands() map[string]int64 {
	x := newIndex(d)
	widest := make(map[string]int64, len(d.Pools))
	for i := range d.Pools {
		widest[d.Pools[i].Key] = 1
	}
	for i := range d.Pools {
		p := &d.Pools[i]
		if p.Kind == PoolCapGroup {
			continue
		}
		var most int64 = 1
		for j := range d.Models {
			if m := &d.Models[j]; m.Enabled && p.takes(m) {
				most = max(most, m.SlotUnits)
			}
		}
		widest[p.Key] = max(widest[p.Key], most)
		for _, g := range x.capGroups(p.Key) {
			widest[g] = max(widest[g], most)
		}
	}
	return widest
}

// takes reports whether tasks of the model may run in the pool as far as the document says.
func (p *Pool) takes(m *Model) bool { return p.Kind == PoolProvider && p.Model == m.Code }

// room is what one task can have at most in a leaf: its capacity and that of all cap groups above.
func (x *index) room(p *Pool) int64 {
	room := p.CapacityUnits
	for _, k := range x.capGroups(p.Key) {
		if g, ok := x.pools[k]; ok {
			room = min(room, g.CapacityUnits)
		}
	}
	return room
}

// routed returns the lane to which a rule sends unmarked tasks of the class; "" means the home lane.
func (d *Document) routed(class string) string {
	for i := range d.Routing {
		r := &d.Routing[i]
		if r.Mark == "" && (r.ResourceClass == "" || r.ResourceClass == class) {
			return r.Lane
		}
	}
	return ""
}

// entitles reports whether tenants of the plan may use the model.
func (x *index) entitles(p *Plan, model string) bool {
	if len(p.Models) == 0 {
		return true
	}
	set, ok := x.entitled[p]
	if !ok {
		set = make(map[string]bool, len(p.Models))
		for _, m := range p.Models {
			set[m] = true
		}
		x.entitled[p] = set
	}
	return set[model]
}

// widestAtHome is the largest enabled task, in slot units, that a tenant of the plan can have in its home lane.
func (x *index) widestAtHome(p *Plan) int64 {
	if x.home == nil {
		x.home = []*Model{}
		for i := range x.doc.Models {
			if m := &x.doc.Models[i]; m.Enabled && x.doc.routed(m.ResourceClass) == "" {
				x.home = append(x.home, m)
			}
		}
	}
	var most int64
	for _, m := range x.home {
		if x.entitles(p, m.Code) {
			most = max(most, m.SlotUnits)
		}
	}
	return most
}

// addUp adds without wrapping round: documents that are being checked may hold anything.
func addUp(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	if b < 0 && a < math.MinInt64-b {
		return math.MinInt64
	}
	return a + b
}
