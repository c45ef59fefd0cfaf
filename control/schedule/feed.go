package schedule

import (
	"context"
	"log/slog"

	"github.com/google/uuid"

	"fairlane/control/queue"
)

const (
	fillPage  = 5000
	drainPage = 2000
)

// feed keeps one pool group's index in step with PostgreSQL: all that waits at first, then what the
// queue events name. An event is "look at this task", so that order and repetition do not matter.
type feed struct {
	store Backlog
	group string
	lease string
	term  int64
	index queue.Index
	log   *slog.Logger
}

// fill reads everything that waits, by id, in pages.
func (f *feed) fill(ctx context.Context) (tasks int, err error) {
	var after uuid.UUID
	for {
		page, err := f.store.Backlog(ctx, f.group, after, fillPage)
		if err != nil {
			return tasks, err
		}
		for _, item := range page {
			f.put(item)
		}
		tasks += len(page)
		if len(page) < fillPage {
			return tasks, nil
		}
		after = page[len(page)-1].TaskID
	}
}

// drain takes the events that are there and says how many tasks they named. An error leaves it open
// whether events are lost with the answer: the caller must fill a new index.
func (f *feed) drain(ctx context.Context) (tasks int, err error) {
	for {
		changed, gone, err := f.store.TakeQueueEvents(ctx, f.group, f.lease, f.term, drainPage)
		if err != nil {
			return tasks, err
		}
		for _, item := range changed {
			f.put(item)
		}
		for _, g := range gone {
			f.index.Remove(g.TaskID, g.Version)
		}
		tasks += len(changed) + len(gone)
		if len(changed)+len(gone) < drainPage {
			return tasks, nil
		}
	}
}

// put leaves out an item that cannot be right, so that one bad row never stops the others.
func (f *feed) put(item queue.Item) {
	if err := f.index.Upsert(item); err != nil {
		f.log.Error("a queued task cannot be scheduled", "task", item.TaskID, "error", err)
	}
}
