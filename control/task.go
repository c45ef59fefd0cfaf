package control

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Task is a generation job as it is read back. Zero times mean "not yet" or "none".
type Task struct {
	ID           uuid.UUID
	TenantID     uuid.UUID
	UserID       uuid.UUID
	User         string // the tenant's own name for the user
	Project      string
	Kind         Kind
	Lane         string
	PoolGroup    string
	Band         Band
	Model        string
	State        TaskState
	Version      int64
	SlotUnits    int64
	CostMilli    int64 // fairness milli-units
	CostMicro    int64 // provider cost: estimate, and actual once it is known
	ActualMicro  int64 // -1: not known
	PriceMicro   int64
	Expected     time.Duration // mean of the provider's work
	P95          time.Duration
	Attempts     int
	MaxAttempts  int
	Progress     float64 // of the current attempt, 0..1; -1: not known
	CreatedAt    time.Time
	QueuedSince  time.Time
	EligibleAt   time.Time
	DeadlineAt   time.Time
	StartedAt    time.Time
	FinishedAt   time.Time
	CancelAsked  time.Time
	UpdatedAt    time.Time
	Parameters   json.RawMessage
	Result       json.RawMessage // nil until there is one
	ErrorCode    string
	ErrorMessage string
}

// TaskFilter narrows a list of tasks; zero fields do not narrow.
type TaskFilter struct {
	States  []TaskState
	User    string
	Project string
	Model   string
	Lane    string
}

// TaskPage is one page of a list, newest first. Next is the id after which the following page
// starts; zero on the last page. Ids are UUIDv7, so that the order is total and has no ties.
type TaskPage struct {
	Tasks []Task
	Next  uuid.UUID
}
