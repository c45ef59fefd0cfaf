package plan

import (
	"slices"

	"fairlane/control"
	"fairlane/control/fair"
)

// phase is the rule by which a tenant may start, in order of rank.
type phase int

const (
	reserve  phase = iota // inside its reserve: round robin, uncharged
	share                 // inside its soft share: by deficit
	over                  // beyond it, up to its maximum: by deficit, when nobody is in share
	leftover              // weight 0: round robin on what nobody else wants, uncharged
	none                  // beyond its maximum: its head only stands in the way of later ones
)

// stand gathers the heads of one lane that fit all or none: they need the same, may run in the same
// pools and may borrow from the same lanes. So a full pool is found full once, not once per tenant.
//
// A tenant with heads of several stands has an entry in each; the entry counts only while no earlier
// entry of the tenant fits. That is looked at when the entry comes to the front, and an entry behind
// one that fits is laid aside at the stand of that one until that is full.
type stand struct {
	lane     *lane
	need     control.Need // without its P95, which says who lends
	class    int
	pools    []ranked
	widest   int64   // largest task that one of the pools could ever take
	lenders  []*lane // in policy order
	hold     *passed // the head whose units an earmark keeps; then it is alone here
	margin   int64   // more units than these must be taken before it can be full; below 0: not known
	sureAt   int64   // Planner.taken when that was found
	full     bool    // found without room; within a cycle room only shrinks
	reserve  fair.Places
	share    fair.Dues
	over     fair.Dues
	leftover fair.Places
	aside    []*entry // entries of other stands, behind entries of this one
	watched  bool     // in Planner.watched
	heads    int      // entries of tenants below their maximum
	waiting  []*entry // those of them without a ticket
	tickets  []*entry // those with one, by ticket
}

// entry is the first head of a stand among a tenant's heads.
type entry struct {
	party   *party
	head    *head
	stand   *stand
	due     fair.Due
	reserve bool   // inside the reserve; it may be in share as well
	phase   phase  // share, over, leftover or none
	behind  *stand // where it is laid aside; nil: it is in its own stand
	at      int    // place in behind.aside
	place   int    // in stand.waiting
	since   moment // when it came in
}

// enter puts the heads of a party into the stands of its lane, in the order in which they are tried
// and up to the first that is beyond the tenant's maximum.
func (p *Planner) enter(m *party) {
	if !m.live {
		return
	}
	l, r := m.lane, m.who.rule
	l.offered = false
	if cap(m.entries) < len(m.heads) {
		m.entries = make([]entry, 0, len(m.heads))
	}
	for i := range m.heads {
		h := &m.heads[i]
		slots := h.stand.need.SlotUnits
		beyond := m.who.used.Units+slots > r.MaxRunningUnits || m.who.used.Tasks >= r.MaxRunningTasks
		if beyond && h.First {
			break
		}
		s := p.at(h)
		if m.entry(s) != nil || !h.First && p.strict(m, h) {
			continue
		}
		e := entry{party: m, head: h, stand: s, phase: none, due: fair.Due{Member: &m.Member, Cost: p.charge(l, h.cost())}}
		if !beyond {
			e.reserve, e.phase = m.phases(slots)
		}
		m.entries = append(m.entries, e)
	}
	for i := range m.entries {
		p.list(&m.entries[i])
		m.entries[i].insert()
	}
}

// withdraw takes the heads of a party out of the stands.
func (p *Planner) withdraw(m *party) {
	for i := range m.entries {
		e := &m.entries[i]
		e.stand.lane.offered = false
		p.unlist(e)
		if s := e.behind; s != nil {
			last := len(s.aside) - 1
			s.aside[e.at] = s.aside[last]
			s.aside[e.at].at = e.at
			s.aside[last] = nil
			s.aside = s.aside[:last]
			continue
		}
		e.remove()
	}
	m.entries = m.entries[:0]
}

