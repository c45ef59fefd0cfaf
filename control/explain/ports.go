package explain

import (
	"context"

	"github.com/google/uuid"

	"fairlane/control/plan"
	"fairlane/control/queue"
	"fairlane/policy"
)

// Facts is what is read of a waiting task, of others of its tenant, and of its lane.
type Facts struct {
	Item    queue.Item
	Tenant  policy.Tenant
	Waiting []queue.Item // of the tenant in the lane, the first of each band and route among them, the task too
	Ahead   int64        // tasks of the tenant in the lane that come before it, by band, queued_since and id
	Lane    Depth        // what waits in the lane, of all tenants
	Status  plan.Status  // what the scheduler of the group remembers; zero when it has not said
}

// Depth is what waits in a lane.
type Depth struct {
	Tasks, Milli int64
	Others       int64 // tenants with waiting tasks beside this one
}

// Store reads what waits. A task that does not wait is control.CodeNotFound.
type Store interface {
	Waits(ctx context.Context, task uuid.UUID) (Facts, error)
	Snapshot(ctx context.Context, group string, tenants []uuid.UUID, users []plan.TenantUser) (plan.Snapshot, error)
}

// Policies is the version in force in this process.
type Policies interface {
	Current() *policy.Version // nil before the first
}

// Tenants lists all customer accounts.
type Tenants interface {
	PlanList(ctx context.Context) ([]policy.Tenant, error)
}
