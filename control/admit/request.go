package admit

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
)

// The bounds of a request's fields; web/api says them, this room checks them.
const (
	MaxUserName        = 128       // characters of the external user id
	MaxKey             = 255       // characters of an idempotency key
	MaxPrompt          = 4000      // characters
	MaxProject         = 128       // characters
	MaxSeed            = 1<<53 - 1 // the largest whole number that every JSON reader keeps
	MaxDeadlineSeconds = 7 * 24 * 3600
	MaxUsersPerTenant  = 1_000_000 // users are made on first use, up to this many in a tenant
)

// KeyLifetime is how long a stored answer is kept for its idempotency key.
const KeyLifetime = 7 * 24 * time.Hour

// Principal is who asks: a platform service with a token of a tenant.
type Principal struct {
	TenantID   uuid.UUID
	TenantCode string
	TokenID    uuid.UUID
	TokenName  string
	PlanCode   string
	Suspended  bool // the tenant; nothing new is accepted
}

// Request is what is asked for. Prices, costs, lanes and priorities are the server's to say.
type Request struct {
	User            string `json:"user"` // the tenant's own id of its user
	Project         string `json:"project,omitempty"`
	Model           string `json:"model"`
	Prompt          string `json:"prompt"`
	NegativePrompt  string `json:"negative_prompt,omitempty"`
	Resolution      string `json:"resolution,omitempty"`       // "": the model's default
	Seconds         int64  `json:"duration_seconds,omitempty"` // 0: the model's default
	Seed            *int64 `json:"seed,omitempty"`
	DeadlineSeconds int64  `json:"deadline_seconds,omitempty"` // from now, for starting; 0: none
	TraceParent     string `json:"-"`                          // W3C; "": none
}

// hash identifies the body under an idempotency key: the request after parsing, so that white space
// and the order of keys do not matter. The trace context is not part of it. Fields that are added
// later must be left out when empty, or an upgrade would make every stored key look reused.
func (r Request) hash() []byte {
	text, err := json.Marshal(r)
	if err != nil { // only channels and functions cannot be marshalled, and there are none
		panic(err)
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// Answer is what an accepted request gets, then and for every repetition of its key.
type Answer struct {
	TaskID           uuid.UUID         `json:"task_id"`
	Decision         Decision          `json:"decision"`
	State            control.TaskState `json:"state"` // when it was accepted
	Lane             string            `json:"queue_class"`
	PolicyVersion    int64             `json:"policy_version"`
	FairnessMilli    int64             `json:"fairness_milli"`
	SlotUnits        int64             `json:"slot_units"`
	PriceMicro       int64             `json:"price_micro"`
	ExpectedSeconds  float64           `json:"expected_seconds"`
	QueuedAt         time.Time         `json:"queued_at"`
	EstimatedStart   *time.Time        `json:"estimated_start_at,omitempty"` // none where nothing is promised
	EstimatedStart90 *time.Time        `json:"estimated_start_p90_at,omitempty"`
	PositionLevel    Level             `json:"queue_position_level"`
	Replayed         bool              `json:"-"` // answered from the stored answer of its key
}

// Level is a coarse place in the queue; an exact one would change with every neighbour's task.
type Level string

// The levels.
const (
	LevelShort  Level = "SHORT"
	LevelMedium Level = "MEDIUM"
	LevelLong   Level = "LONG"
)