// entry returns the party's entry in a stand, or nil.
func (m *party) entry(s *stand) *entry {
	for i := range m.entries {
		if m.entries[i].stand == s {
			return &m.entries[i]
		}
	}
	return nil
}

// phases tells whether a start of that size lies inside the tenant's reserve, and its phase by deficit
// or as a leftover. The reserve holds in the tenant's home lane.
func (m *party) phases(slots int64) (inReserve bool, ph phase) {
	r := m.who.rule
	var reserved int64
	if r.Lane == m.code {
		reserved = r.ReservedUnits
	}
	within := min(reserved, r.MaxRunningUnits)
	units := m.used.Units + slots
	inReserve = units <= within
	switch {
	case m.Weight() == 0 && inReserve:
		return true, none
	case m.Weight() == 0:
		return false, leftover
	case units <= max(reserved+r.BurstUnits, within):
		return inReserve, share
	}
	return inReserve, over
}

// places are the places of a phase that goes round.
func (s *stand) places(ph phase) *fair.Places {
	if ph == leftover {
		return &s.leftover
	}
	return &s.reserve
}

// dues are the dues of a phase that pays.
func (s *stand) dues(ph phase) *fair.Dues {
	if ph == over {
		return &s.over
	}
	return &s.share
}

func (e *entry) insert() {
	s, pos := e.stand, e.party.Pos()
	if e.reserve {
		s.reserve.Add(pos)
	}
	switch e.phase {
	case share, over:
		s.dues(e.phase).Add(s.lane.ring, &e.due)
	case leftover:
		s.leftover.Add(pos)
	}
}

func (e *entry) remove() {
	s, pos := e.stand, e.party.Pos()
	if e.reserve {
		s.reserve.Del(pos)
	}
	switch e.phase {
	case share, over:
		s.dues(e.phase).Del(&e.due)
	case leftover:
		s.leftover.Del(pos)
	}
}

// hasRoom reports whether a start of the stand's need fits now; a stand found full stays so until the
// next cycle, and what was laid aside at it goes back to its own stands.
func (p *Planner) hasRoom(s *stand) bool {
	if s.full {
		return false
	}
	if p.taken-s.sureAt <= s.margin {
		return true // nobody can have taken so much since it was looked at
	}
	if p.fits(s) {
		return true
	}
	s.full, s.lane.offered = true, false
	s.lane.fulls = append(s.lane.fulls, s)
	for _, e := range s.aside {
		e.behind = nil
		e.insert()
	}
	clear(s.aside)
	s.aside = s.aside[:0]
	return false
}

// counts reports whether no earlier entry of the tenant fits; if one does, the entry is laid aside.
func (p *Planner) counts(e *entry) bool {
	for i := range e.party.entries {
		o := &e.party.entries[i]
		if o == e {
			return true
		}
		if p.hasRoom(o.stand) {
			e.remove()
			s := o.stand
			e.behind, e.at = s, len(s.aside)
			s.aside = append(s.aside, e)
			p.watch(s)
			return false
		}
	}
	return true
}

// watch has a stand looked at after every start: something is passed over while it has room.
func (p *Planner) watch(s *stand) {
	if !s.watched {
		s.watched = true
		p.watched = append(p.watched, s)
	}
}

// lookBehind finds watched stands that have become full, so that what is passed over counts again.
func (p *Planner) lookBehind() {
	p.watched = slices.DeleteFunc(p.watched, func(s *stand) bool {
		s.watched = p.hasRoom(s)
		return !s.watched
	})
}

// reopen forgets which stands are full: the counters have been read anew, or something was freed that
// was kept.
func (p *Planner) reopen() {
	p.freed = false
	for _, l := range p.order {
		l.offered, l.fulls = false, l.fulls[:0]
		for _, s := range l.met {
			s.full, s.margin = false, -1
		}
	}
	p.watched = slices.DeleteFunc(p.watched, func(s *stand) bool {
		s.watched = len(s.aside) > 0
		return !s.watched
	})
	p.lookBehind()
}
