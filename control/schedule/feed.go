package schedule

import (
	"context"
	"errors"
	"log/slog"

	"github.com/google/uuid"

	"fairlane/control/queue"
)

const (
	fillPage  = 5000
	drainPage = 2000
)

// errIndex marks what the index has failed with, not PostgreSQL.
var errIndex = errors.New("queue index")

// feed keeps one pool group's index in step with PostgreSQL: all that waits at first, where the index
// does not hold it already, then what the queue events name.
type feed struct {
	store  Backlog
	group  string
	lease  string
	term   int64
	index  Index
	also   func(waits []queue.Item, gone []queue.Gone) // a second index that is being filled; nil: none
	after  uuid.UUID                                   // the fill's place
	full   bool                                        // all that waited at the start is in the index
	done   []uuid.UUID                                 // applied events, to be acknowledged
	parked map[uuid.UUID]struct{}                      // tasks whose rows cannot be right
	told   func(tasks int)                             // how many are parked
	log    *slog.Logger
}

// fill reads the next page of what waits.
func (f *feed) fill(ctx context.Context) (tasks int, err error) {
	page, err := f.store.Backlog(ctx, f.group, f.after, fillPage)
	if err != nil {
		return 0, err
	}
	if err := f.apply(page, nil); err != nil {
		return 0, err
	}
	if len(page) < fillPage {
		f.full = true
		return len(page), nil
	}
	f.after = page[len(page)-1].TaskID
	return len(page), nil
}

// drain acknowledges what was applied, applies the events that are there and says how many they were.
func (f *feed) drain(ctx context.Context) (events int, err error) {
	for {
		got, err := f.store.QueueEvents(ctx, f.group, f.lease, f.term, f.done, drainPage)
		if err != nil {
			return events, err
		}
		f.done = nil
		if len(got.IDs) == 0 {
			return events, nil
		}
		if err := f.apply(got.Waits, got.Gone); err != nil {
			return events, err
		}
		f.done = got.IDs
		events += len(got.IDs)
		if len(got.IDs) < drainPage {
			return events, nil
		}
	}
}

// apply brings changes to the index. An item that cannot be right is parked: it is counted, logged and
// left where it is, so that one bad row never stops the others.
func (f *feed) apply(waits []queue.Item, gone []queue.Gone) error {
	before := len(f.parked)
	for _, g := range gone {
		delete(f.parked, g.TaskID)
	}
	right := waits[:0]
	for i := range waits {
		w := waits[i]
		err := w.Check()
		if err == nil {
			delete(f.parked, w.TaskID)
			right = append(right, w)
			continue
		}
		f.log.Error("a queued task cannot be scheduled", "task", w.TaskID, "error", err)
		f.parked[w.TaskID] = struct{}{}
		gone = append(gone, queue.Gone{TaskID: w.TaskID, Version: w.Version, Lane: w.Lane, TenantID: w.TenantID})
	}
	if before != len(f.parked) {
		f.told(len(f.parked))
	}
	if err := f.index.Apply(right, gone); err != nil {
		return errors.Join(errIndex, err)
	}
	if f.also != nil {
		f.also(right, gone)
	}
	return nil
}
