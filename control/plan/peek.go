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
		milli = control.Milli
	}
	return l.ring.Cost(milli)
}

// limit is what a tenant may carry into a visit.
func (p *Planner) limit(m *party) int64 {
	var largest int64
	for i := range m.heads {
		largest = max(largest, p.charge(m.lane, m.heads[i].cost()))
	}
	return m.lane.ring.Cap(&m.Member, largest)
}

// laneLimit is what a lane may carry into a visit.
func (p *Planner) laneLimit(l *lane) int64 {
	var largest int64
	for _, m := range l.parties {
		for i := range m.heads {
			largest = max(largest, p.ring.Cost(m.heads[i].cost()))
		}
	}
	return p.ring.Cap(&l.Member, largest)
}

func (p *Planner) laneKey(c choice) fair.Key {
	return p.ring.Key(&c.party.lane.Member, p.ring.Cost(c.head.cost()))
}

// zeroBefore reports whether lane a comes before lane b in the round robin of lanes of weight 0.
func (p *Planner) zeroBefore(a, b *lane) bool {
	n := int64(len(p.order)) + 1
	return (a.Pos()-p.zero+n-1)%n < (b.Pos()-p.zero+n-1)%n
}

// streakLimit is the number of reserve starts after which one goes to the ring.
const streakLimit = 7

// peek returns the next start of a lane and changes nothing.
func (p *Planner) peek(l *lane) (choice, bool) {
	var found [4]choice
	for _, m := range l.parties {
		h := p.candidate(m)
		if h == nil {
			continue
		}
		for ph := reserve; ph <= leftover; ph++ {
			if !m.in(ph, h) {
				continue
			}
			if c := (choice{m, h, ph}); found[ph].party == nil || p.earlier(l, c, found[ph]) {
				found[ph] = c
			}
		}
	}
	switch {
	case found[reserve].party != nil && (l.streak < streakLimit || found[share].party == nil):
		return found[reserve], true
	case found[share].party != nil:
		return found[share], true
	case found[over].party != nil:
		return found[over], true
	}
	return found[leftover], found[leftover].party != nil
}

// earlier orders two choices of one lane and phase.
func (p *Planner) earlier(l *lane, a, b choice) bool {
	if a.phase == reserve || a.phase == leftover {
		past, other := a.party.Pos() <= l.cursor, b.party.Pos() <= l.cursor
		if past != other {
			return other
		}
		return a.party.Pos() < b.party.Pos()
	}
	if ca, cb := p.charge(l, a.head.cost()), p.charge(l, b.head.cost()); l.ring.Continues(&a.party.Member, ca) {
		return true
	} else if l.ring.Continues(&b.party.Member, cb) {
		return false
	} else {
		return l.ring.Key(&a.party.Member, ca).Less(l.ring.Key(&b.party.Member, cb))
	}
}

// in reports whether a start of the head would fall in the phase.
func (m *party) in(ph phase, h *head) bool {
	r := m.who.rule
	var reserved int64
	if r.Lane == m.code {
		reserved = r.ReservedUnits
	}
	within := min(reserved, r.MaxRunningUnits)
	units := m.used.Units + h.need.SlotUnits
	switch ph {
	case reserve:
		return units <= within
	case share:
		return r.Weight > 0 && units <= max(reserved+r.BurstUnits, within)
	case over:
		return r.Weight > 0 && units > max(reserved+r.BurstUnits, within)
	}
	return r.Weight == 0 && units > within
}

// candidate returns the head that the tenant would start now; nil when it is blocked. It never looks
// at the deficit: a head that waits for deficit is not bypassed.
func (p *Planner) candidate(m *party) *head {
	r := m.who.rule
	for i := range m.heads {
		h := &m.heads[i]
		if !h.First && !p.fits(m.lane, h.need) {
			continue // a later task counts only where it fits
		}
		if m.who.used.Units+h.need.SlotUnits > r.MaxRunningUnits || m.who.used.Tasks >= r.MaxRunningTasks {
			return nil
		}
		if p.fits(m.lane, h.need) {
			return h
		}
	}
	return nil
}

func (p *Planner) fits(l *lane, n *need) bool {
	return p.account(l, n.SlotUnits) != "" && n.fit() != nil
}
