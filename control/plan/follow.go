package plan

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/fair"
)

// advance follows the queue to now and reads the backlogs that have changed.
func (p *Planner) advance(now time.Time) {
	p.now, p.micro = now, now.UnixMicro()
	p.wake = p.queue.Advance(now, func(backlog int, lane string, id uuid.UUID, empty bool) {
		m := p.party(backlog, lane, id)
		p.read(m)
		if empty {
			p.backlog[m.backlog] = nil
			m.backlog = -1
		}
	})
}

// party finds or makes the state of a backlog.
func (p *Planner) party(backlog int, code string, id uuid.UUID) *party {
	for len(p.backlog) <= backlog {
		p.backlog = append(p.backlog, nil)
	}
	if m := p.backlog[backlog]; m != nil && m.who.id == id && m.code == code {
		return m
	}
	t := p.tenants[id]
	if t == nil {
		t = &tenant{id: id, rule: p.policy.tenants[id]}
		p.tenants[id] = t
	}
	i := slices.IndexFunc(t.parties, func(m *party) bool { return m.code == code })
	if i < 0 {
		t.parties = append(t.parties, &party{code: code, lane: p.lanes[code], who: t, used: p.inLane[TenantLane{id, code}]})
		i = len(t.parties) - 1
	}
	m := t.parties[i]
	m.backlog = backlog
	p.backlog[backlog] = m
	p.ask(t)
	return m
}

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
		if m.backlog < 0 && m.Deficit() == 0 {
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

// read reads the heads of a party; users found at a cap are parked on the way.
func (p *Planner) read(m *party) {
	p.withdraw(m)
	m.heads = m.heads[:0]
	if m.backlog >= 0 && m.lane != nil && m.who.rule != nil && !m.who.rule.Suspended {
		for p.readOnce(m) {
		}
		p.sort(m)
	}
	m.largest = 0
	for i := range m.heads {
		m.largest = max(m.largest, m.heads[i].cost())
	}
	if !m.moved {
		m.moved = true
		p.moved = append(p.moved, m)
	}
	p.enliven(m)
	p.enter(m)
}

// readOnce reports whether it met a user at a cap, has parked it, and must be called again.
func (p *Planner) readOnce(m *party) (again bool) {
	m.heads = m.heads[:0]
	var full []*user
	p.queue.Heads(m.backlog, int(p.policy.rules.doc.Scheduling.FitScan),
		func(id int) bool { return p.neverFits(m, p.need(id)) },
		func(h control.Head) {
			n := p.need(h.Need)
			if m.who.rule.capped {
				if u := p.user(TenantUser{m.who.id, h.UserID}); u.full(m.who.rule, n.Kind) {
					full = append(full, u)
					return
				}
			}
			m.heads = append(m.heads, head{Head: h, need: n})
		})
	for _, u := range full {
		p.park(u)
	}
	return len(full) > 0
}

// neverFits reports whether no release could ever make room for the need: it is larger than every
// candidate pool, its tenant's maximum, or all that its lane could hold.
func (p *Planner) neverFits(m *party, n *need) bool {
	s := n.SlotUnits
	return s > n.widest || s > m.who.rule.MaxRunningUnits || s > max(m.lane.rule.reserved, p.rules.common)
}

// sort brings the heads of a party into the order in which they are tried.
func (p *Planner) sort(m *party) {
	next := int64(0)
	for i := range m.heads {
		at := p.age(m, &m.heads[i])
		if at > 0 && (next == 0 || at < next) {
			next = at
		}
	}
	if len(m.heads) < 2 {
		return
	}
	slices.SortFunc(m.heads, func(a, b head) int {
		if a.effective != b.effective {
			return cmp.Compare(a.effective, b.effective)
		}
		if a.QueuedSince != b.QueuedSince {
			return cmp.Compare(a.QueuedSince, b.QueuedSince)
		}
		return bytes.Compare(a.TaskID[:], b.TaskID[:])
	})
	if next > 0 {
		p.agings.add(m, next)
	}
}

// urgentRow is the number of P0 starts in a row after which another head goes first.
const urgentRow = 7

// age sets the effective band: P0 stays P0 (behind all others after urgentRow starts in a row), the
// others rise one band per step, to P1 at best. It returns when the band rises next; 0: never.
func (p *Planner) age(m *party, h *head) (next int64) {
	if h.Band == 0 {
		h.effective = 0
		if m.urgent >= urgentRow {
			h.effective = 5
		}
		return 0
	}
	s := p.policy.rules.doc.Scheduling
	step := s.AgingStepSeconds * 1_000_000
	steps := max(0, p.micro-h.QueuedSince) / step
	h.effective = max(1, int(h.Band)-int(min(steps, s.AgingCap)))
	if h.effective == 1 || steps >= s.AgingCap {
		return 0
	}
	return h.QueuedSince + (steps+1)*step
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
	l.places = append(l.places[:0], nil)
	l.places = append(l.places, kept...)
	l.stands, l.met = nil, nil
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
