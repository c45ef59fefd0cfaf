package plan

import (
	"time"

	"fairlane/control"
)

// Plan is what a cycle decided.
type Plan struct {
	Starts []Start   // in order; all of them, or a prefix, may be claimed
	More   bool      // the batch was full: there may be more to start at once
	Wake   time.Time // when something changes by time alone; zero: only by an event
}

// Cycle plans at most batch starts on the counters of the snapshot. Every start must be answered with
// Confirm or Refuse before the next cycle; one that is not counts as refused.
func (p *Planner) Cycle(now time.Time, s Snapshot, batch int) Plan {
	p.Settle()
	p.advance(now)
	p.load(s)
	p.retry()
	for _, m := range p.backlog {
		if m != nil {
			p.read(m)
			p.settleIn(m)
		}
	}
	var out Plan
	for len(out.Starts) < batch {
		c, ok := p.pick()
		if !ok {
			break
		}
		out.Starts = append(out.Starts, p.start(c))
	}
	out.More = len(out.Starts) == batch
	out.Wake = p.wakeTime()
	return out
}

// phase is the rule by which a tenant may start, in order of rank.
type phase int

const (
	reserve  phase = iota // inside its reserve: round robin, uncharged
	share                 // inside its soft share: by deficit
	over                  // beyond it, up to its maximum: by deficit, when nobody is in share
	leftover              // weight 0: round robin on what nobody else wants, uncharged
)

// choice is the next start of a lane.
type choice struct {
	party *party
	head  *head
	phase phase
}

// pick chooses the next start: every lane offers its own next, and the lanes' ring decides.
func (p *Planner) pick() (choice, bool) {
	var best, rest choice
	var bestLane *lane
	for _, l := range p.order {
		if !l.busy {
			continue
		}
		c, ok := p.peek(l)
		if !ok {
			continue
		}
		if l.rule.weight == 0 {
			if rest.party == nil || p.zeroBefore(l, rest.party.lane) {
				rest = c
			}
			continue
		}
		if p.ring.Continues(&l.Member, p.ring.Cost(c.head.cost())) {
			return c, true
		}
		if bestLane == nil || p.laneKey(c).Less(p.laneKey(best)) {
			best, bestLane = c, l
		}
	}
	if bestLane != nil {
		return best, true
	}
	return rest, rest.party != nil
}

// start commits a choice: rings, cursors and counters move, and the task goes out of sight.
func (p *Planner) start(c choice) Start {
	m, h, l := c.party, c.head, c.party.lane
	k := &pick{party: m, ref: h.Ref, cost: h.cost(), charged: c.phase == share || c.phase == over, paid: l.rule.weight > 0}
	if k.paid {
		p.ring.Serve(&l.Member, p.ring.Cost(h.cost()), p.laneLimit(l))
	} else {
		p.zero = l.Pos()
	}
	switch c.phase {
	case reserve:
		l.cursor = m.Pos()
		l.streak++
	case share, over:
		l.ring.Serve(&m.Member, p.charge(l, h.cost()), p.limit(m))
		l.streak = 0
	case leftover:
		l.cursor = m.Pos()
		l.streak = 0
	}
	if h.Band == 0 {
		m.urgent++
	} else {
		m.urgent = 0
	}
	o := h.need.fit()
	k.Start = Start{
		TaskID: h.TaskID, TaskVersion: h.Version, TenantID: m.who.id, UserID: h.UserID, Kind: h.need.Kind,
		Lane: l.rule.code, Group: p.group, Pool: o.rule.key, CapGroups: o.rule.groups,
		Account: p.account(l, h.need.SlotUnits), SlotUnits: h.need.SlotUnits, CostMilli: h.CostMilli,
	}
	k.user = p.user(TenantUser{k.TenantID, k.UserID})
	p.count(k, o, 1)
	p.pending[h.TaskID] = k
	p.queue.Hide(h.Ref, h.TaskID, true)
	for _, o := range m.who.parties { // the user may be at a cap now, in every lane
		if o == m || k.user.full(m.who.rule, k.Kind) {
			p.read(o)
		}
	}
	return k.Start
}

// count moves the counters by a start, or back.
func (p *Planner) count(k *pick, o *pool, by int64) {
	units := by * k.SlotUnits
	o.take(units)
	switch k.Account {
	case control.AccountOwn:
		k.party.lane.use.Own += units
	case control.AccountCommon:
		k.party.lane.use.Common += units
		p.common += units
	}
	k.party.used.Tasks += by
	k.party.used.Units += units
	k.party.who.used.Tasks += by
	k.party.who.used.Units += units
	k.user.add(k.Kind, by)
}
