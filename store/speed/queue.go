package speed

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/queue"
)

// Queue is the queue of one pool group over the index on Redis, for one term of its scheduler. The
// process holds heads only: of every line a first part, in order, that grows by pages as it is used up
// and is cut where it grows too long. What it holds of a line is always the line's first tasks, so that
// heads read from it are those of the whole.
//
// A Redis that does not answer, or an index that was lost, ends the queue: Err says so, every read finds
// nothing more, and the caller goes on from PostgreSQL. A Queue belongs to one goroutine.
type Queue struct {
	x     *QueueIndex
	w     *writer
	ctx   context.Context // of the term; the port's methods have none
	group string
	err   error

	tasks     []loaded
	freeTask  []int32
	byID      map[uuid.UUID]int32
	backlogs  []backlog
	freeBack  []int
	byBacklog map[backlogKey]int
	byTenant  map[uuid.UUID][]int // backlogs
	users     []user
	freeUser  []int32
	byUser    map[userKey]int32
	needs     []need
	byNeed    map[needHash]int
	routes    map[string]int
	changed   []int
	late      []lateTask
	suspects  []uuid.UUID
	arrival   uint32
	walk      []*line // of the scan in progress
}

type (
	backlogKey struct {
		lane   string
		tenant uuid.UUID
	}
	userKey struct{ tenant, user uuid.UUID }
)

// loaded is a task of a line's first part.
type loaded struct {
	id       uuid.UUID
	version  int64
	since    int64
	eligible int64
	line     *line
	cost     uint32
	p95      uint32
	user     int32
	arrival  uint32
	hidden   bool
}

// line is what one tenant has of one band and need in a lane.
type line struct {
	backlog int
	name    lineName
	band    control.Band
	need    int
	total   int     // tasks in the index
	first   []int32 // the first of them, in order
	head    int     // of the scan in progress: its first visible task
	step    int     // and the next one to look at
}

func (l *line) complete() bool { return len(l.first) >= l.total }

type backlog struct {
	key   backlogKey
	slot  slot
	lines []*line // by band, route, need
	dirty bool
	used  bool
}

type user struct {
	key    userKey
	parked []control.Kind
	tasks  int
}

type need struct {
	control.Need
	route int
}

// lateTask is a task that stands in its line before its time: the clocks of two terms differ.
type lateTask struct {
	at      int64
	backlog int
}

// sizes bound what the process holds of a line.
type sizes struct {
	first int // tasks that are read at first
	more  int // and when more are needed
	keep  int // of a line that grows at its end
}

const mostPage = 512 // of one page.lua

// Err says why the queue has ended; nil while it goes on.
func (q *Queue) Err() error { return q.err }

func (q *Queue) fail(err error) error {
	if err != nil && q.err == nil {
		q.err = err
	}
	return err
}

// Upsert puts an item in, or replaces an older version of it.
func (q *Queue) Upsert(it queue.Item) error {
	if err := it.Check(); err != nil {
		return err
	}
	return q.Apply([]queue.Item{it}, nil)
}

// Remove takes a task out if its version is at most the one given.
func (q *Queue) Remove(task uuid.UUID, version int64) {
	_ = q.Apply(nil, []queue.Gone{{TaskID: task, Version: version}}) // kept in q.err
}

// Apply brings tasks that wait and tasks that have gone to the index and to the heads. Items must have
// been checked. After an error nothing is known of what was written: the queue has ended.
func (q *Queue) Apply(waits []queue.Item, gone []queue.Gone) error {
	if q.err != nil {
		return q.err
	}
	changes := make([]change, 0, len(waits)+len(gone))
	for i := range waits {
		changes = append(changes, change{id: waits[i].TaskID, slot: slotOf(waits[i].Lane, waits[i].TenantID), item: &waits[i]})
	}
	for _, g := range gone {
		s, ok := q.where(g)
		if !ok {
			if q.err != nil {
				return q.err
			}
			continue
		}
		changes = append(changes, change{id: g.TaskID, slot: s, version: g.Version})
	}
	return q.write(changes)
}

func (q *Queue) write(changes []change) error {
	ctx, cancel := context.WithTimeout(q.ctx, answerTime+time.Duration(len(changes))*time.Millisecond)
	defer cancel()
	effects, err := q.w.write(ctx, changes)
	if err != nil {
		return q.fail(err)
	}
	for i := range changes {
		q.settle(&changes[i], &effects[i])
	}
	return nil
}

// where finds the slot of a task: where the caller says it is, where it is held, or by a look into all.
func (q *Queue) where(g queue.Gone) (slot, bool) {
	if ref, ok := q.byID[g.TaskID]; ok {
		return q.backlogs[q.tasks[ref].line.backlog].slot, true
	}
	if g.Lane != "" {
		return slotOf(g.Lane, g.TenantID), true
	}
	s, _, err := q.locate(g.TaskID)
	if err != nil && control.CodeOf(err) != control.CodeNotFound {
		_ = q.fail(err)
	}
	return s, err == nil
}

// ByID returns a task; one whose place is not known is looked for in all slots.
func (q *Queue) ByID(task uuid.UUID) (queue.Item, error) {
	if ref, ok := q.byID[task]; ok {
		t := &q.tasks[ref]
		b := &q.backlogs[t.line.backlog]
		n := &q.needs[t.line.need]
		return queue.Item{
			TaskID: t.id, Version: t.version, TenantID: b.key.tenant, UserID: q.users[t.user].key.user, Lane: b.key.lane, Group: q.group,
			Band: t.line.band, Route: n.Route, Model: n.Model, Kind: n.Kind, SlotUnits: n.SlotUnits, CostMilli: int64(t.cost),
			P95: time.Duration(t.p95) * time.Millisecond, QueuedSince: time.UnixMicro(t.since).UTC(), EligibleAt: time.UnixMicro(t.eligible).UTC(),
		}, nil
	}
	if q.err != nil {
		return queue.Item{}, q.err
	}
	s, p, err := q.locate(task)
	if err != nil {
		return queue.Item{}, err
	}
	n, err := q.readNeed(s, p.need)
	if err != nil {
		return queue.Item{}, err
	}
	return p.item(task, s.lane, q.group, n), nil
}

