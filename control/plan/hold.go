package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"
)

// earmark keeps units for a head that was passed over too often: in one pool, in the cap groups of it
// that lack them, and in its lane's account unless it is larger than that. Limits never depend on it.
type earmark struct {
	pool   *pool // nil: it holds nothing
	groups []*pool
	lane   *lane // nil: nothing is kept in the account
	units  int64
	until  int64  // microseconds
	stand  *stand // of the head alone
}

// minEarmark is the shortest default time of an earmark.
const minEarmark = 1200 * time.Second

// at returns the stand of a head: its own one while units are kept for it.
func (p *Planner) at(h *head) *stand {
	e := h.passed
	if e == nil || e.pool == nil {
		return h.stand
	}
	if e.stand == nil {
		s := h.stand
		e.stand = &stand{lane: s.lane, need: s.need, class: s.class, pools: s.pools, widest: s.widest, lenders: s.lenders, hold: e}
		s.lane.met = append(s.lane.met, e.stand)
	}
	return e.stand
}

// strict reports whether later heads of a head's band and route must wait behind the first one, because
// that has been passed over often enough.
func (p *Planner) strict(m *party, h *head) bool {
	for i := range m.heads {
		o := &m.heads[i]
		if o.First && o.Band == h.Band && o.stand.need.Route == h.stand.need.Route {
			return o.passed != nil && o.passed.skips >= p.policy.rules.doc.Scheduling.MaxSkips
		}
	}
	return false
}

// queueTicket puts an entry among those of its stand that wait for an earmark.
func (p *Planner) queueTicket(e *entry) {
	s := e.stand
	i, _ := slices.BinarySearchFunc(s.tickets, e.head.passed.ticket, func(o *entry, t int64) int { return cmp.Compare(o.head.passed.ticket, t) })
	s.tickets = slices.Insert(s.tickets, i, e)
	if !slices.Contains(p.queues, s) {
		p.queues = append(p.queues, s)
	}
}

// grantHolds gives earmarks to heads with tickets that do not fit, in the order of their tickets. A
// ticket that cannot have its pool, or its lane's units, keeps later ones from them too.
func (p *Planner) grantHolds() {
	if len(p.queues) == 0 && len(p.holds) == 0 {
		return
	}
	p.queues = slices.DeleteFunc(p.queues, func(s *stand) bool { return len(s.tickets) == 0 })
	var next []*passed
	for _, s := range p.queues {
		if p.hasRoom(s) {
			continue
		}
		for _, e := range s.tickets {
			if p.blocked(e) {
				next = append(next, e.head.passed)
				break
			}
		}
	}
	next = append(next, p.holds...)
	slices.SortFunc(next, func(a, b *passed) int { return cmp.Compare(a.ticket, b.ticket) })
	p.looks++
	shut := map[*lane]bool{}
	for _, h := range next {
		if h.pool != nil {
			p.widen(h)
			continue
		}
		p.grant(h, shut)
	}
}

// grant gives a head its earmark, or shuts what it wants to later tickets.
func (p *Planner) grant(h *passed, shut map[*lane]bool) {
	e := h.party.waits(h.task)
	s := e.stand
	l, slots := s.lane, s.need.SlotUnits
	var best *pool
	for i := range s.pools {
		if c := &s.pools[i]; c.widest >= slots && !c.rule.paused && (best == nil || c.free() > best.free()) {
			best = c.pool
		}
	}
	if best == nil {
		return
	}
	wanted := append([]*pool{best}, best.lacking(l.rule.code, slots, nil)...)
	taken := slices.ContainsFunc(wanted, func(o *pool) bool { return o.hold != nil || o.closed == p.looks })
	inLane := slots <= l.rule.reserved
	full := inLane && (shut[l] || l.held+slots > l.rule.reserved)
	if taken || full {
		for _, o := range wanted {
			o.closed = p.looks
		}
		if full {
			shut[l] = true
		}
		return
	}
	m := h.party
	p.withdraw(m)
	timeout := time.Duration(p.policy.rules.doc.Scheduling.EarmarkTimeout) * time.Second
	if timeout == 0 {
		timeout = max(minEarmark, best.rule.longest)
	}
	h.earmark = earmark{pool: best, groups: wanted[1:], units: slots, until: p.micro + timeout.Microseconds()}
	for _, o := range wanted {
		o.hold = h
	}
	if inLane {
		h.lane = l
		l.held += slots
	}
	p.taken += slots
	p.holds = append(p.holds, h)
	slices.SortFunc(p.holds, func(a, b *passed) int { return cmp.Compare(a.ticket, b.ticket) })
	p.enter(m)
}

