package policy

import "github.com/google/uuid"

// SchemaVersion is the schema number that this build writes: 2 has lending, debts, earmarks, lane minimums
// and dedicated pools. Decode brings older documents up to it.
const SchemaVersion = 2

// Document is one immutable policy version: every setting of the scheduler and the gate.
// Lists are ordered: lane order is the ring order of lanes, pool order breaks ties.
type Document struct {
	Schema     int              `json:"schema"`
	Scheduling Scheduling       `json:"scheduling"`
	Lanes      []Lane           `json:"lanes"`
	PoolGroups []PoolGroup      `json:"pool_groups"`
	Plans      []Plan           `json:"plans"`
	Tenants    []TenantOverride `json:"tenants"`
	Pools      []Pool           `json:"pools"`
	Models     []Model          `json:"models"`
	Routing    []RoutingRule    `json:"routing"`
	Limits     Limits           `json:"limits"`
	Switches   Switches         `json:"switches"`
}

// Scheduling holds the settings of deficit round robin. Units are fairness units.
type Scheduling struct {
	BaseQuantumUnits   int64 `json:"base_quantum_units"`      // 1..10,000
	BurstRounds        int64 `json:"burst_rounds"`            // 1..1,000
	InitialBurstCredit int64 `json:"initial_burst_credit"`    // 0..1,000 units; a limit, never a grant
	AgingStepSeconds   int64 `json:"aging_step_seconds"`      // 10..86,400
	AgingCap           int64 `json:"aging_cap"`               // 3..4
	FitScan            int64 `json:"fit_scan"`                // 0..256
	MaxSkips           int64 `json:"max_skips"`               // 1..100
	EarmarkAfter       int64 `json:"earmark_after_seconds"`   // since first passed over; 0: off
	EarmarkTimeout     int64 `json:"earmark_timeout_seconds"` // 0: the larger of 1,200 s and the pool's largest P95
	RepayPermille      int64 `json:"repay_permille"`          // 0..900: share of a quantum that goes to a debt
	DebtTaskUnits      int64 `json:"debt_task_units"`         // 0..100,000: most that one task adds or takes
	DebtTotalUnits     int64 `json:"debt_total_units"`        // 0..100,000: most debt or credit of a tenant in a lane
	ProviderSecondBase int64 `json:"provider_second_base"`    // seconds that cost one fairness unit; 30
	CostBaseMicro      int64 `json:"cost_base_micro"`         // micro-units of currency that cost one fairness unit; 100,000
	GPUSecondBase      int64 `json:"gpu_second_base"`         // GPU seconds that cost one fairness unit; 30
}

// Strategy is how a lane charges its tenants.
type Strategy string

// DRR charges fairness units; WRR charges 1 a task.
const (
	DRR Strategy = "DRR"
	WRR Strategy = "WRR"
)

// Lane is a service class.
type Lane struct {
	Code              string        `json:"code"`
	Weight            int64         `json:"weight"` // 0..1,000,000; 0: leftovers only
	Strategy          Strategy      `json:"strategy"`
	Accounts          []LaneAccount `json:"accounts"` // one per pool group in which the lane may run
	Paused            bool          `json:"paused"`   // nothing starts; what runs goes on
	AdmissionOpen     bool          `json:"admission_open"`
	PauseWhenDegraded bool          `json:"pause_when_degraded"`
	WaitTargetSeconds int64         `json:"wait_target_seconds"` // 0: none
	MaxQueuedTasks    int64         `json:"max_queued_tasks"`
	MaxQueuedUnits    int64         `json:"max_queued_units"` // fairness units
	MaxAttempts       int64         `json:"max_attempts"`     // 1..20
	MaxWaitSeconds    int64         `json:"max_wait_seconds"` // a task waits no longer in the queue; 0: no bound of its own
}

// LaneAccount is what a lane holds in one pool group, in slot units.
type LaneAccount struct {
	PoolGroup     string   `json:"pool_group"`
	ReservedUnits int64    `json:"reserved_units"`
	HeadroomUnits int64    `json:"headroom_units"`         // of the reserve, never lent
	LendableUnits int64    `json:"lendable_units"`         // at most this much is out at a time
	LendsTo       []string `json:"lends_to"`               // lanes that may borrow; empty: nobody
	BorrowTimeout int64    `json:"borrow_timeout_seconds"` // within which a lent unit is back
	Cooldown      int64    `json:"cooldown_seconds"`       // 0..3,600 without need before lending starts again
	BorrowLimit   int64    `json:"borrow_limit_units"`     // most that the lane borrows
}

// PoolGroup is a set of pools among which a lane's capacity is counted.
type PoolGroup struct {
	Code          string `json:"code"`
	CapacityUnits int64  `json:"capacity_units"` // cap of the platform; 0: the sum of its leaf pools
}

// TenantSettings is what a plan grants each of its tenants. Slot units unless named otherwise.
type TenantSettings struct {
	Lane                string `json:"lane"` // home lane
	Weight              int64  `json:"weight"`
	ReservedUnits       int64  `json:"reserved_units"`
	BurstUnits          int64  `json:"burst_units"`
	MaxRunningTasks     int64  `json:"max_running_tasks"`
	MaxRunningUnits     int64  `json:"max_running_units"`
	MaxQueuedTasks      int64  `json:"max_queued_tasks"`
	MaxQueuedUnits      int64  `json:"max_queued_units"` // fairness units
	MaxWaitSeconds      int64  `json:"max_wait_seconds"`
	MaxCostPerMinute    int64  `json:"max_cost_per_minute"` // cost units of a budget (0.1 of the currency)
	MaxCostPerDay       int64  `json:"max_cost_per_day"`
	SubmitsPerMinute    int64  `json:"submits_per_minute"`
	UserMaxQueuedTasks  int64  `json:"user_max_queued_tasks"`
	UserMaxRunningTasks int64  `json:"user_max_running_tasks"`
	UserMaxRunningImage int64  `json:"user_max_running_image"`
	UserMaxRunningVideo int64  `json:"user_max_running_video"`
	UserSubmitsPerMin   int64  `json:"user_submits_per_minute"`
	Band                int64  `json:"band"` // default band of its tasks, 1..4
}

