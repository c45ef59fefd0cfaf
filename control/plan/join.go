package plan

import (
	"cmp"
	"slices"

	"fairlane/control/fair"
)

// enroll lets tenants that have got work join their ring, in order of their oldest head (of equal ones,
// of arrival), and those that have none left leave it.
func (p *Planner) enroll() {
	var fresh []*party
	for _, m := range p.moved {
		m.moved = false
		switch {
		case len(m.heads) > 0 && !m.In():
			fresh = append(fresh, m)
		case len(m.heads) == 0 && m.In():
			p.leave(m)
		}
		if m.backlog < 0 && m.Deficit() == 0 && m.unwritten() == 0 {
			p.forget(m)
		}
	}
	p.moved = p.moved[:0]
	slices.SortFunc(fresh, func(a, b *party) int { return older(a.oldest(), b.oldest()) })
	for _, m := range fresh {
		p.join(m)
	}
}

func (m *party) oldest() *head {
	o := &m.heads[0]
	for i := range m.heads {
		if older(&m.heads[i], o) < 0 {
			o = &m.heads[i]
		}
	}
	return o
}

// older orders heads by queued_since, then by arrival in the queue.
func older(a, b *head) int {
	if c := cmp.Compare(a.QueuedSince, b.QueuedSince); c != 0 {
		return c
	}
	return int(int32(a.Arrival - b.Arrival))
}

// forget drops the state of a tenant that has nothing waiting and no deficit to keep.
func (p *Planner) forget(m *party) {
	t := m.who
	t.parties = slices.DeleteFunc(t.parties, func(o *party) bool { return o == m })
	if len(t.parties) == 0 {
		delete(p.tenants, t.id)
	}
	p.ask(t)
}

func (p *Planner) join(m *party) {
	l := m.lane
	if w := m.weight(); w > l.ring.W() {
		p.raise(l, w)
	}
	if l.ring.Seq() > 2*int64(len(l.parties))+1024 {
		p.renumber(l)
	}
	l.ring.Join(&m.Member, m.weight())
	m.at = len(l.parties)
	l.parties = append(l.parties, m)
	for int64(len(l.places)) <= m.Pos() {
		l.places = append(l.places, nil)
	}
	l.places[m.Pos()] = m
	p.enliven(m)
	p.enter(m)
}

func (p *Planner) leave(m *party) {
	l := m.lane
	p.withdraw(m)
	last := len(l.parties) - 1
	l.parties[m.at] = l.parties[last]
	l.parties[m.at].at = m.at
	l.parties = l.parties[:last]
	l.places[m.Pos()] = nil
	l.ring.Leave(&m.Member)
	p.dropFraction(m)
	m.urgent = 0
	p.enliven(m)
}

// renumber gives the places of a ring anew, without the gaps that leaving has made.
func (p *Planner) renumber(l *lane) {
	var members []*fair.Member
	var kept []*party
	cursor := int64(0)
	for place, m := range l.places {
		if m == nil {
			continue
		}
		p.withdraw(m)
		members = append(members, &m.Member)
		kept = append(kept, m)
		if int64(place) <= l.cursor {
			cursor++
		}
	}
	l.ring.Arrange(members)
	l.cursor = cursor
	l.renumbered(l)
	l.places = append(l.places[:0], nil)
	l.places = append(l.places, kept...)
	for _, m := range kept {
		p.enter(m)
	}
}

// enliven notes whether a tenant has heads in its ring. It stays in the ring until the cycle is
// settled, since a refused claim may bring its task back.
func (p *Planner) enliven(m *party) {
	live := m.In() && len(m.heads) > 0
	if live {
		m.lane.costs.note(m, m.lane.live)
	}
	if live == m.live {
		return
	}
	m.live = live
	if live {
		m.lane.live++
	} else {
		m.lane.live--
	}
}

// mark notes whether a lane gets its rounds: it does while it has unparked heads and is not paused. It
// is looked at before the first start of a cycle and after each start.
func (p *Planner) mark(l *lane) {
	busy := l.live > 0 && !l.rule.paused
	switch {
	case busy && !l.busy:
		p.ring.Idle(&l.Member)
	case !busy && l.busy:
		p.ring.CatchUp(&l.Member, p.laneLimit(l))
	}
	l.busy = busy
}
