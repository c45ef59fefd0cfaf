package queue

import (
	"time"

	"github.com/google/uuid"

	"fairlane/control"
)

// Advance makes eligible tasks visible and reports the backlogs whose heads may have changed.
func (m *Memory) Advance(now time.Time, changed func(backlog int, lane string, tenant uuid.UUID, empty bool)) time.Time {
	us := now.UnixMicro()
	for len(m.delayed) > 0 && m.tasks[m.delayed[0]].eligible <= us {
		ref := m.delayed[0]
		m.popDelayed(ref)
		m.enter(ref)
	}
	list := m.changed
	m.changed = nil
	for _, b := range list {
		x := &m.backlogs[b]
		x.dirty = false
		empty := x.total == 0
		changed(int(b), x.key.lane, x.key.tenant, empty)
		if empty {
			m.forget(b)
		}
	}
	if m.changed == nil {
		m.changed = list[:0]
	}
	if len(m.delayed) == 0 {
		return time.Time{}
	}
	return time.UnixMicro(m.tasks[m.delayed[0]].eligible).UTC()
}

// forget frees the number of an empty backlog.
func (m *Memory) forget(b int32) {
	delete(m.byBacklog, m.backlogs[b].key)
	m.backlogs[b] = backlog{shelves: m.backlogs[b].shelves[:0], dirty: m.backlogs[b].dirty}
	m.freeBack = append(m.freeBack, b)
}

// Heads yields the first task of each band and route, and of other needs inside the scan window.
func (m *Memory) Heads(backlog, scan int, skip func(need int) bool, yield func(control.Head)) {
	shelves := m.backlogs[backlog].shelves
	for i := 0; i < len(shelves); {
		route, band := m.needs[shelves[i].need].route, shelves[i].band
		m.walk = m.walk[:0]
		for ; i < len(shelves) && shelves[i].band == band && m.needs[shelves[i].need].route == route; i++ {
			if s := &shelves[i]; len(s.lines) > 0 && !skip(int(s.need)) {
				m.walk = append(m.walk, spot{s, 0, 0, m.lines[s.lines[0].num].heap[0].num})
			}
		}
		switch len(m.walk) {
		case 0:
		case 1:
			yield(m.head(m.walk[0].ref, true))
		default:
			m.scan(scan, yield)
		}
	}
}

func (m *Memory) head(ref int32, isFirst bool) control.Head {
	t := &m.tasks[ref]
	l := &m.lines[t.line]
	return control.Head{
		Ref: int(ref), TaskID: t.id, Version: t.version, UserID: m.users[l.user].key.user,
		Band: control.Band(l.band), Need: int(l.need), CostMilli: int64(t.cost), QueuedSince: t.since, Arrival: t.arrival, First: isFirst,
	}
}

// spot is a task in the walk: place task in the heap of the line at place line of a shelf.
type spot struct {
	shelf      *shelf
	line, task int
	ref        int32
}

// scan walks the shelves of one band and route, whose first tasks lie in m.walk, together in order,
// 1 + n tasks at most, and yields the first task of each need that it meets.
func (m *Memory) scan(n int, yield func(control.Head)) {
	missing := len(m.walk)
	for seen := 0; seen <= n && missing > 0; seen++ {
		best := 0
		for k := range m.walk {
			if m.before(m.walk[k].ref, m.walk[best].ref) {
				best = k
			}
		}
		at := m.walk[best]
		last := len(m.walk) - 1
		m.walk[best] = m.walk[last]
		m.walk = m.walk[:last]
		if at.line == 0 && at.task == 0 {
			yield(m.head(at.ref, seen == 0))
			missing--
		}
		m.walk = m.after(at, m.walk)
	}
}

// after adds the tasks that can follow a task in the walk: its children in the heap of its line and,
// when it is the first of its line, the first tasks of the line's children in the shelf.
func (m *Memory) after(at spot, to []spot) []spot {
	heap := m.lines[at.shelf.lines[at.line].num].heap
	for _, c := range [2]int{2*at.task + 1, 2*at.task + 2} {
		if c < len(heap) {
			to = append(to, spot{at.shelf, at.line, c, heap[c].num})
		}
	}
	if at.task > 0 {
		return to
	}
	for _, c := range [2]int{2*at.line + 1, 2*at.line + 2} {
		if c < len(at.shelf.lines) {
			to = append(to, spot{at.shelf, c, 0, m.lines[at.shelf.lines[c].num].heap[0].num})
		}
	}
	return to
}