// Plan is a template of tenant settings.
type Plan struct {
	Code     string         `json:"code"`
	Settings TenantSettings `json:"settings"`
	Models   []string       `json:"models"` // entitled models; empty: all
}

// TenantOverride replaces single fields of a tenant's plan; nil keeps the plan's.
type TenantOverride struct {
	TenantID            uuid.UUID `json:"tenant_id"`
	Code                string    `json:"code"` // the tenant's code, for readers of the document
	Lane                *string   `json:"lane,omitempty"`
	Weight              *int64    `json:"weight,omitempty"`
	ReservedUnits       *int64    `json:"reserved_units,omitempty"`
	BurstUnits          *int64    `json:"burst_units,omitempty"`
	MaxRunningTasks     *int64    `json:"max_running_tasks,omitempty"`
	MaxRunningUnits     *int64    `json:"max_running_units,omitempty"`
	MaxQueuedTasks      *int64    `json:"max_queued_tasks,omitempty"`
	MaxQueuedUnits      *int64    `json:"max_queued_units,omitempty"`
	UserMaxQueuedTasks  *int64    `json:"user_max_queued_tasks,omitempty"`
	UserMaxRunningTasks *int64    `json:"user_max_running_tasks,omitempty"`
	UserMaxRunningImage *int64    `json:"user_max_running_image,omitempty"`
	UserMaxRunningVideo *int64    `json:"user_max_running_video,omitempty"`
}

// PoolKind tells leaves from the cap groups that contain them.
type PoolKind string

// The kinds of a pool.
const (
	PoolProvider PoolKind = "PROVIDER"
	PoolWorker   PoolKind = "WORKER"
	PoolCapGroup PoolKind = "CAP_GROUP"
)

// Pool is a capacity boundary in slot units.
type Pool struct {
	Key           string   `json:"key"`
	Kind          PoolKind `json:"kind"`
	Group         string   `json:"group"`   // pool group
	Parents       []string `json:"parents"` // cap groups that contain it
	Provider      string   `json:"provider"`
	Account       string   `json:"account"`
	Region        string   `json:"region"`
	Model         string   `json:"model"`
	CapacityUnits int64    `json:"capacity_units"`
	Preference    int64    `json:"preference"` // lower goes first
	Paused        bool     `json:"paused"`
	CanLookUp     bool     `json:"can_look_up"` // the provider can say whether it has a job; else nothing borrowed runs here

	LaneMinimums     []LaneMinimum `json:"lane_minimums"`     // units that only that lane takes
	DedicatedLanes   []string      `json:"dedicated_lanes"`   // empty: every lane
	DedicatedTenants []uuid.UUID   `json:"dedicated_tenants"` // empty: every tenant
}

// LaneMinimum keeps units of one pool for a lane.
type LaneMinimum struct {
	Lane  string `json:"lane"`
	Units int64  `json:"units"`
}

// Model is a catalogue entry: what it accepts, what it takes and what it costs.
type Model struct {
	Code          string   `json:"code"`
	Kind          string   `json:"kind"` // IMAGE or VIDEO
	ResourceClass string   `json:"resource_class"`
	Resolutions   []string `json:"resolutions"`      // first is the default
	Seconds       []int64  `json:"duration_seconds"` // accepted clip lengths; first is the default
	SlotUnits     int64    `json:"slot_units"`
	MeanSeconds   float64  `json:"mean_seconds"` // of the provider's work on the default clip
	P95Seconds    float64  `json:"p95_seconds"`
	CostMicro     int64    `json:"cost_micro"`  // what the provider takes per default clip
	PriceMicro    int64    `json:"price_micro"` // what the customer pays per default clip
	PriceAsOf     string   `json:"price_as_of"` // ISO date
	GPUSeconds    float64  `json:"gpu_seconds"`
	RetireOn      string   `json:"retire_on"` // ISO date, "" for none
	Enabled       bool     `json:"enabled"`
}

// RoutingRule sends a task to a lane; the first that matches wins, else the tenant's home lane.
type RoutingRule struct {
	ResourceClass string `json:"resource_class"` // "" matches every class
	Mark          string `json:"mark"`           // "RECOVERY": tasks marked by an operator or a reconciler
	Lane          string `json:"lane"`
}

// Limits are those of the whole platform.
type Limits struct {
	MaxQueuedTasks      int64   `json:"max_queued_tasks"`
	MaxQueuedUnits      int64   `json:"max_queued_units"`       // fairness units
	GuaranteedQueue     int64   `json:"guaranteed_queue_tasks"` // room that each tenant keeps when a lane or the platform is full
	SafeUtilisation     float64 `json:"safe_utilisation"`       // 0.1..1, for expected waits
	MaxBodyBytes        int64   `json:"max_body_bytes"`
	AttemptTimeoutFloor int64   `json:"attempt_timeout_floor_seconds"` // an attempt's deadline is at least this
	AttemptTimeoutP95   float64 `json:"attempt_timeout_p95_factor"`    // and this many times the P95
}

// Switches stop parts of the platform at once.
type Switches struct {
	AdmissionOpen     bool `json:"admission_open"`
	SchedulingRunning bool `json:"scheduling_running"`
}
