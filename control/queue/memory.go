package queue

import (
	"bytes"
	"math"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
)

// Memory is the queue in the process's memory. Times are kept in microseconds, as PostgreSQL does, the
// P95 in milliseconds.
// Every operation is O(log n) in the tasks of its tenant, or of the queue for delayed tasks.
//
// A task lies in a line (one user's tasks of one band and need in one backlog); the lines with visible
// tasks stand in a shelf (one band and need of a backlog), ordered by their first task. Parking a user
// moves its lines, not its tasks.
type Memory struct {
	tasks    []task
	at       []int32 // place of each task in the heap of its line, or of the delayed: apart, because heaps touch many
	freeTask []int32
	byID     map[uuid.UUID]int32

	lines    []line
	freeLine []int32
	users    []user
	freeUser []int32
	byUser   map[userKey]int32

	backlogs  []backlog
	freeBack  []int32
	byBacklog map[backlogKey]int32
	changed   []int32 // backlogs to report, each once

	needs   []need
	byNeed  map[control.Need]int32
	routes  map[string]int32
	names   map[string]string // one copy of each string
	delayed []int32           // heap by eligible time
	lanes   map[string]*depth
	gone    tombs
	arrival uint32
	walk    []spot // frontier of the scan in progress
}

type (
	userKey    struct{ tenant, user uuid.UUID }
	backlogKey struct {
		lane   string
		tenant uuid.UUID
	}
)

const (
	visible = uint8(iota)
	late    // not eligible yet
	hidden
)

type task struct {
	id       uuid.UUID
	version  int64
	since    int64 // microseconds
	eligible int64 // microseconds
	p95      int32 // milliseconds
	cost     int32 // milli-units
	line     int32
	arrival  uint32
	state    uint8
}

// cell is a task in its line, or a line in its shelf, with the time that orders it.
type cell struct {
	since int64
	num   int32
}

type line struct {
	heap    []cell // visible tasks
	backlog int32
	need    int32
	user    int32
	at      int32 // place in its shelf; -1: not there
	total   int32 // tasks in any state
	band    int16
	parked  bool
}

type user struct {
	key    userKey
	lines  []int32
	parked []control.Kind
}

type shelf struct {
	need  int32
	band  int16
	lines []cell // heap of lines by their first task
}

type backlog struct {
	key     backlogKey
	group   string
	depth   *depth // of the lane
	shelves []shelf
	total   int32
	dirty   bool
}

type need struct {
	control.Need
	route int32
}

// NewMemory makes an empty queue.
func NewMemory() *Memory {
	return &Memory{
		byID: map[uuid.UUID]int32{}, byUser: map[userKey]int32{}, byBacklog: map[backlogKey]int32{},
		byNeed: map[control.Need]int32{}, routes: map[string]int32{}, names: map[string]string{},
		lanes: map[string]*depth{},
	}
}

// Limits of an item.
const (
	maxCostMilli = 10_000 * control.Milli
	maxSlotUnits = math.MaxInt32
)

// Check refuses an item whose numbers cannot be right.
func (it *Item) Check() error {
	var fields []control.FieldError
	bad := func(field string, lo, hi int64) {
		fields = append(fields, control.FieldError{Field: field, Key: "error.range", Args: map[string]any{"min": lo, "max": hi}})
	}
	if it.TaskID == uuid.Nil {
		fields = append(fields, control.FieldError{Field: "task_id", Key: "error.required"})
	}
	if it.Lane == "" {
		fields = append(fields, control.FieldError{Field: "lane", Key: "error.required"})
	}
	if it.CostMilli < control.Milli || it.CostMilli > maxCostMilli {
		bad("cost_milli", control.Milli, maxCostMilli)
	}
	if it.SlotUnits < 1 || it.SlotUnits > maxSlotUnits {
		bad("slot_units", 1, maxSlotUnits)
	}
	if it.Band < 0 || it.Band > 4 {
		bad("band", 0, 4)
	}
	if it.P95 < 0 || it.P95.Milliseconds() > math.MaxInt32 {
		bad("p95_milliseconds", 0, math.MaxInt32)
	}
	return control.Invalid(fields)
}

