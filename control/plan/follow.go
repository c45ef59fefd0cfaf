package plan

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
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
		key := TenantLane{id, code}
		m := &party{code: code, lane: p.lanes[code], who: t, used: p.inLane[key], owed: p.debts[key]}
		p.settleDebt(m)
		t.parties = append(t.parties, m)
		t.known = false // what it owes in this lane was not read
		i = len(t.parties) - 1
	}
	m := t.parties[i]
	m.backlog = backlog
	p.backlog[backlog] = m
	p.ask(t)
	return m
}

// read reads the heads of a party; users found at a cap are parked on the way.
func (p *Planner) read(m *party) {
	p.withdraw(m)
	was := p.remember(m)
	m.heads = m.heads[:0]
	if m.backlog >= 0 && m.lane != nil && m.who.rule != nil && !m.who.rule.Suspended {
		for p.readOnce(m) {
		}
		p.sort(m)
	}
	p.recall(m, was)
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

// remember keeps what is known of the heads of a party while they are read anew: those that were marked
// or passed over.
func (p *Planner) remember(m *party) []head {
	was := p.was[:0]
	for i := range m.heads {
		if h := &m.heads[i]; h.marked || h.turned || h.passed != nil {
			was = append(was, *h)
		}
	}
	p.was = was
	return was
}

// recall gives heads that are still there what was known of them; what is no head any more begins anew.
func (p *Planner) recall(m *party, was []head) {
	for i := range was {
		w := &was[i]
		if j := slices.IndexFunc(m.heads, func(h head) bool { return h.TaskID == w.TaskID }); j >= 0 {
			m.heads[j].marked, m.heads[j].turned, m.heads[j].passed = w.marked, w.turned, w.passed
		} else if w.passed != nil {
			p.forgetPassed(w.passed)
		}
	}
}

// readOnce reports whether it met a user at a cap, has parked it, and must be called again.
func (p *Planner) readOnce(m *party) (again bool) {
	m.heads = m.heads[:0]
	p.reading, p.full = m, p.full[:0]
	p.queue.Heads(m.backlog, int(p.policy.rules.doc.Scheduling.FitScan), p.skip, p.take)
	for _, u := range p.full {
		p.park(u)
	}
	return len(p.full) > 0
}

// skips tells the queue which needs of the party being read can never start.
func (p *Planner) skips(need int) bool {
	m := p.reading
	return p.neverFits(m, p.standOf(m.lane, m.who, need))
}

// takes keeps a head of the party being read, or notes that its user is at a cap.
func (p *Planner) takes(h control.Head) {
	m := p.reading
	s := p.standOf(m.lane, m.who, h.Need)
	if m.who.rule.capped {
		if u := p.user(TenantUser{m.who.id, h.UserID}); u.atCap(m.who.rule, s.need.Kind) {
			p.full = append(p.full, u)
			return
		}
	}
	m.heads = append(m.heads, head{Head: h, stand: s})
}

// neverFits reports whether no release could ever make room for the stand's need: it is larger than
// every candidate pool, its tenant's maximum, or all that its lane could hold.
func (p *Planner) neverFits(m *party, s *stand) bool {
	n := s.need.SlotUnits
	return n > s.widest || n > m.who.rule.MaxRunningUnits || n > p.couldHold(s)
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
