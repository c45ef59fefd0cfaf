package queue

import (
	"time"

	"github.com/google/uuid"

	"fairlane/control"
)

// Index is the side of a queue that is kept up to date with PostgreSQL. One queue holds the waiting
// tasks of one pool group. A queue belongs to one goroutine at a time.
type Index interface {
	// Upsert puts an item in, or replaces an older version of it; an older or equal version changes
	// nothing. An item with a wrong field is refused with CodeInvalid and changes nothing.
	Upsert(Item) error
	// Remove takes a task out if its version is at most the one given, and keeps versions up to that
	// one from coming back. Removing what is not there is no error.
	Remove(task uuid.UUID, version int64)
	// ByID returns a task; CodeNotFound when it is not in the queue.
	ByID(task uuid.UUID) (Item, error)
	// Depth returns what waits in a lane, delayed and parked tasks included; zero for an unknown lane.
	Depth(lane string) Depth
}

// Depth is what waits in a lane.
type Depth struct {
	Tasks  int64
	Milli  int64     // fairness milli-units
	Oldest time.Time // smallest queued_since; zero when nothing waits
}

// Reader is the side that the planner reads (control/plan declares the same methods as its port).
// A backlog is what waits of one tenant in one lane; backlogs, tasks and needs have small numbers as
// handles. A backlog's number is free for another one once it has been reported empty.
type Reader interface {
	// Advance makes the tasks that are eligible by now visible, reports every backlog whose heads may
	// have changed since the last Advance once, but not for tasks that were hidden; empty when nothing at all waits there any more, and
	// returns when the next delayed task becomes eligible; zero when none is delayed. An earlier now than
	// before brings no task back out of sight.
	Advance(now time.Time, changed func(backlog int, lane string, tenant uuid.UUID, empty bool)) time.Time
	// Heads yields, for each band and route of the backlog, the oldest visible task and, for each
	// other need of that route, its oldest one among the next scan tasks; by (queued_since, id) and
	// without the needs that skip names. The order between bands and routes is not defined.
	Heads(backlog, scan int, skip func(need int) bool, yield func(control.Head))
	// Hide takes a task that was read from Heads out of sight, or brings it back; it keeps its place.
	// A task that has left the queue meanwhile is ignored.
	Hide(ref int, task uuid.UUID, hidden bool)
	// Park takes all tasks of a user out of sight, or those of the kinds given, until the next call
	// for that user; none brings all back. They keep their place. A user without tasks may be
	// forgotten.
	Park(tenant, user uuid.UUID, kinds ...control.Kind)
	// Need returns what a need number stands for.
	Need(need int) control.Need
}