// Len is how many tasks the index holds, delayed and parked ones included.
func (q *Queue) Len() int {
	n := int64(0)
	for _, s := range q.w.slots {
		n += s.tasks
	}
	return int(n)
}

// Need returns what a need number stands for.
func (q *Queue) Need(need int) control.Need { return q.needs[need].Need }

// Hide takes a task that was read from Heads out of sight, or brings it back.
func (q *Queue) Hide(ref int, task uuid.UUID, hidden bool) {
	if ref < 0 || ref >= len(q.tasks) || q.tasks[ref].line == nil || q.tasks[ref].id != task || q.tasks[ref].hidden == hidden {
		return
	}
	q.tasks[ref].hidden = hidden
	if !hidden {
		q.touch(q.tasks[ref].line.backlog)
	}
}

// Park takes tasks of a user out of sight.
func (q *Queue) Park(tenant, id uuid.UUID, kinds ...control.Kind) {
	key := userKey{tenant, id}
	ref, ok := q.byUser[key]
	if !ok {
		if len(kinds) == 0 {
			return
		}
		ref = q.user(key)
	}
	u := &q.users[ref]
	if slices.Equal(u.parked, kinds) {
		return
	}
	u.parked = append(u.parked[:0], kinds...)
	q.forgetUser(ref)
	for _, b := range q.byTenant[tenant] {
		q.touch(b)
	}
}

// Advance moves tasks whose time has come into their lines and reports the backlogs that have changed.
func (q *Queue) Advance(now time.Time, changed func(backlog int, lane string, tenant uuid.UUID, empty bool)) time.Time {
	q.w.now = max(q.w.now, now.UnixMicro())
	rest := q.promote()
	q.late = slices.DeleteFunc(q.late, func(l lateTask) bool {
		if l.at <= q.w.now {
			q.touch(l.backlog)
		}
		return l.at <= q.w.now
	})
	list := q.changed
	q.changed = nil
	for _, b := range list {
		x := &q.backlogs[b]
		x.dirty = false
		if !x.used {
			continue
		}
		empty := len(x.lines) == 0
		changed(b, x.key.lane, x.key.tenant, empty)
		if empty {
			q.forgetBacklog(b)
		}
	}
	if q.changed == nil {
		q.changed = list[:0]
	}
	if rest {
		return now
	}
	wake := int64(0)
	sooner := func(at int64) {
		if at > 0 && (wake == 0 || at < wake) {
			wake = at
		}
	}
	for _, s := range q.w.slots {
		sooner(s.next)
	}
	for _, l := range q.late {
		sooner(l.at)
	}
	if wake == 0 {
		return time.Time{}
	}
	return time.UnixMicro(wake).UTC()
}

// Heads yields the first task of each band and route, and of other needs inside the scan window.
func (q *Queue) Heads(backlog, scan int, skip func(need int) bool, yield func(control.Head)) {
	lines := q.backlogs[backlog].lines
	for i := 0; i < len(lines); {
		band, route := lines[i].band, q.needs[lines[i].need].route
		walk := q.walk[:0]
		for ; i < len(lines) && lines[i].band == band && q.needs[lines[i].need].route == route; i++ {
			if !skip(lines[i].need) {
				walk = append(walk, lines[i])
			}
		}
		q.walk = walk
		deep := 1
		if len(walk) > 1 {
			deep = scan + 1
		}
		for _, l := range walk {
			q.ensure(l, deep)
			l.head = q.visible(l, 0)
			l.step = l.head
		}
		q.scan(walk, scan, yield)
	}
}

// scan walks lines of one band and route together in order, 1 + n tasks at most, and yields the first
// task of each.
func (q *Queue) scan(walk []*line, n int, yield func(control.Head)) {
	missing := len(walk)
	for seen := 0; seen <= n && missing > 0; seen++ {
		best := -1
		for k, l := range walk {
			if l.step < len(l.first) && (best < 0 || q.before(l.first[l.step], walk[best].first[walk[best].step]) < 0) {
				best = k
			}
		}
		if best < 0 {
			return
		}
		l := walk[best]
		if l.step == l.head {
			yield(q.head(l.first[l.step], seen == 0))
			missing--
		}
		l.step = q.visible(l, l.step+1)
	}
}

func (q *Queue) head(ref int32, first bool) control.Head {
	t := &q.tasks[ref]
	return control.Head{
		Ref: int(ref), TaskID: t.id, Version: t.version, UserID: q.users[t.user].key.user, Band: t.line.band, Need: t.line.need,
		CostMilli: int64(t.cost), QueuedSince: t.since, Arrival: t.arrival, First: first,
	}
}

// visible is the place of the first visible task of a line from a place on.
func (q *Queue) visible(l *line, from int) int {
	for i := from; i < len(l.first); i++ {
		t := &q.tasks[l.first[i]]
		if t.hidden || t.eligible > q.w.now {
			continue
		}
		if u := &q.users[t.user]; len(u.parked) == 0 || !slices.Contains(u.parked, q.needs[l.need].Kind) {
			return i
		}
	}
	return len(l.first)
}

func (q *Queue) before(a, b int32) int {
	x, y := &q.tasks[a], &q.tasks[b]
	if c := cmp.Compare(x.since, y.since); c != 0 {
		return c
	}
	return bytes.Compare(x.id[:], y.id[:])
}
