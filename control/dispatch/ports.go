package dispatch

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/provider"
)

// Attempts moves attempts between CREATED and their end. Every move is a compare-and-set on state and
// fencing token; doing it again, or late, changes nothing. Times are the database's.
type Attempts interface {
	// Begin moves CREATED → SUBMITTING where nobody asked to cancel, and says for each ref, in order,
	// what it found. An attempt that is still SUBMITTING after `overdue` is due for a check.
	Begin(ctx context.Context, refs []Ref, overdue time.Duration) ([]Begun, error)
	// Move applies moves to ACCEPTED, UNKNOWN or LOST together with what they mean for task and
	// reservation; it tells for each, in order, whether it changed anything.
	Move(ctx context.Context, moves []Move) ([]bool, error)
	// Note records what checks brought: the next one, progress, and a longer lease where the provider answered.
	Note(ctx context.Context, notes []Note, lease time.Duration) error
}

// Checks hands out attempts that want to be looked at.
type Checks interface {
	// Due leases at most limit attempts of these providers whose next check has come; nobody else gets them
	// before `hold` is over. A SUBMITTING one comes whatever its provider is, and so does one for which
	// nobody has come within hold: no process that speaks to its provider is there.
	Due(ctx context.Context, providers []string, limit int, hold time.Duration) ([]Check, error)
	// Hasten makes live attempts due now; ids are of attempts or of their tasks.
	Hasten(ctx context.Context, ids []uuid.UUID) error
	// Reemit writes the dispatch event again for attempts that are CREATED for longer than age, at
	// most once each while it is not taken; it returns how many.
	Reemit(ctx context.Context, age time.Duration, limit int) (int, error)
}

// CallbackStore keeps callbacks until they are handled.
type CallbackStore interface {
	// Store keeps a callback; one that is kept already is not kept again and is no error.
	// control.CodeNotFound when the attempt does not exist or the token is not its own.
	Store(ctx context.Context, c StoredCallback) error
	// Open leases at most limit callbacks that are not handled, oldest first.
	Open(ctx context.Context, limit int, hold time.Duration) ([]OpenCallback, error)
	// Settle closes callbacks or puts them off.
	Settle(ctx context.Context, outcomes []CallbackOutcome) error
}

// Finding is what Begin found.
type Finding string

// The findings.
const (
	FoundBegun    Finding = "BEGUN"    // now SUBMITTING; the caller must submit and nobody else will
	FoundCanceled Finding = "CANCELED" // still CREATED, but somebody asked to cancel: end it
	FoundPast     Finding = "PAST"     // not CREATED any more, or the fence is stale: nothing to do
	FoundMissing  Finding = "MISSING"  // no such attempt, or not visible yet
)

// Begun is a finding with the order, which is whole for BEGUN and CANCELED only.
type Begun struct {
	Finding Finding
	Order   Order
}

// Order is everything that a submit needs.
type Order struct {
	Ref
	TaskID        uuid.UUID
	AttemptNo     int
	Lane          string
	Pool          string
	Provider      string
	Account       string
	Model         string
	Kind          control.Kind
	Key           string
	CallbackToken string
	Parameters    json.RawMessage
	Trace         string
	Expected      time.Duration // mean of the provider's work
	Deadline      time.Time
}

// Move is one change of an attempt's state that does not end it.
type Move struct {
	Ref
	To    control.AttemptState // ACCEPTED, UNKNOWN or LOST
	JobID string               // for ACCEPTED
	Class provider.Class       // for UNKNOWN and LOST
	Code  string
	Raw   string
	Next  time.Duration // until the next check
	Lease time.Duration // of the reservations, from now; for ACCEPTED
}

// Note is what a check brought when it did not move the attempt.
type Note struct {
	Ref
	Answered   bool    // the provider answered: lease is extended, the count of silent checks starts again
	Progress   float64 // 0..1; negative: not told
	CancelSent bool
	Next       time.Duration
}

// Check is an attempt that wants to be looked at.
type Check struct {
	Ref
	TaskID          uuid.UUID
	AttemptNo       int
	State           control.AttemptState
	Provider        string
	Account         string
	Model           string
	Key             string
	JobID           string
	Now             time.Time // the database's, when it was handed out
	SubmitStarted   time.Time
	SubmitEnded     time.Time // zero: nobody knows
	Deadline        time.Time
	Expected        time.Duration
	P95             time.Duration
	Silent          int // checks since the provider last answered, with this one
	CancelRequested bool
	CancelSent      bool
}

// StoredCallback is a callback as it is kept. AttemptID is zero for one that names only a job.
type StoredCallback struct {
	ID        uuid.UUID
	Provider  string
	AttemptID uuid.UUID
	Token     string // must be the attempt's own
	Signed    bool
	Event     provider.Status
	Body      string
	Digest    []byte
}

// OpenCallback is a callback to handle, with its attempt where that is known.
type OpenCallback struct {
	ID      uuid.UUID
	Signed  bool
	Event   provider.Status
	Age     time.Duration
	Matched bool
	Check   Check // for Matched; any state
}

// CallbackOutcome closes a callback, or puts it off when Outcome is empty.
type CallbackOutcome struct {
	ID      uuid.UUID
	Outcome string
	Again   time.Duration
}
