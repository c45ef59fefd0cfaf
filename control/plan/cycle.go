package plan

import (
	"time"

	"fairlane/control"
)

// Plan is what a cycle decided.
type Plan struct {
	Starts []Start   // in order; all of them, or a prefix, may be claimed
	More   bool      // there may be more to start at once: the batch was full, or loans are to be relabelled first
	Wake   time.Time // when something changes by time alone; zero: only by an event

	// What the claim writes beside the starts, also when there are none.
	Relabels []Loan    // these become OWN, before the starts
	Lending  []Lending // lanes that stop to lend, or start again
	Repaid   []Repaid  // debts paid in visits
}

// Cycle plans at most batch starts on the counters of the snapshot. Every start must be answered with
// Confirm or Refuse before the next cycle; one that is not counts as refused. Its work grows with the
// starts, and with the tenants whose queue or counters have changed.
func (p *Planner) Cycle(now time.Time, s Snapshot, batch int) Plan {
	p.Settle()
	p.load(s)
	p.retry()
	p.advance(now)
	for m := p.agings.due(p.micro); m != nil; m = p.agings.due(p.micro) {
		p.withdraw(m)
		p.sort(m)
		p.enter(m)
	}
	p.inLane, p.debts = nil, nil
	p.enroll()
	for _, l := range p.order {
		p.mark(l)
	}
	p.rebase()
	p.endHolds()
	p.waitTickets()
	p.relabel(p.loans)
	p.reopen()
	out := Plan{Starts: make([]Start, 0, min(batch, p.last+p.last/4+16))}
	for len(out.Starts) < batch {
		if out.More = p.mustRelabel(); out.More {
			break
		}
		p.lookLending()
		if p.freed {
			p.reopen()
		}
		p.grantHolds()
		p.lookBehind()
		c := p.pick()
		if c == nil {
			break
		}
		out.Starts = append(out.Starts, p.start(*c))
	}
	p.last = len(out.Starts)
	out.More = out.More || p.last == batch
	out.Relabels, out.Lending, out.Repaid = p.relabels, p.lendingMoved(), p.repaid()
	out.Wake = p.wakeTime()
	return out
}

// start commits a choice: rings, cursors and counters move, and the task goes out of sight.
func (p *Planner) start(c choice) Start {
	m, h, s := c.entry.party, c.entry.head, c.entry.stand
	l := s.lane
	k := pick{
		party: m, ref: h.Ref, stand: s, cost: h.cost(), charged: c.phase == share || c.phase == over, paid: l.rule.weight > 0,
	}
	account, from := p.account(s)
	o := s.fit(account == control.AccountBorrowed)
	k.Start = Start{
		TaskID: h.TaskID, TaskVersion: h.Version, TenantID: m.who.id, UserID: h.UserID, Kind: s.need.Kind,
		Lane: l.rule.code, Group: p.group, Pool: o.rule.key, CapGroups: o.rule.groups,
		Account: account, SlotUnits: s.need.SlotUnits, CostMilli: h.CostMilli, Free: !k.charged,
	}
	if from != nil {
		k.Lender, k.from, from.lent = from.rule.code, from, true
	}
	if m.who.rule.capped {
		k.user = p.user(TenantUser{k.TenantID, k.UserID})
	}
	var ahead []entry // of the same tenant: none of them fits
	p.markLanes(l, p.ring.Cost(k.cost))
	for i := range m.entries {
		e := &m.entries[i]
		if e == c.entry {
			break
		}
		if e.cameWith(c.entry, c.phase) {
			e.head.marked = true
		}
		ahead = append(ahead, *e)
	}
	p.withdraw(m)
	if k.paid {
		p.ring.Serve(&l.Member, p.ring.Cost(k.cost), p.laneLimit(l))
	} else {
		p.zero = l.Pos()
	}
	switch {
	case k.charged:
		l.ring.Serve(&m.Member, p.charge(l, k.cost), p.limit(m))
	default:
		l.cursor = m.Pos()
	}
	l.streak++
	if c.phase != reserve {
		l.streak = 0
	}
	m.urgent++
	if h.Band != 0 {
		m.urgent = 0
	}
	p.turned(l, m, c.phase)
	p.countPassed(&k, o, ahead)
	if h.passed != nil {
		p.forgetPassed(h.passed)
	}
	p.count(&k, o, 1)
	p.pending = append(p.pending, k)
	p.queue.Hide(k.ref, k.TaskID, true)
	p.again(&k)
	return k.Start
}

// again brings the tenant's heads up to date after a start: its own lane has a next head, its other
// lanes are nearer to its maximum, and its user may be at a cap in all of them.
func (p *Planner) again(k *pick) {
	for _, m := range k.party.who.parties {
		if m == k.party || k.user != nil && k.user.atCap(m.who.rule, k.Kind) {
			p.read(m)
		} else {
			p.withdraw(m)
			p.enter(m)
		}
		if m.lane != nil {
			p.mark(m.lane)
		}
	}
}

// count moves the counters by a start, or back.
func (p *Planner) count(k *pick, o *pool, by int64) {
	units := by * k.SlotUnits
	o.take(k.Lane, units)
	p.taken += max(0, units)
	switch k.Account {
	case control.AccountOwn:
		k.party.lane.use.Own += units
	case control.AccountCommon:
		k.party.lane.use.Common += units
		p.common += units
	case control.AccountBorrowed:
		k.party.lane.use.Borrowed += units
		k.from.use.Lent += units
	}
	t := k.party.who
	k.party.used.Tasks += by
	k.party.used.Units += units
	t.used.Tasks += by
	t.used.Units += units
	if k.user != nil {
		k.user.add(k.Kind, by)
	}
}

// rebase counts the rounds of rings anew before they grow out of range.
func (p *Planner) rebase() {
	if p.ring.Due() {
		by := p.ring.Rebase()
		for _, l := range p.order {
			l.Shift(by)
		}
	}
	for _, l := range p.order {
		if !l.ring.Due() {
			continue
		}
		for _, m := range l.parties {
			p.withdraw(m)
		}
		by := l.ring.Rebase()
		l.overAt = l.ring.Now()
		for _, m := range l.parties {
			m.Shift(by)
			p.enter(m)
		}
	}
}
