package speed

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/google/uuid"

	"fairlane/control"
)

// settle brings what was written to the heads.
func (q *Queue) settle(c *change, e *effect) {
	stands := e.stays && !e.now.delayed
	ref, there := q.byID[c.id]
	switch {
	case there && stands && q.tasks[ref].version == e.now.version && q.tasks[ref].line.name == e.now.line():
		return
	case there:
		q.unload(ref)
	case e.held && !e.seen.delayed:
		if l := q.lineAt(c.slot, e.seen.line()); l != nil {
			q.shrink(l)
		}
	}
	if !stands {
		return
	}
	if c.item != nil {
		if _, known := q.byNeed[e.now.need]; !known && e.now.version == c.item.Version {
			q.addNeed(e.now.need, needOf(c.item))
		}
	}
	l, ok := q.line(c.slot, &e.now)
	if !ok {
		q.suspects = append(q.suspects, c.id)
		return
	}
	whole := l.complete()
	l.total++
	q.touch(l.backlog)
	at := q.placeIn(l, e.now.since, c.id)
	if at < len(l.first) || whole && len(l.first) < q.x.sizes.keep {
		l.first = slices.Insert(l.first, at, q.load(l, c.id, &e.now))
	}
	l.total = max(l.total, len(l.first))
}

func (q *Queue) placeIn(l *line, since int64, id uuid.UUID) int {
	at, _ := slices.BinarySearchFunc(l.first, id, func(ref int32, id uuid.UUID) int {
		t := &q.tasks[ref]
		if c := cmp.Compare(t.since, since); c != 0 {
			return c
		}
		return bytes.Compare(t.id[:], id[:])
	})
	return at
}

// load makes a task of a line known.
func (q *Queue) load(l *line, id uuid.UUID, p *packed) int32 {
	ref := int32(0)
	if n := len(q.freeTask); n > 0 {
		ref, q.freeTask = q.freeTask[n-1], q.freeTask[:n-1]
	} else {
		q.tasks = append(q.tasks, loaded{})
		ref = int32(len(q.tasks) - 1)
	}
	u := q.user(userKey{p.tenant, p.user})
	q.users[u].tasks++
	q.tasks[ref] = loaded{
		id: id, version: p.version, since: p.since, eligible: p.eligible, line: l, cost: p.cost, p95: p.p95, user: u, arrival: q.arrival,
	}
	q.arrival++
	q.byID[id] = ref
	if p.eligible > q.w.now {
		q.late = append(q.late, lateTask{p.eligible, l.backlog})
	}
	return ref
}

// unload takes a task that has gone from its line.
func (q *Queue) unload(ref int32) {
	t := &q.tasks[ref]
	l := t.line
	if at := q.placeIn(l, t.since, t.id); at < len(l.first) && l.first[at] == ref {
		l.first = slices.Delete(l.first, at, at+1)
	}
	if !t.hidden {
		q.touch(l.backlog)
	}
	q.free(ref)
	q.shrink(l)
}

func (q *Queue) free(ref int32) {
	t := &q.tasks[ref]
	delete(q.byID, t.id)
	u := t.user
	*t = loaded{}
	q.freeTask = append(q.freeTask, ref)
	q.users[u].tasks--
	q.forgetUser(u)
}

// shrink says that one task less stands in a line; an empty line goes.
func (q *Queue) shrink(l *line) {
	l.total--
	if l.total > 0 || len(l.first) > 0 {
		return
	}
	b := &q.backlogs[l.backlog]
	rest := make([]*line, 0, len(b.lines)) // a new list: the old one may be being walked
	for _, o := range b.lines {
		if o != l {
			rest = append(rest, o)
		}
	}
	b.lines = rest
	if len(b.lines) == 0 {
		q.touch(l.backlog)
	}
}

func (q *Queue) touch(b int) {
	if !q.backlogs[b].dirty {
		q.backlogs[b].dirty = true
		q.changed = append(q.changed, b)
	}
}

