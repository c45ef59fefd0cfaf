package reconcile

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/lead"
	"fairlane/control/queue"
)

// QueueIndexRebuilder compares the queue index with PostgreSQL in both directions: what waits there and
// is not in the index as it should be, and what the index holds and does not wait. Each batch is reported
// before it is repaired, and repaired only where the index still is as it was seen. The index is read
// before PostgreSQL, so that a row which is older than the index shows an index that is wrong: whoever
// writes the index has read the row first.
type QueueIndexRebuilder struct {
	waiting Waiting
	index   QueueIndex
	leases  Leases
	holder  string
	log     *slog.Logger
	places  map[string]*walk // of the sweeps, by group
}

// NewQueueIndexRebuilder makes a rebuilder; holder names this process among the replicas.
func NewQueueIndexRebuilder(waiting Waiting, index QueueIndex, leases Leases, holder string, log *slog.Logger) *QueueIndexRebuilder {
	return &QueueIndexRebuilder{waiting: waiting, index: index, leases: leases, holder: holder, log: log, places: map[string]*walk{}}
}

const (
	comparePage = 1000
	compareTTL  = 30 * time.Second
	// sweepPages bounds one sweep; the next one goes on where it ended.
	sweepPages = 200
)

// walk is a place in a comparison.
type walk struct {
	after    uuid.UUID // of the tasks that wait
	inIndex  bool      // they are through; now what the index holds
	at       queue.Cursor
	finished bool
}

// Rebuild makes an index, which has been begun, hold what waits, and says that it may be read.
// CodeConflict: another process is at it.
func (r *QueueIndexRebuilder) Rebuild(ctx context.Context, group string) error {
	return r.alone(ctx, group, func(keep func() error) error {
		began := walk{}
		sum, err := r.compare(ctx, group, &began, 0, keep)
		if err != nil {
			return err
		}
		r.log.Info("queue index rebuilt", "group", group, "found", sum.Found, "repaired", sum.Repaired)
		return r.index.Finish(ctx, group)
	})
}

// Sweep compares the indexes of groups that may be read, a bounded part of each at a time. One that is
// not there is not its business: the scheduler has it built.
func (r *QueueIndexRebuilder) Sweep(ctx context.Context, groups []string) (Result, error) {
	var sum Result
	for _, group := range groups {
		ready, err := r.index.Ready(ctx, group)
		if err != nil {
			return sum, err
		}
		if !ready {
			delete(r.places, group)
			continue
		}
		place := r.places[group]
		if place == nil || place.finished {
			place = &walk{}
			r.places[group] = place
		}
		err = r.alone(ctx, group, func(keep func() error) error {
			part, err := r.compare(ctx, group, place, sweepPages, keep)
			sum.Found, sum.Repaired = sum.Found+part.Found, sum.Repaired+part.Repaired
			return err
		})
		switch control.CodeOf(err) {
		case control.CodeConflict, control.CodeNotFound: // it is being built, or was lost just now
		default:
			if err != nil {
				return sum, err
			}
		}
	}
	return sum, nil
}

// alone runs do while this process has the group's lease; keep prolongs it.
func (r *QueueIndexRebuilder) alone(ctx context.Context, group string, do func(keep func() error) error) error {
	name := lead.QueueIndex + group
	term, held, err := r.leases.Acquire(ctx, name, r.holder, compareTTL)
	if err != nil {
		return err
	}
	taken := control.Errorf(control.CodeConflict, "the queue index of %s is being compared by another process", group)
	if !held {
		return taken
	}
	defer func() {
		live, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := r.leases.Release(live, name, r.holder, term); err != nil {
			r.log.Warn("lease not given back, it will run out", "lease", name, "error", err)
		}
	}()
	return do(func() error {
		kept, err := r.leases.Renew(ctx, name, r.holder, term, compareTTL)
		if err == nil && !kept {
			err = taken
		}
		return err
	})
}