// widen keeps units in those cap groups too that have come to lack them since the earmark was given.
func (p *Planner) widen(h *passed) {
	for _, g := range h.pool.lacking(h.party.lane.rule.code, h.units, h) {
		if g.hold == nil && g.closed != p.looks {
			g.hold = h
			h.groups = append(h.groups, g)
			p.taken += h.units
		}
	}
}

// lacking lists the cap groups of a pool that have no room for a task of that size.
func (o *pool) lacking(lane string, slots int64, by *passed) (out []*pool) {
	for _, g := range o.groups {
		if g.roomFor(lane, by) < slots {
			out = append(out, g)
		}
	}
	return out
}

// waits returns the party's entry for a task, or nil.
func (m *party) waits(task uuid.UUID) *entry {
	for i := range m.entries {
		if m.entries[i].head.TaskID == task {
			return &m.entries[i]
		}
	}
	return nil
}

// release ends an earmark; the ticket stays.
func (p *Planner) release(h *passed) {
	if h.pool == nil {
		return
	}
	for _, o := range append([]*pool{h.pool}, h.groups...) {
		if o.hold == h {
			o.hold = nil
		}
	}
	if h.lane != nil {
		h.lane.held -= h.units
		h.lane.loosed = true
	}
	if s := h.stand; s != nil {
		s.lane.met = slices.DeleteFunc(s.lane.met, func(o *stand) bool { return o == s })
		s.lane.fulls = slices.DeleteFunc(s.lane.fulls, func(o *stand) bool { return o == s })
	}
	h.earmark, p.freed = earmark{}, true
	p.holds = slices.DeleteFunc(p.holds, func(o *passed) bool { return o == h })
}

// forgetPassed lets a head that has started or is gone begin anew.
func (p *Planner) forgetPassed(h *passed) {
	p.release(h)
	delete(p.passed, h.task)
}

// endHolds ends the earmarks whose time is over or whose room is gone, also by a publish that gives the
// pool to others, or leaves the lane less than is kept in it.
func (p *Planner) endHolds() {
	for _, h := range slices.Clone(p.holds) {
		l := h.party.lane
		gone := l == nil || l.rule.paused || h.pool.rule.paused || !h.mayRun() || h.pool.widest(l.rule.code) < h.units ||
			h.lane != nil && h.units > l.rule.reserved
		if gone || p.micro >= h.until {
			p.withdraw(h.party)
			p.release(h)
			h.skips, h.first, h.ticket = 0, 0, 0
			p.enter(h.party)
		}
	}
}

// mayRun reports whether the pool of an earmark is still one of its head's.
func (h *passed) mayRun() bool {
	i := slices.IndexFunc(h.party.heads, func(o head) bool { return o.TaskID == h.task })
	return i >= 0 && slices.ContainsFunc(h.party.heads[i].stand.pools, func(c ranked) bool { return c.pool == h.pool })
}

// waitTickets gives tickets to heads that were first passed over long enough ago.
func (p *Planner) waitTickets() {
	after := p.policy.rules.doc.Scheduling.EarmarkAfter * 1_000_000
	if after == 0 {
		return
	}
	var due []*passed
	for _, h := range p.passed {
		if h.ticket == 0 && h.first > 0 && p.micro-h.first >= after {
			due = append(due, h)
		}
	}
	p.giveTickets(due)
}
