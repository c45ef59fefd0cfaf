package queue

import (
	"slices"

	"github.com/google/uuid"

	"fairlane/control"
)

// name keeps one copy of each string.
func (m *Memory) name(s string) string {
	if kept, ok := m.names[s]; ok {
		return kept
	}
	m.names[s] = s
	return s
}

func (m *Memory) backlog(it Item) int32 {
	key := backlogKey{it.Lane, it.TenantID}
	if b, ok := m.byBacklog[key]; ok {
		return b
	}
	key.lane = m.name(it.Lane)
	b := take(&m.freeBack, &m.backlogs)
	m.backlogs[b] = backlog{key: key, group: m.name(it.Group), depth: m.depth(key.lane), shelves: m.backlogs[b].shelves[:0], dirty: m.backlogs[b].dirty}
	m.byBacklog[key] = b
	return b
}

// line finds or makes the line of an item, its user and its shelf.
func (m *Memory) line(b int32, it Item) int32 {
	n, u := m.need(it), m.user(it.TenantID, it.UserID)
	for _, l := range m.users[u].lines {
		if x := &m.lines[l]; x.backlog == b && x.need == n && x.band == int16(it.Band) {
			return l
		}
	}
	l := take(&m.freeLine, &m.lines)
	m.lines[l] = line{
		heap: m.lines[l].heap[:0], backlog: b, need: n, user: u, at: -1, band: int16(it.Band),
		parked: slices.Contains(m.users[u].parked, it.Kind),
	}
	m.users[u].lines = append(m.users[u].lines, l)
	return l
}

func (m *Memory) freeTheLine(l int32) {
	u := m.lines[l].user
	us := &m.users[u]
	i := slices.Index(us.lines, l)
	us.lines = slices.Delete(us.lines, i, i+1)
	if cap(m.lines[l].heap) > 64 {
		m.lines[l].heap = nil
	}
	m.freeLine = append(m.freeLine, l)
	if len(us.lines) == 0 {
		delete(m.byUser, us.key)
		m.users[u] = user{lines: us.lines}
		m.freeUser = append(m.freeUser, u)
	}
}

func (m *Memory) user(tenant, id uuid.UUID) int32 {
	key := userKey{tenant, id}
	if u, ok := m.byUser[key]; ok {
		return u
	}
	u := take(&m.freeUser, &m.users)
	m.users[u].key = key
	m.byUser[key] = u
	return u
}

func (m *Memory) need(it Item) int32 {
	n := it.Need()
	if id, ok := m.byNeed[n]; ok {
		return id
	}
	n.Route, n.Model, n.Kind = m.name(it.Route), m.name(it.Model), control.Kind(m.name(string(it.Kind)))
	route, ok := m.routes[n.Route]
	if !ok {
		route = int32(len(m.routes))
		m.routes[n.Route] = route
	}
	m.needs = append(m.needs, need{n, route})
	id := int32(len(m.needs) - 1)
	m.byNeed[n] = id
	return id
}

// Need returns what a need number stands for.
func (m *Memory) Need(id int) control.Need { return m.needs[id].Need }

// Park takes a user's tasks of these kinds out of sight, and brings those of other kinds back.
func (m *Memory) Park(tenant, id uuid.UUID, kinds ...control.Kind) {
	u, ok := m.byUser[userKey{tenant, id}]
	if !ok {
		return
	}
	m.users[u].parked = append(m.users[u].parked[:0], kinds...)
	for _, l := range m.users[u].lines {
		x := &m.lines[l]
		parked := slices.Contains(kinds, m.needs[x.need].Kind)
		if parked == x.parked {
			continue
		}
		x.parked = parked
		if len(x.heap) == 0 {
			continue
		}
		if parked {
			m.unshelve(l)
		} else {
			m.enshelve(l)
		}
		m.touch(x.backlog)
	}
}

