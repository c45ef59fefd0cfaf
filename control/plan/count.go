package plan

import (
	"bytes"
	"cmp"
	"slices"

	"fairlane/control"
)

// countPassed counts every marked head that wants what a start is about to take, and gives tickets to
// those that have been passed over often enough.
func (p *Planner) countPassed(k *pick, o *pool, own []entry) {
	var due []*passed
	count := func(e *entry) {
		h := e.head.passed
		if !e.head.First || h != nil && h.ticket > 0 || !p.blocked(e) {
			return
		}
		e.head.marked, e.head.turned, e.since = false, false, p.moment(e.stand.lane)
		if h == nil {
			h = &passed{task: e.head.TaskID, party: e.party, first: p.micro}
			e.head.passed = h
			p.passed[h.task] = h
		}
		if h.first == 0 {
			h.first = p.micro
		}
		if h.skips++; h.skips >= p.policy.rules.doc.Scheduling.MaxSkips {
			due = append(due, h)
		}
	}
	p.concerned(k, o, func(s *stand) {
		if len(s.waiting) == 0 || !s.lane.busy || !p.wants(s, k, o) || p.hasRoom(s) {
			return
		}
		for _, e := range s.waiting {
			if e.marked() {
				count(e)
			}
		}
	})
	for i := range own {
		if own[i].head.marked && p.wants(own[i].stand, k, o) {
			count(&own[i])
		}
	}
	p.giveTickets(due)
}

// concerned names the stands whose heads may want what a start takes, some of them more than once: those
// of its pool; where a cap group may lack room for somebody, those of the group; where the lane may lack
// own units, those of the lane.
func (p *Planner) concerned(k *pick, o *pool, yield func(*stand)) {
	for _, s := range o.stands {
		yield(s)
	}
	for _, g := range o.groups {
		if g.rule.entry.LaneMinimums == nil && g.hold == nil && g.room() >= p.most {
			continue
		}
		for _, s := range g.stands {
			yield(s)
		}
	}
	if l := k.party.lane; k.Account == control.AccountOwn && l.own()-l.held < p.most {
		for _, s := range l.met {
			yield(s)
		}
	}
}

// blocked reports whether the entry's tenant has no earlier head that fits.
func (p *Planner) blocked(e *entry) bool {
	for i := range e.party.entries {
		o := &e.party.entries[i]
		if o == e {
			return true
		}
		if p.hasRoom(o.stand) {
			return false
		}
	}
	return true
}

// wants reports whether a start takes what the heads of a full stand want: one of their pools, units of
// a cap group that one of their pools lacks, or own units of their lane when that is what they lack.
func (p *Planner) wants(s *stand, k *pick, o *pool) bool {
	for i := range s.pools {
		c := &s.pools[i]
		if c.widest < s.need.SlotUnits {
			continue
		}
		if c.pool == o {
			return true
		}
		for _, g := range c.groups {
			if slices.Contains(o.groups, g) && g.roomFor(s.lane.rule.code, s.hold) < s.need.SlotUnits {
				return true
			}
		}
	}
	if k.Account != control.AccountOwn || k.party.lane != s.lane {
		return false
	}
	account, _ := p.account(s)
	return account == ""
}

// giveTickets hands tickets out to heads of one instant, in ring order.
func (p *Planner) giveTickets(due []*passed) {
	slices.SortFunc(due, func(a, b *passed) int {
		return cmp.Or(cmp.Compare(a.party.lane.Pos(), b.party.lane.Pos()), cmp.Compare(a.party.Pos(), b.party.Pos()), bytes.Compare(a.task[:], b.task[:]))
	})
	for _, h := range due {
		p.withdraw(h.party)
		p.tickets++
		h.ticket = p.tickets
		p.enter(h.party)
	}
}
