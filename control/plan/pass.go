package plan

import (
	"slices"

	"github.com/google/uuid"

	"fairlane/control/fair"
)

// A head is passed over when its turn came, it did not fit, and then somebody takes units that it wants.
// Its turn has come when
//
//   - the start of its own lane that was chosen comes after it: in a later phase, or in its phase after
//     its place, or in the same tenant after it (a head beyond its tenant's soft share has its place in
//     the ring when any start passes it, but only a start beyond the soft share comes after it; so has a
//     leftover in the round robin, and only a leftover comes after it);
//   - or, while it is the first of its lane that does not fit, another lane is served although the turn
//     of its lane would have come before.
//
// A turn counts once. The first kind is not noted when it happens, which would cost a visit to every
// head that waits, but read off where the lane's cursors stand against where they stood when the entry
// came in.

// passed is a head that was passed over, with its ticket and its earmark.
type passed struct {
	task   uuid.UUID
	party  *party
	skips  int64
	first  int64 // when it was first passed over, microseconds
	ticket int64 // 0: none yet
	earmark
}

// turns is where the turns of a lane stand.
type turns struct {
	past    [none]int64 // the last start in a later phase than this
	overAt  fair.Key    // the ring at the last start in phase over
	overSeq int64       // and its number
	robin   fair.Key    // laps of the cursor and its place
	leftAt  fair.Key    // the same at the last start in phase leftover
	leftSeq int64       // and its number
}

// moment is where a lane's turns stood.
type moment struct {
	seq   int64
	ring  fair.Key
	robin fair.Key
}

func (p *Planner) moment(l *lane) moment { return moment{p.seq, l.ring.Now(), l.robin} }

// rank is the phase in which the entry's turn comes.
func (e *entry) rank() phase {
	if e.reserve {
		return reserve
	}
	return e.phase
}

// list counts an entry among those of its stand.
func (p *Planner) list(e *entry) {
	if e.rank() == none {
		return
	}
	s := e.stand
	s.heads++
	e.since = p.moment(s.lane)
	if h := e.head.passed; h != nil && h.ticket > 0 {
		if s.hold == nil {
			p.queueTicket(e)
		}
		return
	}
	e.place = len(s.waiting)
	s.waiting = append(s.waiting, e)
}

// unlist takes it out; that its turn has come is kept with the head.
func (p *Planner) unlist(e *entry) {
	if e.rank() == none {
		return
	}
	e.head.marked = e.marked()
	switch l := e.stand.lane; {
	case e.rank() == over && e.cameBy(l.ring.Now()), e.rank() == leftover && e.cameBy(l.robin):
		e.head.turned = true
	}
	s := e.stand
	s.heads--
	if h := e.head.passed; h != nil && h.ticket > 0 {
		s.tickets = slices.DeleteFunc(s.tickets, func(o *entry) bool { return o == e })
		return
	}
	last := len(s.waiting) - 1
	s.waiting[e.place] = s.waiting[last]
	s.waiting[e.place].place = e.place
	s.waiting[last] = nil
	s.waiting = s.waiting[:last]
}

// marked reports whether the entry's turn has come since it came in or was last counted.
func (e *entry) marked() bool {
	if e.head.marked {
		return true
	}
	t, r := &e.stand.lane.turns, e.rank()
	if t.past[r] > e.since.seq {
		return true
	}
	switch r {
	case share:
		return e.cameBy(e.stand.lane.ring.Now())
	case over:
		return e.head.turned && t.overSeq > e.since.seq || e.cameBy(t.overAt)
	case leftover:
		return e.head.turned && t.leftSeq > e.since.seq || e.cameBy(t.leftAt)
	}
	return e.cameBy(t.robin)
}

// cameBy reports whether the entry's place in its lane's ring, or in the round robin, has been reached at
// the given key of it, since the entry came in or was last counted.
func (e *entry) cameBy(at fair.Key) bool {
	if r := e.rank(); r == share || r == over {
		return !at.Less(e.stand.lane.ring.Next(&e.party.Member, e.due.Cost, e.since.ring))
	}
	next := fair.Key{Round: e.since.robin.Round, Pos: e.party.Pos()}
	if next.Pos <= e.since.robin.Pos {
		next.Round++
	}
	return !at.Less(next)
}

// cameWith reports whether the turn of a head that does not fit has come with the start of a later head
// of the same tenant, before the rings move.
func (e *entry) cameWith(o *entry, ph phase) bool {
	r := e.rank()
	if r != ph || ph == reserve || ph == leftover {
		return r <= ph
	}
	ring, m := e.stand.lane.ring, &e.party.Member
	if ring.Continues(m, o.due.Cost) {
		return ring.Continues(m, e.due.Cost)
	}
	return !ring.Key(m, o.due.Cost).Less(ring.Key(m, e.due.Cost))
}

