package dispatch

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/estimate"
)

// Ref names an attempt together with the fence under which the caller acts. A stale fence changes nothing.
type Ref struct {
	AttemptID    uuid.UUID
	FencingToken int64
}

// Ending is how an attempt ended, for certain. It releases everything that the attempt held.
type Ending struct {
	Ref
	State         control.AttemptState // SUCCEEDED, FAILED, CANCELED, REJECTED or ABANDONED
	Retry         bool                 // the task may go back to the queue, if tries are left and nobody asked to cancel
	Uncounted     bool                 // with Retry: the job is not at fault and was not begun; the try does not count while the task has made fewer than MaxTries
	RetryAfter    time.Duration        // not eligible before; counted from the database's now
	ErrorClass    string               // one of a short list: TIMEOUT, RATE_LIMITED, REFUSED, INTERNAL, …
	ErrorCode     string
	ErrorMessage  string
	RawAnswer     string          // without secrets, cut to 4 KiB
	ActualSeconds float64         // 0: not known
	ActualCost    int64           // micro-units of currency; -1: not known, the estimate stands
	Result        json.RawMessage // output asset, for SUCCEEDED
}

// MaxTries bounds the attempts of a task, those that do not count included. With the waits between them
// a provider may be away for more than an hour before a task fails over it.
const MaxTries = 20

// Ended is what came of one Ending, in the order of the request.
type Ended struct {
	AttemptID uuid.UUID
	TaskID    uuid.UUID
	PoolGroup string
	TaskState control.TaskState   // after the transaction
	Applied   bool                // false: the attempt had ended before, or the fence is stale; nothing changed
	Why       control.Code        // why not applied: CodeConflict (ended before), CodeFenced, CodeIllegalMove, CodeNotFound; else ""
	Settled   estimate.Settlement // zero when not applied
}

// Ender ends many attempts in one transaction: attempts, tasks, reservations, every counter, task
// events, and a queue event for each task that goes back. Repeating it is harmless (I05).
type Ender interface {
	End(ctx context.Context, endings []Ending) ([]Ended, error)
}
