package plan

import (
	"fairlane/control"
	"fairlane/control/fair"
)

// maxCost bounds what a task can charge, whatever the queue says.
const maxCost = 10_000 * control.Milli

// cost is what a start of the head charges, in milli-units, inside the range that keys are exact for.
func (h *head) cost() int64 { return min(max(h.CostMilli, control.Milli), maxCost) }

// charge is the scaled cost of a start inside a lane: its fairness units, or one unit under WRR.
func (p *Planner) charge(l *lane, milli int64) int64 {
	if l.rule.wrr {
		milli = min(milli, control.Milli)
	}
	return l.ring.Cost(milli)
}

// limit is what a tenant may carry into a visit.
func (p *Planner) limit(m *party) int64 {
	return m.lane.ring.Cap(&m.Member, p.charge(m.lane, m.largest))
}

// laneLimit is what a lane may carry into a visit.
func (p *Planner) laneLimit(l *lane) int64 {
	return p.ring.Cap(&l.Member, p.ring.Cost(l.costs.max()))
}

// choice is the next start of a lane.
type choice struct {
	entry *entry // nil: there is none
	phase phase
}

// pick chooses the next start: every lane offers its own next, and the lanes' ring decides.
func (p *Planner) pick() *choice {
	var best, rest *lane
	var key fair.Key
	for _, l := range p.order {
		if !l.busy || !p.offers(l) {
			continue
		}
		if l.rule.weight == 0 {
			if rest == nil || p.zeroBefore(l, rest) {
				rest = l
			}
			continue
		}
		c := p.ring.Cost(l.offer.entry.head.cost())
		if p.ring.Continues(&l.Member, c) {
			return &l.offer
		}
		if k := p.ring.Key(&l.Member, c); best == nil || k.Less(key) {
			best, key = l, k
		}
	}
	switch {
	case best != nil:
		return &best.offer
	case rest != nil:
		return &rest.offer
	}
	return nil
}

// zeroBefore reports whether lane a comes before lane b in the round robin of lanes of weight 0.
func (p *Planner) zeroBefore(a, b *lane) bool {
	if pastA, pastB := a.Pos() <= p.zero, b.Pos() <= p.zero; pastA != pastB {
		return pastB
	}
	return a.Pos() < b.Pos()
}

// offers reports whether the lane has something to start, and brings its offer up to date. An offer
// stays the lane's next until something in the lane changes or it no longer fits.
func (p *Planner) offers(l *lane) bool {
	if !l.offered || l.offer.entry != nil && !p.hasRoom(l.offer.entry.stand) {
		l.offer = p.peek(l)
		l.offered = true
	}
	return l.offer.entry != nil
}

// streakLimit is the number of reserve starts after which one goes to the ring.
const streakLimit = 7

// peek finds the next start of a lane.
func (p *Planner) peek(l *lane) choice {
	r := p.nextInTurn(l, reserve)
	if r != nil && l.streak < streakLimit {
		return choice{r, reserve}
	}
	if e := p.nextByKey(l, share); e != nil {
		return choice{e, share}
	}
	if r != nil {
		return choice{r, reserve}
	}
	if e := p.nextByKey(l, over); e != nil {
		return choice{e, over}
	}
	return choice{p.nextInTurn(l, leftover), leftover}
}

// nextInTurn finds the first entry after the lane's cursor, going round, that may start.
func (p *Planner) nextInTurn(l *lane, ph phase) *entry {
	for {
		var best *stand
		place, bestPast := int64(0), false
		for _, s := range l.met {
			set := s.places(ph)
			if s.full || set.Len() == 0 {
				continue
			}
			n := set.Next(l.cursor)
			past := n <= l.cursor
			if best == nil || past == bestPast && n < place || !past && bestPast {
				best, place, bestPast = s, n, past
			}
		}
		if best == nil {
			return nil
		}
		if e := p.front(l, best, place); e != nil {
			return e
		}
	}
}

// nextByKey finds the entry whose turn it is by deficit: the open visit while it pays, then the
// smallest key.
func (p *Planner) nextByKey(l *lane, ph phase) *entry {
	if e := p.open(l, ph); e != nil {
		return e
	}
	for {
		var best *stand
		var key fair.Key
		for _, s := range l.met {
			dues := s.dues(ph)
			if s.full || dues.Len() == 0 {
				continue
			}
			if k, ok := dues.Min(l.ring); ok && (best == nil || k.Less(key)) {
				best, key = s, k
			}
		}
		if best == nil {
			return nil
		}
		if e := p.front(l, best, key.Pos); e != nil {
			return e
		}
	}
}

// front returns the entry at a place of a stand if it may start; if not, something has been moved out
// of the way and the search goes on.
func (p *Planner) front(l *lane, s *stand, place int64) *entry {
	if !p.hasRoom(s) {
		return nil
	}
	if e := l.places[place].entry(s); p.counts(e) {
		return e
	}
	return nil
}

// open returns what the tenant whose visit is open would start, if that is in the phase and paid for.
func (p *Planner) open(l *lane, ph phase) *entry {
	m := l.ring.Open()
	if m == nil {
		return nil
	}
	entries := l.places[m.Pos()].entries
	for i := range entries {
		if e := &entries[i]; p.hasRoom(e.stand) {
			if e.phase == ph && l.ring.Continues(m, e.due.Cost) {
				return e
			}
			p.watch(e.stand) // a later entry may go on with the visit once this one does not fit
			return nil
		}
	}
	return nil
}

// fits reports whether a start of the stand's need has units in an account and in a pool, and notes by how
// much. What is borrowed can stop to be lent at any start, so that it has no margin.
func (p *Planner) fits(s *stand) bool {
	account, _ := p.account(s)
	if account == "" {
		return false
	}
	o := s.fit(account == control.AccountBorrowed)
	if o == nil {
		return false
	}
	margin := int64(-1)
	switch account {
	case control.AccountOwn:
		margin = s.lane.own() - p.heldBefore(s)
	case control.AccountCommon:
		margin = p.rules.common - p.common
	}
	s.margin, s.sureAt = min(margin, o.freeFor(s.lane.rule.code, s.hold))-s.need.SlotUnits, p.taken
	return true
}