// Hide takes a task out of sight or brings it back.
func (m *Memory) Hide(ref int, id uuid.UUID, hide bool) {
	r := int32(ref)
	if ref < 0 || ref >= len(m.tasks) || m.tasks[r].id != id || m.tasks[r].line < 0 {
		return
	}
	switch t := &m.tasks[r]; {
	case hide && t.state == visible:
		m.leave(r)
		t.state = hidden // who hides it knows: the backlog is not reported
	case !hide && t.state == hidden:
		m.enter(r)
	}
}

// enter makes a task visible: into its line, and its line into its shelf.
func (m *Memory) enter(ref int32) {
	t := &m.tasks[ref]
	t.state = visible
	l := t.line
	x := &m.lines[l]
	x.heap = append(x.heap, cell{t.since, ref})
	m.at[ref] = int32(len(x.heap) - 1)
	m.upTask(x.heap, len(x.heap)-1)
	m.touch(x.backlog) // also when it is parked: its tenant's counters are of interest from now on
	if x.parked {
		return
	}
	if x.at < 0 {
		m.enshelve(l)
	} else if x.heap[0].num == ref {
		s := m.shelfOf(l)
		s.lines[x.at].since = t.since
		m.upLine(s.lines, int(x.at))
	}
}

// leave takes a visible task out of its line, and an empty line out of its shelf.
func (m *Memory) leave(ref int32) {
	t := &m.tasks[ref]
	l := t.line
	x := &m.lines[l]
	i := int(m.at[ref])
	last := len(x.heap) - 1
	x.heap[i] = x.heap[last]
	m.at[x.heap[i].num] = int32(i)
	x.heap = x.heap[:last]
	if i < last {
		m.upTask(x.heap, i)
		m.downTask(x.heap, i)
	}
	m.at[ref] = -1
	if x.parked {
		return
	}
	if last == 0 {
		m.unshelve(l)
	} else if i == 0 {
		s := m.shelfOf(l)
		s.lines[x.at].since = x.heap[0].since
		m.downLine(s.lines, int(x.at))
	}
}

// shelfOf finds or makes the shelf of a line. Shelves stand by band and route, so that those which are
// scanned together are neighbours.
func (m *Memory) shelfOf(l int32) *shelf {
	x := &m.lines[l]
	b := &m.backlogs[x.backlog]
	i := 0
	for ; i < len(b.shelves); i++ {
		s := &b.shelves[i]
		if s.need == x.need && s.band == x.band {
			return s
		}
		if s.band > x.band || s.band == x.band && m.needs[s.need].route > m.needs[x.need].route {
			break
		}
	}
	b.shelves = slices.Insert(b.shelves, i, shelf{need: x.need, band: x.band})
	return &b.shelves[i]
}

func (m *Memory) enshelve(l int32) {
	s := m.shelfOf(l)
	s.lines = append(s.lines, cell{m.lines[l].heap[0].since, l})
	m.lines[l].at = int32(len(s.lines) - 1)
	m.upLine(s.lines, len(s.lines)-1)
}

func (m *Memory) unshelve(l int32) {
	s := m.shelfOf(l)
	i, last := int(m.lines[l].at), len(s.lines)-1
	s.lines[i] = s.lines[last]
	m.lines[s.lines[i].num].at = int32(i)
	s.lines = s.lines[:last]
	if i < last {
		m.upLine(s.lines, i)
		m.downLine(s.lines, i)
	}
	m.lines[l].at = -1
	if b := &m.backlogs[m.lines[l].backlog]; last == 0 && len(b.shelves) > keptShelves {
		b.shelves = slices.DeleteFunc(b.shelves, func(o shelf) bool { return len(o.lines) == 0 })
	}
}

// keptShelves is the number of shelves of a backlog above which empty ones are given up.
const keptShelves = 16

// touch notes a backlog for the next Advance.
func (m *Memory) touch(b int32) {
	if !m.backlogs[b].dirty {
		m.backlogs[b].dirty = true
		m.changed = append(m.changed, b)
	}
}
