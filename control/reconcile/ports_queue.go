package reconcile

import (
	"context"
	"time"

	"github.com/google/uuid"

	"fairlane/control/queue"
)

// Waiting reads what waits in PostgreSQL.
type Waiting interface {
	// Backlog pages through all that waits in a pool group, by id.
	Backlog(ctx context.Context, group string, after uuid.UUID, limit int) ([]queue.Item, error)
	// Look returns those of the tasks that wait in the group.
	Look(ctx context.Context, group string, tasks []uuid.UUID) ([]queue.Item, error)
}

// QueueIndex is a queue index that lies outside of PostgreSQL.
type QueueIndex interface {
	// Ready tells whether the index is there and may be read.
	Ready(ctx context.Context, group string) (bool, error)
	// Entries returns what the index holds of tasks, in their order.
	Entries(ctx context.Context, group string, tasks []queue.Gone) ([]queue.Entry, error)
	// Scan walks over all that the index holds.
	Scan(ctx context.Context, group string, at queue.Cursor, limit int) ([]queue.Entry, queue.Cursor, error)
	// Repair sets what differs, each only if it is still as its entry has shown, and says how many were.
	Repair(ctx context.Context, group string, repairs []queue.Repair) (int, error)
	// Finish says that the index holds all that waits.
	Finish(ctx context.Context, group string) error
}

// Leases lets one process at a time rebuild a group's index; control/lead declares the same methods.
type Leases interface {
	Acquire(ctx context.Context, name, holder string, ttl time.Duration) (term int64, held bool, err error)
	Renew(ctx context.Context, name, holder string, term int64, ttl time.Duration) (bool, error)
	Release(ctx context.Context, name, holder string, term int64) error
}
