package monitor

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/policy/access"
)

// PageRows is the most rows of one page.
const PageRows = 50

// TenantQuery asks for one page of tenants, by name and then by id.
type TenantQuery struct {
	Text      string // part of code or name, any case; "" for all
	Lane      string // home lane; "" for all
	Reach     access.Reach
	AfterName string // lower-cased name and id of the last row of the page before
	AfterID   uuid.UUID
	Limit     int
}

// TenantEntry is one row of the list. Slot units, fairness milli-units.
type TenantEntry struct {
	ID           uuid.UUID
	Code, Name   string
	SortName     string // with ID the cursor to the next page
	Plan, Status string
	Lane         string
	Weight       int64
	Running      int64
	RunningUnits int64
	QueuedTasks  int64
	QueuedMilli  int64
}

// TenantCard is one tenant as its own page shows it.
type TenantCard struct {
	TenantEntry
	LaneWeights int64 // sum of the weights of the active tenants of its home lane, as in force
}

// TaskQuery asks for one page of tasks, the newest first.
type TaskQuery struct {
	State  control.TaskState // "" for all
	Lane   string
	Model  string
	Tenant uuid.UUID
	Reach  access.Reach
	Before uuid.UUID // id of the last row of the page before
	Limit  int
}

// TaskPage is one page. Filters without an index of their own are applied to a bounded number of tasks
// for each page; Next goes on behind the last task that was looked at, also when few or none matched.
type TaskPage struct {
	Tasks []TaskEntry
	Next  uuid.UUID // zero: the end
}

// TaskEntry is one row of the list.
type TaskEntry struct {
	ID          uuid.UUID
	TenantID    uuid.UUID
	TenantCode  string
	TenantName  string
	Lane        string
	Group       string
	Model       string
	Kind        control.Kind
	Band        control.Band
	State       control.TaskState
	SlotUnits   int64
	CostMilli   int64
	QueuedSince time.Time
	CreatedAt   time.Time
	StartedAt   time.Time
	FinishedAt  time.Time
	Attempts    int64
}

// TaskDetail is a task with its history.
type TaskDetail struct {
	TaskEntry
	HomeLane          string // of the tenant, for who may see it
	User              string // external id
	Project           string
	Version           int64
	ResourceClass     string
	Route             string
	ExpectedSeconds   float64
	ExpectedP95       float64
	EstimatedCost     int64 // micro-units of currency
	ActualCost        int64 // -1: not known
	Price             int64
	EstimateVersion   int64
	UsedMilli         int64   // fairness milli-units of all attempts that have ended; -1: none has, or nobody knows
	UsedSeconds       float64 // of the provider's work, likewise
	EligibleAt        time.Time
	DeadlineAt        time.Time
	CancelRequestedAt time.Time
	MaxAttempts       int64
	PolicyVersion     int64
	ErrorCode         string
	ErrorMessage      string
	Parameters        json.RawMessage
	Result            json.RawMessage
	Tries             []TaskTry
	Events            []TaskEvent // the oldest first, at most MaxTaskEvents
	MoreEvents        bool
}

// MaxTaskEvents bounds the history on a task's page.
const MaxTaskEvents = 500

// TaskTry is one attempt and what it holds.
type TaskTry struct {
	ID            uuid.UUID
	No            int64
	Stage         control.Stage
	Provider      string
	Account       string
	Pool          string
	JobID         string
	State         control.AttemptState
	FencingToken  int64
	PolicyVersion int64
	CreatedAt     time.Time
	SubmittedAt   time.Time
	DeadlineAt    time.Time
	Seconds       float64 // 0: not known
	Cost          int64   // micro-units; -1: not known
	ErrorClass    string
	ErrorCode     string
	HeldUnits     int64  // slot units of its active reservations
	Holds         string // account of its reservation: OWN, COMMON, BORROWED; "" when it never had one
}

// TaskEvent is one line of the history.
type TaskEvent struct {
	At     time.Time
	Type   string
	From   control.TaskState
	To     control.TaskState
	Actor  string
	Detail json.RawMessage
}
