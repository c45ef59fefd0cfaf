package plan

import (
	"slices"

	"fairlane/control"
)

// standOf finds or makes the stand of a need for a tenant in a lane.
func (p *Planner) standOf(l *lane, t *tenant, id int) *stand {
	for len(l.needs) <= id {
		l.needs = append(l.needs, nil)
	}
	class := p.class(t)
	for _, s := range l.needs[id] {
		if s.class == class {
			return s
		}
	}
	s := p.resolve(l, t, p.queue.Need(id))
	s.class, s.need.P95 = class, 0
	if i := slices.IndexFunc(l.met, s.same); i >= 0 {
		s = l.met[i]
	} else {
		l.met = append(l.met, s)
		p.index(s)
	}
	l.needs[id] = append(l.needs[id], s)
	return s
}

// index notes a stand at the pools that could serve it and at their cap groups.
func (p *Planner) index(s *stand) {
	p.most = max(p.most, s.need.SlotUnits)
	for _, c := range s.pools {
		c.stands = append(c.stands, s)
		for _, g := range c.groups {
			if n := len(g.stands); n == 0 || g.stands[n-1] != s {
				g.stands = append(g.stands, s)
			}
		}
	}
}

// same reports whether tasks of two stands are interchangeable: everything that decides where and on
// whose units they run is the same. Needs of different lengths may be.
func (s *stand) same(o *stand) bool {
	return o.hold == nil && o.need == s.need && o.class == s.class && slices.Equal(o.lenders, s.lenders)
}

// resolve finds the candidate pools and the lenders of a need under the policy in force.
func (p *Planner) resolve(l *lane, t *tenant, what control.Need) *stand {
	s := &stand{lane: l, need: what}
	for _, c := range p.rules.byModel[what.Model] {
		if !c.pool.entry.Admits(l.rule.code, t.id) {
			continue
		}
		o := p.pools[c.pool.key]
		w := o.widest(l.rule.code)
		s.pools = append(s.pools, ranked{o, c.preference, w})
		s.widest = max(s.widest, w)
	}
	if l.rule.borrowLimit > 0 {
		for _, m := range l.rule.lenders {
			if o := p.lanes[m.code]; o != nil && what.P95.Bound() <= m.timeout {
				s.lenders = append(s.lenders, o)
			}
		}
	}
	return s
}

// class numbers tenants by the dedicated pools that are theirs.
func (p *Planner) class(t *tenant) int {
	if len(p.rules.private) == 0 {
		return 0
	}
	if t.class == 0 {
		var key []byte
		for _, r := range p.rules.private {
			if slices.Contains(r.entry.DedicatedTenants, t.id) {
				key = append(key, r.key...)
				key = append(key, 0)
			}
		}
		n, ok := p.classes[string(key)]
		if !ok {
			n = len(p.classes) + 1
			p.classes[string(key)] = n
		}
		t.class = n
	}
	return t.class
}

// fit returns the best candidate pool with room: by preference, then the largest share of free units,
// then key; nil when none has room. What is borrowed runs only where a job can be looked up.
func (s *stand) fit(borrowed bool) *pool {
	var best *pool
	var rank int64
	for i := range s.pools {
		c := &s.pools[i]
		if best != nil && c.preference > rank {
			break
		}
		if borrowed && !c.rule.entry.CanLookUp {
			continue
		}
		if c.freeFor(s.lane.rule.code, s.hold) >= s.need.SlotUnits && (best == nil || c.freer(best)) {
			best, rank = c.pool, c.preference
		}
	}
	return best
}

// couldHold is the largest task for which the lane could ever have units.
func (p *Planner) couldHold(s *stand) int64 {
	most := max(s.lane.rule.reserved, p.rules.common)
	for _, m := range s.lenders {
		most = max(most, min(s.lane.rule.borrowLimit, m.rule.lendable, m.rule.reserved-m.rule.headroom))
	}
	return most
}
