package plan

import (
	"slices"

	"fairlane/control"
	"fairlane/control/fair"
)

// Publish puts a policy in force. Deficits keep their worth: they are brought to the new scale; round,
// places, open visits, cursors and streaks stay. It must not be called between Cycle and Settle.
func (p *Planner) Publish(policy *Policy) {
	first := p.policy == nil
	for _, l := range p.order {
		for _, m := range l.parties {
			p.withdraw(m)
		}
		p.credit(l)
		p.dropStands(l)
		l.offered = false
	}
	p.classes = map[string]int{}
	p.policy = policy
	p.rules = policy.rules.groups[p.group]
	if p.rules == nil {
		p.rules = &groupRule{}
	}
	for _, t := range p.tenants {
		t.rule, t.class = policy.tenants[t.id], 0
		if slices.ContainsFunc(t.parties, func(m *party) bool { return m.owed != 0 }) {
			t.known = false // the version may have cut debts, also of tenants that run nothing
			p.ask(t)
		}
	}
	p.setPools()
	p.setLanes(first)
	var moved []*party
	for _, t := range p.tenants {
		for _, m := range t.parties {
			if l := p.lanes[m.code]; m.lane != l {
				m.lane, m.noted = l, 0
				moved = append(moved, m)
			}
		}
	}
	for _, l := range p.order {
		p.retune(l)
	}
	for _, m := range moved {
		p.settleDebt(m)
	}
	for id, u := range p.users {
		p.park(u)
		if r := policy.tenants[id.Tenant]; r == nil || !r.capped {
			p.forgetUser(u)
		}
	}
	for _, m := range p.backlog {
		if m != nil {
			p.read(m)
		}
	}
}

// settings of a ring.
func (p *Planner) settings() fair.Settings {
	s := p.policy.rules.doc.Scheduling
	return fair.Settings{
		BaseMilli: s.BaseQuantumUnits * control.Milli, BurstRounds: s.BurstRounds, CreditMilli: s.InitialBurstCredit * control.Milli,
		Repay: s.RepayPermille,
	}
}

// credit gives a lane and its tenants the rounds that have passed on the terms that end.
func (p *Planner) credit(l *lane) {
	if l.busy {
		p.ring.CatchUp(&l.Member, p.laneLimit(l))
	}
	p.creditTenants(l)
}

func (p *Planner) creditTenants(l *lane) {
	for _, m := range l.parties {
		l.ring.CatchUp(&m.Member, p.limit(m))
	}
}

// retune gives a lane's ring its scale and its tenants their weights.
func (p *Planner) retune(l *lane) {
	w := p.policy.top[l.rule.code]
	for _, m := range l.parties {
		w = max(w, m.weight())
	}
	p.rescale(l, w)
}

func (p *Planner) rescale(l *lane, w int64) {
	before := l.ring.Retune(p.settings(), w)
	for _, t := range p.tenants {
		for _, m := range t.parties {
			if m.lane == l {
				l.ring.Rescale(&m.Member, before, m.weight())
			}
		}
	}
}

// raise brings a lane to a larger scale: a tenant whose home is elsewhere, and heavier, has work in it.
func (p *Planner) raise(l *lane, w int64) {
	for _, m := range l.parties {
		p.withdraw(m)
	}
	p.creditTenants(l)
	p.rescale(l, w)
	for _, m := range l.parties {
		p.enter(m)
	}
}

// weight under the policy in force.
func (m *party) weight() int64 {
	if m.who.rule == nil {
		return 0
	}
	return m.who.rule.Weight
}

// setLanes follows the policy's list of lanes: lanes that stay keep their deficit and their tenants.
func (p *Planner) setLanes(first bool) {
	set := p.settings()
	if first {
		p.ring = fair.NewRing(set, p.rules.laneTop)
	}
	before := p.ring.Retune(set, p.rules.laneTop)
	was, gone := p.lanes, p.order
	p.lanes, p.order = map[string]*lane{}, nil
	members := make([]*fair.Member, 0, len(p.rules.lanes))
	for _, rule := range p.rules.lanes {
		l := was[rule.code]
		if l == nil {
			l = &lane{ring: fair.NewRing(set, p.policy.top[rule.code])}
		} else if l.rule.wrr != rule.wrr {
			l.rule = rule
			p.recharge(l)
		}
		l.rule = rule
		p.ring.Rescale(&l.Member, before, rule.weight)
		p.lanes[rule.code] = l
		p.order = append(p.order, l)
		members = append(members, &l.Member)
	}
	for _, l := range gone {
		if p.lanes[l.rule.code] == nil {
			p.dissolve(l)
		}
	}
	p.ring.Arrange(members)
	p.zero = min(p.zero, int64(len(p.order)))
}

// recharge forgets the deficits of a lane that changes the way in which it charges.
func (p *Planner) recharge(l *lane) {
	for _, t := range p.tenants {
		for _, m := range t.parties {
			if m.lane == l {
				l.ring.Reset(&m.Member)
				p.settleDebt(m)
			}
		}
	}
}

// dropStands forgets the stands of a lane; its heads are read anew.
func (p *Planner) dropStands(l *lane) {
	l.needs, l.met, l.fulls = nil, nil, nil
	for _, h := range p.holds {
		if h.party.lane == l {
			h.stand = nil
		}
	}
	p.queues = slices.DeleteFunc(p.queues, func(s *stand) bool { return s.lane == l })
}

// dissolve empties the ring of a lane that the policy no longer has; what waits there waits at GateLane.
func (p *Planner) dissolve(l *lane) {
	for len(l.parties) > 0 {
		m := l.parties[len(l.parties)-1]
		p.leave(m)
		l.ring.Reset(&m.Member)
	}
	p.ring.Drop(&l.Member)
}
