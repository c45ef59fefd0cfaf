package admit

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/estimate"
	"fairlane/policy"
)

// Policies gives the policy in force; nil before the first.
type Policies interface {
	Current() *policy.Version
}

// Store keeps tasks, the answers of idempotency keys and the users.
type Store interface {
	// StoredAnswer returns the answer of a key; control.CodeNotFound when there is none.
	StoredAnswer(ctx context.Context, tenant uuid.UUID, key string) (StoredAnswer, error)
	// Standing tells what is known of the tenant and its user of that name; one that is not known is not blocked.
	Standing(ctx context.Context, tenant uuid.UUID, user string) (Standing, error)
	// InsertTasks admits all that it can of a batch in one transaction, and answers in the order of the batch.
	InsertTasks(ctx context.Context, tasks []NewTask) ([]Inserted, error)
}

// Estimates gives the version of the estimates in force; nil knows the priors only.
type Estimates interface {
	Book() *estimate.Book
}

// Loads reads what waits. The answer may be up to a second old.
type Loads interface {
	Load(ctx context.Context) (*Load, error)
}

// Standing is what a tenant and one of its users have earned.
type Standing struct {
	Blocked bool            // the user
	Factor  estimate.Factor // of the tenant
}

// StoredAnswer is what a key was answered with.
type StoredAnswer struct {
	RequestHash []byte
	Answer      json.RawMessage
}

// NewTask is one task to insert, with the bounds that only the transaction can check.
type NewTask struct {
	TaskID          uuid.UUID
	TenantID        uuid.UUID
	User            string // external id; the user is made when it is new
	Project         string
	Key             string
	RequestHash     []byte
	Answer          json.RawMessage
	Kind            control.Kind
	Lane            string
	Group           string
	Band            control.Band
	ResourceClass   string
	Model           string
	Route           string
	SlotUnits       int64
	FairnessMilli   int64
	BaseMilli       int64 // of FairnessMilli before the tenant's factor; 0: the same
	CostMicro       int64
	PriceMicro      int64
	MeanSeconds     float64
	P95Seconds      float64
	GPUSeconds      float64
	Bases           estimate.Bases // under which the amounts were estimated; zeros: the shipped ones
	DeadlineSeconds int64          // 0: none
	MaxAttempts     int64
	PolicyVersion   int64
	EstimateVersion int64
	Parameters      json.RawMessage
	TraceParent     string
	Actor           string
	Crowded         *Refusal // the lane or the platform is full: only a tenant below Guaranteed may still queue
	Guaranteed      int64    // tasks
}

// Inserted is the outcome of one NewTask. Exactly one of Stored and Err is set, or neither: it was inserted.
type Inserted struct {
	Stored *StoredAnswer // somebody was faster with the same key; hash and answer are his
	Err    error         // *Refusal, or *control.Error: KEY_BUSY, FORBIDDEN
}

// Load is the backlog of all lanes.
type Load struct {
	At    time.Time
	Lanes map[string]*LaneLoad
	Tasks int64 // queued on the whole platform
	Milli int64 // fairness milli-units of them
}

// LaneLoad is the backlog of one lane.
type LaneLoad struct {
	Tasks, Milli int64
	Tenants      map[uuid.UUID]TenantLoad // those that have something queued in the lane
	SlotSeconds  float64                  // slot units × expected seconds of a sample of its oldest tasks
	SampleMilli  int64                    // fairness milli-units of the same sample
}

// TenantLoad is what one tenant has queued in a lane.
type TenantLoad struct{ Tasks, Milli, Weight int64 }