// Upsert puts an item in, or replaces an older version of it.
func (m *Memory) Upsert(it Item) error {
	if err := it.Check(); err != nil {
		return err
	}
	if m.gone.covers(it.TaskID, it.Version) {
		return nil
	}
	old, there := m.byID[it.TaskID]
	if there && m.tasks[old].version >= it.Version {
		return nil
	}
	m.insert(it)
	if there {
		m.drop(old) // after the new one is in, so that its user stays parked
	}
	return nil
}

func (m *Memory) insert(it Item) {
	b := m.backlog(it)
	l := m.line(b, it)
	ref := take(&m.freeTask, &m.tasks)
	if int(ref) == len(m.at) {
		m.at = append(m.at, -1)
	}
	m.at[ref] = -1
	m.tasks[ref] = task{
		id: it.TaskID, version: it.Version, since: it.QueuedSince.UnixMicro(), eligible: it.EligibleAt.UnixMicro(),
		p95: int32(it.P95.Milliseconds()), cost: int32(it.CostMilli), line: l, arrival: m.arrival, state: late,
	}
	m.arrival++
	m.byID[it.TaskID] = ref
	m.lines[l].total++
	m.backlogs[b].total++
	m.backlogs[b].depth.add(m, ref)
	m.pushDelayed(ref)
}

// Remove takes a task out if its version is at most the one given.
func (m *Memory) Remove(id uuid.UUID, version int64) {
	m.gone.add(id, version)
	if ref, ok := m.byID[id]; ok && m.tasks[ref].version <= version {
		m.drop(ref)
	}
}

func (m *Memory) drop(ref int32) {
	t := &m.tasks[ref]
	switch t.state {
	case visible:
		m.leave(ref)
		m.touch(m.lines[t.line].backlog)
	case late:
		m.popDelayed(ref)
	}
	l := t.line
	b := m.lines[l].backlog
	m.backlogs[b].depth.remove(t.cost)
	if m.byID[t.id] == ref {
		delete(m.byID, t.id)
	}
	m.tasks[ref] = task{line: -1}
	m.freeTask = append(m.freeTask, ref)
	if m.lines[l].total--; m.lines[l].total == 0 {
		m.freeTheLine(l)
	}
	if m.backlogs[b].total--; m.backlogs[b].total == 0 {
		m.touch(b)
	}
}

// ByID returns a task.
func (m *Memory) ByID(id uuid.UUID) (Item, error) {
	ref, ok := m.byID[id]
	if !ok {
		return Item{}, control.Errorf(control.CodeNotFound, "task %s is not in the queue", id)
	}
	t := &m.tasks[ref]
	l := &m.lines[t.line]
	b, n := &m.backlogs[l.backlog], &m.needs[l.need]
	return Item{
		TaskID: t.id, Version: t.version, TenantID: b.key.tenant, UserID: m.users[l.user].key.user,
		Lane: b.key.lane, Group: b.group, Band: control.Band(l.band), Route: n.Route, Model: n.Model,
		Kind: n.Kind, SlotUnits: n.SlotUnits, CostMilli: int64(t.cost), P95: time.Duration(t.p95) * time.Millisecond,
		QueuedSince: time.UnixMicro(t.since).UTC(), EligibleAt: time.UnixMicro(t.eligible).UTC(),
	}, nil
}

// before orders tasks inside a band.
func (m *Memory) before(a, b int32) bool {
	x, y := &m.tasks[a], &m.tasks[b]
	if x.since != y.since {
		return x.since < y.since
	}
	return bytes.Compare(x.id[:], y.id[:]) < 0
}

// take returns the number of a free place, of a new one when none is free.
func take[T any](free *[]int32, all *[]T) int32 {
	if n := len(*free); n > 0 {
		ref := (*free)[n-1]
		*free = (*free)[:n-1]
		return ref
	}
	var zero T
	*all = append(*all, zero)
	return int32(len(*all) - 1)
}
