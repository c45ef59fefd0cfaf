package schedule

import (
	"context"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/queue"
	"fairlane/policy"
)

// Policies is the version in force in this process.
type Policies interface {
	Current() *policy.Version // nil before the first
	Subscribe(fn func(*policy.Version)) (cancel func())
}

// Tenants lists all customer accounts.
type Tenants interface {
	PlanList(ctx context.Context) ([]policy.Tenant, error)
}

// Observer is told what the loop does; its methods return at once.
type Observer interface {
	Cycled(took time.Duration)
	Claimed(took time.Duration, granted int, refused map[string]int)
	// Queued tells where the group's queue lies now, or that no loop of this process runs it.
	Queued(group string, s QueueState)
	// Parked tells how many queued tasks cannot be scheduled because their rows cannot be right.
	Parked(group string, tasks int)
}

// Statuses keeps what the planner of a group remembers, for people. What a holder of an older term says
// changes nothing.
type Statuses interface {
	PutStatus(ctx context.Context, group string, term int64, s plan.Status) error
}

// QueueState is where the queue of a group lies.
type QueueState struct {
	Runs    bool // this process runs the group's loop
	Shared  bool // the queue lies in the shared index
	Limited bool // the degraded form: smaller batches, longer gaps, some lanes paused
	Why     Why  // it does not lie in the shared index
	Since   time.Time
}

// Why says why the queue does not lie in the shared index; "" where it does, or where none is wanted.
type Why string

// The reasons; each is a message of the catalogue under "queue_why". Details are logged.
const (
	WhyAway     Why = "away"     // Redis does not answer
	WhyBuilding Why = "building" // the index is not there, or not whole, and is built from PostgreSQL
)

// whyOf is the reason that an error of a shared index comes down to.
func whyOf(err error) Why {
	if control.CodeOf(err) == control.CodeNotFound {
		return WhyBuilding
	}
	return WhyAway
}

// Backlog reads what waits. QueueEvents belongs to the holder of the lease of that term alone: it deletes
// the events in done and returns others; an event comes again until it is done.
type Backlog interface {
	Backlog(ctx context.Context, group string, after uuid.UUID, limit int) ([]queue.Item, error)
	QueueEvents(ctx context.Context, group, lease string, term int64, done []uuid.UUID, limit int) (queue.Events, error)
	Look(ctx context.Context, group string, tasks []uuid.UUID) ([]queue.Item, error)
}

// Store is everything that the loop reads and writes.
type Store interface {
	Backlog
	Snapshotter
	Claimer
}

// Index is the queue as the loop keeps it. Apply takes items that were checked; an error ends the index.
type Index interface {
	queue.Reader
	ByID(task uuid.UUID) (queue.Item, error)
	Len() int
	Apply(waits []queue.Item, gone []queue.Gone) error
}

// Shared is an index outside of the process. Once Err has an error it reads as empty and is of no more use.
type Shared interface {
	Index
	Err() error
	// Verify asks whether the whole of it is still there.
	Verify() error
	// Examine returns what it holds of these tasks, and of those that it has found out of place itself.
	Examine(tasks []uuid.UUID) ([]queue.Entry, error)
	// Repair sets what differs, each only if it is still as its entry has shown.
	Repair(repairs []queue.Repair) error
}

// Indexes are the shared indexes of all groups. CodeNotFound: a group's index must be built; any other
// error: there is no answer.
type Indexes interface {
	Ping(ctx context.Context) error
	// Open reads the heads of an index for one term, whose ctx it keeps.
	Open(ctx context.Context, group string, now time.Time) (Shared, error)
	// Begin makes an index ready to be written, and not to be read; anew: empty, whatever it held.
	Begin(ctx context.Context, group string, anew bool) error
	// Write applies changes to an index that somebody else reads, or nobody yet.
	Write(ctx context.Context, group string, waits []queue.Item, gone []queue.Gone) error
}

// Rebuilder makes an index that was begun hold all that waits, and lets it be read.
type Rebuilder interface {
	Rebuild(ctx context.Context, group string) error
}
