package monitor

import (
	"context"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/policy"
)

// Source reads the facts. Every method is one bounded set of queries over counters; none walks the
// queue, and each stays fast at 10,000 tenants and 200,000 queued tasks.
type Source interface {
	// Capacity reads accounts, pools, queue depths and the wanted policy version at one instant.
	Capacity(ctx context.Context) (Capacity, error)
	// Demand reads the use of every tenant that has work, or whose counters moved after since.
	Demand(ctx context.Context, since time.Time) ([]TenantUse, error)
	// Identify reads names and oldest waits of a few tenants; unknown ids are left out.
	Identify(ctx context.Context, ids []uuid.UUID) ([]TenantFace, error)
	// Flow counts moves of tasks by second and state entered, from since on.
	Flow(ctx context.Context, since time.Time) ([]FlowCount, error)
	// Machine reads leases, outbox and replicas.
	Machine(ctx context.Context) (Machine, error)
}

// Active is the policy in force on this replica.
type Active func() (*policy.Document, int64)

// Capacity is what Source.Capacity reads. Slot units, fairness milli-units.
type Capacity struct {
	Groups       []GroupUse
	Accounts     []AccountUse
	Pools        []PoolRow // Free, Over not yet set
	Queues       []QueueUse
	PolicyWanted int64
}

// GroupUse is a pool group's account.
type GroupUse struct {
	Group                            string
	CapacityUnits, Common, CommonUse int64
}

// AccountUse is a lane's account in a pool group.
type AccountUse struct {
	Lane, Group                                     string
	Reserved, Headroom, Own, Common, Borrowed, Lent int64
	Paused                                          bool
	Lendable, BorrowLimit                           int64
	Stopped                                         bool // it lends nothing for now
	StoppedSince                                    time.Time
}

// QueueUse is what waits and runs in one lane.
type QueueUse struct {
	Lane                       string
	QueuedTasks, QueuedMilli   int64
	RunningTasks, RunningUnits int64
	OldestAt                   time.Time // zero: nothing waits
}

// TenantUse is a tenant's use of one lane.
type TenantUse struct {
	TenantID                   uuid.UUID
	Lane, HomeLane             string
	Weight                     int64
	QueuedTasks, QueuedMilli   int64
	RunningTasks, RunningUnits int64
	ServedMilli                int64 // all claims so far
}

// TenantFace is what a row shows of a tenant beside its counters.
type TenantFace struct {
	TenantID   uuid.UUID
	Code, Name string
	OldestAt   time.Time // zero: nothing waits
}

// FlowCount is how many tasks entered a state within one second.
type FlowCount struct {
	Second time.Time
	State  string
	Tasks  int64
}

// Machine is what keeps the platform going.
type Machine struct {
	Leases     []Lease
	Outbox     []Outbox
	Replicas   []Replica
	Starvation []LaneStarvation
	Schedulers map[string]plan.Status // by pool group, without tenants
	SampledAt  time.Time              // of the newest sample of the history; zero: none yet
}

// LaneStarvation is what the starvation detector last saw of a lane.
type LaneStarvation struct {
	Lane         string
	Exempt       string // why no bound holds, a word of the family "exempt"; "": it does
	BoundSeconds int64
	OldestAt     time.Time // zero: nothing waits
	Tenants      int64     // over their bound
	Capped       int64     // over it at their own maximum, which is not starvation
	CheckedAt    time.Time
}

// Details reads single objects that somebody looks at. Unknown ids are left out.
type Details interface {
	TasksNow(ctx context.Context, ids []uuid.UUID) ([]TaskNow, error)
	TenantsNow(ctx context.Context, ids []uuid.UUID) ([]TenantNow, error)
}

// TaskNow is what moves in a task.
type TaskNow struct {
	ID       uuid.UUID
	State    control.TaskState
	Version  int64
	Attempts int64
}

// TenantNow is a tenant's use of one lane.
type TenantNow struct {
	ID                         uuid.UUID
	Lane                       string
	QueuedTasks, QueuedMilli   int64
	RunningTasks, RunningUnits int64
	DebtMilli                  int64
	OldestAt                   time.Time // zero: nothing waits
}

// Lease is single-runner work and who has it.
type Lease struct {
	Name, Holder string
	Term         int64
	ExpiresAt    time.Time
	Live         bool // by the database's clock
}

// Outbox is what a topic has not delivered yet.
type Outbox struct {
	Topic    string
	Rows     int64 // counted up to MaxOutboxRows
	OldestAt time.Time
}

// MaxOutboxRows bounds the count of undelivered rows.
const MaxOutboxRows = 10_000

// Replica is the policy version that a replica has in force.
type Replica struct {
	Name    string
	Version int64
	Error   string
	SeenAt  time.Time
	Fresh   bool // by the database's clock
}