func (q *Queue) lineAt(s slot, name lineName) *line {
	b, ok := q.byBacklog[backlogKey{s.lane, name.tenant()}]
	if !ok {
		return nil
	}
	for _, l := range q.backlogs[b].lines {
		if l.name == name {
			return l
		}
	}
	return nil
}

// line finds or makes the line of a task; false when what it requires cannot be told.
func (q *Queue) line(s slot, p *packed) (*line, bool) {
	if l := q.lineAt(s, p.line()); l != nil {
		return l, true
	}
	n, ok := q.needNumber(s, p.need)
	if !ok {
		return nil, false
	}
	b := q.backlog(s, p.tenant)
	l := &line{backlog: b, name: p.line(), band: p.band, need: n}
	lines := q.backlogs[b].lines
	at, _ := slices.BinarySearchFunc(lines, l, func(a, b *line) int {
		if c := cmp.Compare(a.band, b.band); c != 0 {
			return c
		}
		if c := cmp.Compare(q.needs[a.need].route, q.needs[b.need].route); c != 0 {
			return c
		}
		return cmp.Compare(a.need, b.need)
	})
	q.backlogs[b].lines = slices.Insert(slices.Clone(lines), at, l)
	return l, true
}

// needNumber is the number of a need in this queue; one that was not met is read from the slot.
func (q *Queue) needNumber(s slot, hash needHash) (int, bool) {
	if n, ok := q.byNeed[hash]; ok {
		return n, true
	}
	n, err := q.readNeed(s, hash)
	if err != nil {
		return 0, false
	}
	return q.addNeed(hash, n), true
}

func (q *Queue) addNeed(hash needHash, n control.Need) int {
	route, ok := q.routes[n.Route]
	if !ok {
		route = len(q.routes)
		q.routes[n.Route] = route
	}
	q.needs = append(q.needs, need{n, route})
	q.byNeed[hash] = len(q.needs) - 1
	return len(q.needs) - 1
}

func (q *Queue) backlog(s slot, tenant uuid.UUID) int {
	key := backlogKey{s.lane, tenant}
	if b, ok := q.byBacklog[key]; ok {
		return b
	}
	b := len(q.backlogs)
	if n := len(q.freeBack); n > 0 {
		b, q.freeBack = q.freeBack[n-1], q.freeBack[:n-1]
	} else {
		q.backlogs = append(q.backlogs, backlog{})
	}
	q.backlogs[b] = backlog{key: key, slot: s, used: true, dirty: q.backlogs[b].dirty}
	q.byBacklog[key] = b
	q.byTenant[tenant] = append(q.byTenant[tenant], b)
	return b
}

func (q *Queue) forgetBacklog(b int) {
	key := q.backlogs[b].key
	delete(q.byBacklog, key)
	if left := slices.DeleteFunc(q.byTenant[key.tenant], func(o int) bool { return o == b }); len(left) > 0 {
		q.byTenant[key.tenant] = left
	} else {
		delete(q.byTenant, key.tenant)
	}
	q.backlogs[b] = backlog{dirty: q.backlogs[b].dirty}
	q.freeBack = append(q.freeBack, b)
}

func (q *Queue) user(key userKey) int32 {
	if u, ok := q.byUser[key]; ok {
		return u
	}
	u := int32(len(q.users))
	if n := len(q.freeUser); n > 0 {
		u, q.freeUser = q.freeUser[n-1], q.freeUser[:n-1]
	} else {
		q.users = append(q.users, user{})
	}
	q.users[u] = user{key: key}
	q.byUser[key] = u
	return u
}

// forgetUser forgets a user who has no task here and is not parked.
func (q *Queue) forgetUser(u int32) {
	if x := &q.users[u]; x.tasks == 0 && len(x.parked) == 0 {
		delete(q.byUser, x.key)
		*x = user{}
		q.freeUser = append(q.freeUser, u)
	}
}
