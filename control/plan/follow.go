package plan

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
)

// advance follows the queue to now: backlogs that changed are read again, tenants that have got work
// join their ring in order of their oldest task, those that have none left leave it.
func (p *Planner) advance(now time.Time) {
	p.now, p.micro = now, now.UnixMicro()
	var fresh []*party
	p.wake = p.queue.Advance(now, func(backlog int, lane string, id uuid.UUID, empty bool) {
		m := p.party(backlog, lane, id)
		p.read(m)
		if len(m.heads) > 0 && !m.In() && m.lane != nil {
			fresh = append(fresh, m)
		} else {
			p.settleIn(m)
		}
		if empty {
			p.forget(m)
		}
	})
	p.joinAll(fresh)
}

// joinAll lets tenants into their rings by their oldest head; of equal ones the first given is first.
func (p *Planner) joinAll(fresh []*party) {
	slices.SortStableFunc(fresh, func(a, b *party) int { return cmp.Compare(a.oldest(), b.oldest()) })
	for _, m := range fresh {
		p.settleIn(m)
	}
}

func (m *party) oldest() int64 {
	o := m.heads[0].QueuedSince
	for i := range m.heads {
		o = min(o, m.heads[i].QueuedSince)
	}
	return o
}

// party finds or makes the state of a backlog.
func (p *Planner) party(backlog int, code string, id uuid.UUID) *party {
	for len(p.backlog) <= backlog {
		p.backlog = append(p.backlog, nil)
	}
	if m := p.backlog[backlog]; m != nil && m.code == code && m.who.id == id {
		return m
	}
	t := p.tenants[id]
	if t == nil {
		t = &tenant{id: id, rule: p.policy.tenants[id]}
		p.tenants[id] = t
	}
	i := slices.IndexFunc(t.parties, func(m *party) bool { return m.code == code })
	if i < 0 {
		t.parties = append(t.parties, &party{code: code, lane: p.lanes[code], who: t})
		i = len(t.parties) - 1
	}
	m := t.parties[i]
	m.backlog = backlog
	p.backlog[backlog] = m
	return m
}

// forget drops the state of a tenant that has nothing waiting and no deficit to keep.
func (p *Planner) forget(m *party) {
	p.backlog[m.backlog] = nil
	m.backlog = -1
	if m.Deficit() != 0 {
		return
	}
	m.who.parties = slices.DeleteFunc(m.who.parties, func(o *party) bool { return o == m })
	if len(m.who.parties) == 0 {
		delete(p.tenants, m.who.id)
	}
}

// read reads the heads of a party; users found at a cap are parked on the way.
func (p *Planner) read(m *party) {
	defer p.enliven(m)
	m.heads = m.heads[:0]
	if m.backlog < 0 || m.lane == nil || m.who.rule == nil || m.who.rule.Suspended {
		return
	}
	scan := int(p.policy.rules.doc.Scheduling.FitScan)
	skip := func(id int) bool { return p.neverFits(m, p.need(id)) }
	for again := true; again; {
		m.heads = m.heads[:0]
		var full []TenantUser
		p.queue.Heads(m.backlog, scan, skip, func(h control.Head) {
			n, id := p.need(h.Need), TenantUser{m.who.id, h.UserID}
			if p.user(id).full(m.who.rule, n.Kind) {
				full = append(full, id)
				return
			}
			m.heads = append(m.heads, head{Head: h, need: n})
		})
		for _, id := range full {
			p.park(id, p.users[id])
		}
		again = len(full) > 0
	}
	p.sort(m)
}

// neverFits reports whether no release could ever make room for the need: it is larger than every
// candidate pool, its tenant's maximum, or all that its lane could hold.
func (p *Planner) neverFits(m *party, n *need) bool {
	s := n.SlotUnits
	return s > n.widest || s > m.who.rule.MaxRunningUnits || s > max(m.lane.rule.reserved, p.rules.common)
}

// sort brings the heads of a party into the order in which they are tried.
func (p *Planner) sort(m *party) {
	for i := range m.heads {
		m.heads[i].effective = p.effective(m, &m.heads[i])
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
}

// urgentRow is the number of P0 starts in a row after which another head goes first.
const urgentRow = 7

// effective is the band after aging: P0 stays P0 (behind all others after urgentRow starts in a row),
// the others rise one band per step, to P1 at best.
func (p *Planner) effective(m *party, h *head) int {
	if h.Band == 0 {
		if m.urgent >= urgentRow {
			return 5
		}
		return 0
	}
	s := p.policy.rules.doc.Scheduling
	steps := max(0, p.micro-h.QueuedSince) / (s.AgingStepSeconds * 1_000_000)
	return max(1, int(h.Band)-int(min(steps, s.AgingCap)))
}

// settleIn joins or leaves the ring as the party has heads or not.
func (p *Planner) settleIn(m *party) {
	switch {
	case len(m.heads) > 0 && !m.In():
		p.join(m)
	case len(m.heads) == 0 && m.In():
		p.leave(m)
	}
}

func (p *Planner) join(m *party) {
	l := m.lane
	if w := m.weight(); w > l.ring.W() {
		p.raise(l, w)
	}
	l.ring.Join(&m.Member, m.weight())
	m.at = len(l.parties)
	l.parties = append(l.parties, m)
	p.enliven(m)
}

func (p *Planner) leave(m *party) {
	l := m.lane
	last := len(l.parties) - 1
	l.parties[m.at] = l.parties[last]
	l.parties[m.at].at = m.at
	l.parties = l.parties[:last]
	l.ring.Leave(&m.Member)
	m.urgent = 0
	p.enliven(m)
}

// enliven notes whether a tenant has heads in its ring. It stays in the ring until the cycle is
// settled, since a refused claim may bring its task back; the lane's rounds stop with its last head.
func (p *Planner) enliven(m *party) {
	live := m.In() && len(m.heads) > 0
	if live == m.live {
		return
	}
	m.live = live
	if live {
		m.lane.live++
	} else {
		m.lane.live--
	}
	p.mark(m.lane)
}

// raise brings a lane to a larger scale: a tenant whose home is elsewhere, and heavier, has work in it.
func (p *Planner) raise(l *lane, w int64) {
	p.credit(l)
	p.rescale(l, w)
}

// mark notes whether a lane gets its rounds: it does while it has unparked heads and is not paused.
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