// turned notes a start of the lane, after its ring has moved.
func (p *Planner) turned(l *lane, m *party, ph phase) {
	p.seq++
	for r := range ph {
		l.past[r] = p.seq
	}
	switch ph {
	case over:
		l.overAt, l.overSeq = l.ring.Now(), p.seq
	case reserve, leftover:
		if m.Pos() <= l.robin.Pos {
			l.robin.Round++
		}
		l.robin.Pos = m.Pos()
		if ph == leftover {
			l.leftAt, l.leftSeq = l.robin, p.seq
		}
	}
}

// renumbered follows a lane whose places were given anew, while no entry is in.
func (t *turns) renumbered(l *lane) {
	t.robin.Pos = l.cursor
	t.overAt, t.leftAt = l.ring.Now(), t.robin
}

// markLanes marks the first head of every other lane that does not fit, if that lane's turn for it
// would have come before the start of lane l.
func (p *Planner) markLanes(l *lane, cost int64) {
	at := fair.Key{}
	if l.rule.weight > 0 {
		if at = p.ring.Now(); !p.ring.Continues(&l.Member, cost) {
			at = p.ring.Key(&l.Member, cost)
		}
	}
	for _, m := range p.order {
		if m == l || !m.busy || m.rule.weight == 0 {
			continue
		}
		e := p.firstBlocked(m)
		if e == nil || !e.head.First {
			continue
		}
		c := p.ring.Cost(e.head.cost())
		if l.rule.weight == 0 || p.ring.Continues(&m.Member, c) || p.ring.Key(&m.Member, c).Less(at) {
			e.head.marked = true
		}
	}
}

// firstBlocked returns the first entry of a lane, in the order of turns, that does not fit and comes
// before what the lane would start; nil when there is none.
func (p *Planner) firstBlocked(l *lane) *entry {
	var best *entry
	var rank phase
	var key fair.Key
	if p.offers(l) && l.streak >= streakLimit && l.offer.phase > reserve {
		for _, s := range l.met { // what the reserve would start was not all looked at
			if s.reserve.Len() > 0 {
				p.hasRoom(s)
			}
		}
	}
	for _, s := range l.fulls {
		if s.heads == 0 {
			continue
		}
		for {
			e, r, k := s.front()
			if e != nil && !p.counts(e) {
				continue // it was laid aside
			}
			if e != nil && (best == nil || r < rank || r == rank && (k.Less(key) || k == key && e.before(best))) {
				best, rank, key = e, r, k
			}
			break
		}
	}
	if e := p.openBlocked(l); e != nil && (best == nil || e.rank() <= rank) {
		best, rank, key = e, e.rank(), l.ring.Now()
	}
	if best != nil && p.offers(l) {
		o := l.offer.entry
		if r := l.offer.phase; r < rank || r == rank && l.keyOf(o, r).Less(key) {
			return nil
		}
	}
	return best
}

// openBlocked returns, of the tenant whose visit is open, the first head of the earliest phase that the
// visit would pay for, but that does not fit.
func (p *Planner) openBlocked(l *lane) (first *entry) {
	m := l.ring.Open()
	if m == nil {
		return nil
	}
	entries := l.places[m.Pos()].entries
	for i := range entries {
		e := &entries[i]
		if p.hasRoom(e.stand) {
			break
		}
		r := e.rank()
		if (r == share || r == over) && (first == nil || r < first.rank()) && l.ring.Continues(m, e.due.Cost) {
			first = e
		}
	}
	return first
}

// before reports whether an entry comes before another one of its tenant.
func (e *entry) before(o *entry) bool {
	for i := range e.party.entries {
		switch &e.party.entries[i] {
		case e:
			return true
		case o:
			return false
		}
	}
	return false
}

// front returns the stand's entry whose turn is the first.
func (s *stand) front() (*entry, phase, fair.Key) {
	l := s.lane
	for _, r := range [...]phase{reserve, share, over, leftover} {
		switch r {
		case reserve, leftover:
			if place := s.places(r).Next(l.cursor); place >= 0 {
				return l.places[place].entry(s), r, l.robinKey(place)
			}
		case share, over:
			if k, ok := s.dues(r).Min(l.ring); ok {
				return l.places[k.Pos].entry(s), r, k
			}
		}
	}
	return nil, none, fair.Key{}
}

// robinKey orders places after the lane's cursor, going round.
func (l *lane) robinKey(place int64) fair.Key {
	if place <= l.cursor {
		return fair.Key{Round: 1, Pos: place}
	}
	return fair.Key{Pos: place}
}

// keyOf is when the lane's offer has its turn, in the order of its phase.
func (l *lane) keyOf(e *entry, ph phase) fair.Key {
	if ph == reserve || ph == leftover {
		return l.robinKey(e.party.Pos())
	}
	if l.ring.Continues(&e.party.Member, e.due.Cost) {
		return l.ring.Now()
	}
	return l.ring.Key(&e.party.Member, e.due.Cost)
}
