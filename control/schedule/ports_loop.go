package schedule

import (
	"context"
	"time"

	"github.com/google/uuid"

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
}

// Backlog reads what waits. TakeQueueEvents belongs to the holder of the lease of that term alone.
type Backlog interface {
	Backlog(ctx context.Context, group string, after uuid.UUID, limit int) ([]queue.Item, error)
	TakeQueueEvents(ctx context.Context, group, lease string, term int64, limit int) ([]queue.Item, []queue.Gone, error)
}

// Store is everything that the loop reads and writes.
type Store interface {
	Backlog
	Snapshotter
	Claimer
}

// planTenants is the list in the planner's words.
func planTenants(list []policy.Tenant) []plan.TenantPlan {
	out := make([]plan.TenantPlan, len(list))
	for i, t := range list {
		out[i] = plan.TenantPlan{ID: t.ID, Code: t.Code, PlanCode: t.PlanCode, Suspended: !t.Active()}
	}
	return out
}
