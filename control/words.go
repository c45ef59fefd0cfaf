package control

import (
	"time"

	"github.com/google/uuid"
)

// Band is the priority of a task inside its tenant: 0 (set by the server only) to 4.
type Band int16

// Kind is what a task makes; user caps are kept per kind.
type Kind string

// The kinds of a task.
const (
	KindImage Kind = "IMAGE"
	KindVideo Kind = "VIDEO"
)

// Stage is a step of a task with attempts of its own.
type Stage string

// The stages of a task.
const (
	StageGeneration     Stage = "GENERATION"
	StagePostProcessing Stage = "POST_PROCESSING"
)

// Account says whose capacity a reservation uses inside its lane and pool group.
type Account string

// The accounts of a reservation.
const (
	AccountOwn      Account = "OWN"
	AccountCommon   Account = "COMMON"
	AccountBorrowed Account = "BORROWED"
)

// The lanes that ship; operators can add others.
const (
	LaneEnterprise = "ENTERPRISE_RESERVED"
	LanePaid       = "PAID_SHARED"
	LaneStandard   = "STANDARD"
	LaneBestEffort = "BEST_EFFORT"
	LaneExpensive  = "EXPENSIVE"
	LaneRecovery   = "RECOVERY"
)

// Milli is the number of milli-units in one fairness unit.
const Milli = 1000

// MicroUnits is the number of micro-units in one unit of the platform's currency.
const MicroUnits = 1_000_000

// Outbox topics and event types. A TaskQueued (…) event says "look at this task"; its truth is the row.
const (
	TopicQueue    = "queue"    // read by the scheduler's indexer; group key: pool group
	TopicDispatch = "dispatch" // read by dispatch workers; group key: lane

	EventTaskQueued      = "TaskQueued"
	EventTaskRequeued    = "TaskRequeued"
	EventTaskCanceled    = "TaskCanceled"
	EventTaskClaimed     = "TaskClaimed"
	EventDispatchRequest = "TaskDispatchRequested"
	EventCancelRequest   = "TaskCancelRequested"
)

// Database notification channels: hints only, everything that they tell is also found by polling.
const (
	NotifyQueue    = "fl_queue"    // work became eligible, a slot was released; payload: pool group
	NotifyDispatch = "fl_dispatch" // outbox rows of TopicDispatch; payload: lane
	NotifyPolicy   = "fl_policy"   // payload: version
	NotifyAccess   = "fl_access"   // payload: version
)

// DispatchMessage is the payload of a TaskDispatchRequested event.
type DispatchMessage struct {
	EventID          uuid.UUID `json:"event_id"`
	EventType        string    `json:"event_type"`
	TaskID           uuid.UUID `json:"task_id"`
	AttemptID        uuid.UUID `json:"attempt_id"`
	TenantID         uuid.UUID `json:"tenant_id"`
	QueueClass       string    `json:"queue_class"`
	Provider         string    `json:"provider"`
	ProviderAccount  string    `json:"provider_account"`
	ModelCode        string    `json:"model_code"`
	ResourceClass    string    `json:"resource_class"`
	FencingToken     int64     `json:"fencing_token"`
	PolicyVersion    int64     `json:"policy_version"`
	AggregateVersion int64     `json:"aggregate_version"`
	TraceID          string    `json:"trace_id"`
	CreatedAt        time.Time `json:"created_at"`
}

// Actor is who did something: an operator, a tenant's service, or the system itself.
type Actor struct {
	ID            uuid.UUID // zero for the system
	Name          string
	SourceAddress string // peer address, never a header of an untrusted proxy
	RequestID     string
}

// System is the actor of everything that no person asked for.
var System = Actor{Name: "system"}
