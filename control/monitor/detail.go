package monitor

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
)

// MaxDetails bounds how many single objects are looked at at a time.
const MaxDetails = 500

// lookEvery is how often what holds a waiting task is looked up again.
const lookEvery = 2 * time.Second

// Object returns what a topic of a single object is about: its prefix and the object's id.
func (t Topic) Object() (prefix string, id uuid.UUID, ok bool) {
	for _, prefix := range []string{TaskPrefix, TenantPrefix} {
		rest, found := strings.CutPrefix(string(t), prefix)
		if !found {
			continue
		}
		id, err := uuid.Parse(rest)
		return prefix, id, err == nil && id.String() == rest // one spelling for each object
	}
	return "", uuid.Nil, false
}

// details keeps a board for each single object that somebody follows.
type details struct {
	mu     sync.Mutex
	boards map[Topic]*detail
	opened int64 // boards so far
}

// seqRange keeps the numbers of two boards of one object apart: who comes back to the second one with a
// number of the first has missed everything.
const seqRange = 1 << 24

type detail struct {
	*board
	prefix string
	id     uuid.UUID
	refs   int
}

// open takes part in the object's board; nil when there are too many, or it is no object.
func (d *details) open(t Topic, epoch string) *board {
	prefix, id, ok := t.Object()
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.boards[t]
	if x == nil {
		if !ok || len(d.boards) >= MaxDetails {
			return nil
		}
		x = &detail{board: newBoard(t, epoch), prefix: prefix, id: id}
		d.opened++
		x.snap.Seq = d.opened * seqRange
		d.boards[t] = x
	}
	x.refs++
	return x.board
}

func (d *details) close(t Topic) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if x := d.boards[t]; x != nil {
		if x.refs--; x.refs == 0 {
			delete(d.boards, t)
		}
	}
}

func (d *details) find(t Topic) *board {
	d.mu.Lock()
	defer d.mu.Unlock()
	if x := d.boards[t]; x != nil {
		return x.board
	}
	return nil
}

// watched lists the boards of one kind that somebody looks at.
func (d *details) watched(prefix string) []*detail {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []*detail
	for _, x := range d.boards {
		if x.prefix == prefix && x.watched() {
			out = append(out, x)
		}
	}
	return out
}

// readDetails reads every object that somebody looks at, in one query for each kind.
func (m *Monitor) readDetails(ctx context.Context, s *State) error {
	now := m.cfg.Now()
	if m.cfg.Details == nil || now.Sub(m.detailsAt) < m.cfg.TenantGap {
		return nil
	}
	tasks, tenants := m.details.watched(TaskPrefix), m.details.watched(TenantPrefix)
	if len(tasks) > 0 {
		list, err := m.cfg.Details.TasksNow(ctx, objects(tasks))
		if err != nil {
			return err
		}
		rows := map[uuid.UUID][]Row{}
		for _, t := range list {
			live := TaskLive{State: string(t.State), Version: t.Version, Attempts: t.Attempts}
			if t.State == control.TaskQueued {
				live.Looked = now.Truncate(lookEvery).UnixMilli()
			}
			rows[t.ID] = []Row{m.detailRow(TaskKey, live)}
		}
		putAll(tasks, rows, now)
	}
	if len(tenants) > 0 {
		list, err := m.cfg.Details.TenantsNow(ctx, objects(tenants))
		if err != nil {
			return err
		}
		putAll(tenants, m.tenantRows(s, tenants, list), now)
	}
	m.detailsAt = now
	return nil
}

// tenantRows builds the rows of each tenant that is looked at: itself, the history's mark, its lanes.
func (m *Monitor) tenantRows(s *State, tenants []*detail, list []TenantNow) map[uuid.UUID][]Row {
	lanes, sums := map[uuid.UUID][]Row{}, map[uuid.UUID]*TenantLive{}
	for _, x := range tenants {
		sum := &TenantLive{Share: -1, Entitled: -1}
		if share, ok := m.shares[x.id]; ok {
			sum.Share, sum.Entitled = share.share, share.entitled
		}
		sums[x.id] = sum
	}
	for _, t := range list {
		sum := sums[t.ID]
		sum.Running, sum.RunningUnits = sum.Running+t.RunningTasks, sum.RunningUnits+t.RunningUnits
		sum.QueuedTasks, sum.QueuedMilli = sum.QueuedTasks+t.QueuedTasks, sum.QueuedMilli+t.QueuedMilli
		if !t.OldestAt.IsZero() && (sum.OldestAt.IsZero() || t.OldestAt.Before(sum.OldestAt)) {
			sum.OldestAt = t.OldestAt
		}
		lanes[t.ID] = append(lanes[t.ID], m.detailRow(t.Lane, TenantLaneLive{Lane: t.Lane, Running: t.RunningTasks, RunningUnits: t.RunningUnits,
			QueuedTasks: t.QueuedTasks, QueuedMilli: t.QueuedMilli, DebtMilli: t.DebtMilli, OldestAt: t.OldestAt}))
	}
	rows := map[uuid.UUID][]Row{}
	for id, sum := range sums {
		rows[id] = append([]Row{m.detailRow(TenantKey, sum), m.detailRow(HistoryKey, s.history())}, lanes[id]...)
	}
	return rows
}

func (m *Monitor) detailRow(key string, v any) Row {
	raw, err := json.Marshal(v)
	if err != nil {
		m.cfg.Log.Error("row cannot be written", "key", key, "error", err)
		raw = json.RawMessage("{}")
	}
	return Row{Key: key, JSON: raw}
}

func objects(list []*detail) []uuid.UUID {
	ids := make([]uuid.UUID, len(list))
	for i, x := range list {
		ids[i] = x.id
	}
	return ids
}

func putAll(list []*detail, rows map[uuid.UUID][]Row, at time.Time) {
	for _, x := range list {
		x.put(rows[x.id], at)
	}
}