// compare goes on from a place, at most pages pages (0: to the end).
func (r *QueueIndexRebuilder) compare(ctx context.Context, group string, at *walk, pages int, keep func() error) (Result, error) {
	var sum Result
	for n := 0; !at.finished && (pages == 0 || n < pages); n++ {
		if n%10 == 9 {
			if err := keep(); err != nil {
				return sum, err
			}
		}
		step := r.forward
		if at.inIndex {
			step = r.backward
		}
		part, err := step(ctx, group, at)
		sum.Found, sum.Repaired = sum.Found+part.Found, sum.Repaired+part.Repaired
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// forward looks for a page of the tasks that wait in the index.
func (r *QueueIndexRebuilder) forward(ctx context.Context, group string, at *walk) (Result, error) {
	page, err := r.waiting.Backlog(ctx, group, at.after, comparePage)
	if err != nil {
		return Result{}, err
	}
	ask := make([]queue.Gone, 0, len(page))
	rows := make([]queue.Item, 0, len(page))
	for i := range page {
		if page[i].Check() == nil { // one that cannot be right is parked where it is read, and is in no index
			ask = append(ask, queue.Gone{TaskID: page[i].TaskID, Lane: page[i].Lane, TenantID: page[i].TenantID})
			rows = append(rows, page[i])
		}
	}
	entries, err := r.index.Entries(ctx, group, ask)
	if err != nil {
		return Result{}, err
	}
	var suspects []queue.Entry
	for i := range entries {
		if entries[i].Differs(&rows[i]) != "" {
			suspects = append(suspects, entries[i])
		}
	}
	result, err := r.settle(ctx, group, suspects)
	if err != nil {
		return result, err
	}
	if len(page) < comparePage {
		at.inIndex = true
	} else {
		at.after = page[len(page)-1].TaskID
	}
	return result, nil
}

// backward looks for a page of what the index holds among the tasks that wait.
func (r *QueueIndexRebuilder) backward(ctx context.Context, group string, at *walk) (Result, error) {
	entries, next, err := r.index.Scan(ctx, group, at.at, comparePage)
	if err != nil {
		return Result{}, err
	}
	result, err := r.settle(ctx, group, entries)
	if err != nil {
		return result, err
	}
	at.at, at.finished = next, next.Done
	return result, nil
}

// settle reads the rows of entries anew, reports what differs, and repairs it.
func (r *QueueIndexRebuilder) settle(ctx context.Context, group string, entries []queue.Entry) (Result, error) {
	if len(entries) == 0 {
		return Result{}, nil
	}
	ids := make([]uuid.UUID, len(entries))
	for i := range entries {
		ids[i] = entries[i].TaskID
	}
	present := make(map[uuid.UUID]*queue.Item, len(ids))
	for part := range slices.Chunk(ids, comparePage) {
		rows, err := r.waiting.Look(ctx, group, part)
		if err != nil {
			return Result{}, err
		}
		for i := range rows {
			present[rows[i].TaskID] = &rows[i]
		}
	}
	repairs, kinds := differences(entries, present)
	if len(repairs) == 0 {
		return Result{}, nil
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		r.log.Warn("queue index differs", "group", group, "difference", kind, "tasks", kinds[kind])
	}
	n, err := r.index.Repair(ctx, group, repairs)
	return Result{Found: int64(len(repairs)), Repaired: int64(n)}, err
}

// differences are the repairs that entries need, and how many of each kind.
func differences(entries []queue.Entry, present map[uuid.UUID]*queue.Item) ([]queue.Repair, map[string]int) {
	var repairs []queue.Repair
	kinds := map[string]int{}
	for i := range entries {
		row := present[entries[i].TaskID]
		if row != nil && row.Check() != nil {
			row = nil
		}
		if kind := entries[i].Differs(row); kind != "" {
			repairs = append(repairs, queue.Repair{Entry: entries[i], Present: row})
			kinds[kind]++
		}
	}
	return repairs, kinds
}
