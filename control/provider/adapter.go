package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
)

// Adapter speaks one provider's language. Methods are safe for concurrent use and end when ctx does.
type Adapter interface {
	// Submit sends the job at most once over the wire and says what came of it. It has no error:
	// whatever goes wrong is one of the outcomes.
	Submit(ctx context.Context, s Submission) Answer
	// Status reads a job. An error says nothing about the job.
	Status(ctx context.Context, job Job) (Status, error)
	// Cancel asks for the end of a job. The job's fate is known from Status or a callback only.
	Cancel(ctx context.Context, job Job) error
	// Lookup reads the job that was made under our key; State is Absent when the provider has none.
	// An error says nothing. Providers without a look-up answer ErrCannot.
	Lookup(ctx context.Context, job Job) (Status, error)
	// ParseCallback checks the signature, where there is one, and reads the event.
	ParseCallback(r CallbackRequest) (Callback, error)
}

// Submission is one job as it is sent.
type Submission struct {
	AttemptID   uuid.UUID
	Key         string // our key; unique per attempt
	Account     string
	Pool        string
	Model       string
	Kind        control.Kind
	Parameters  json.RawMessage
	CallbackURL string // "" for none
	Trace       string // W3C traceparent, "" for none
}

// Job names a job at the provider: by its id where that is known, by our key otherwise.
type Job struct {
	ID      string
	Key     string
	Account string
	Model   string
}

// JobState is what a provider says about a job, in our words.
type JobState string

// The states of a job at a provider.
const (
	JobQueued    JobState = "QUEUED" // accepted, not yet being made
	JobRunning   JobState = "RUNNING"
	JobSucceeded JobState = "SUCCEEDED"
	JobFailed    JobState = "FAILED"
	JobCanceled  JobState = "CANCELED"
	JobAbsent    JobState = "ABSENT" // the provider does not know it, or no longer; never a failure by itself
)

// Ended reports whether the provider has said its last word on the job.
func (s JobState) Ended() bool { return s == JobSucceeded || s == JobFailed || s == JobCanceled }

// Status is what a provider says about a job.
type Status struct {
	State     JobState
	JobID     string
	Key       string  // our key, where the provider gives it back
	Progress  float64 // 0..1; negative: not told
	Result    json.RawMessage
	Class     Class // for JobFailed
	Code      string
	Message   string
	Retry     bool    // for JobFailed: another try may succeed
	Seconds   float64 // that the provider worked; 0: not told
	CostMicro int64   // micro-units of currency; -1: not told
	Raw       string  // without secrets, at most MaxRaw bytes
}

// CallbackRequest is a callback as it came in.
type CallbackRequest struct {
	Header http.Header
	Body   []byte
	At     time.Time // when it came in; bounds the age of a signature
}

// Callback is an event that a provider told us. One that is not Signed is a hint to ask, not a fact.
type Callback struct {
	Signed bool
	Status Status
}
