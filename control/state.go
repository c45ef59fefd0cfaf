package control

import "slices"

// TaskState is the state of a task; the legal moves are in taskMoves.
type TaskState string

// The states of a task.
const (
	TaskQueued            TaskState = "QUEUED"
	TaskDispatching       TaskState = "DISPATCHING"
	TaskSubmitUnknown     TaskState = "SUBMIT_UNKNOWN"
	TaskRunning           TaskState = "RUNNING"
	TaskProviderSucceeded TaskState = "PROVIDER_SUCCEEDED"
	TaskPostProcessing    TaskState = "POST_PROCESSING"
	TaskSucceeded         TaskState = "SUCCEEDED"
	TaskFailed            TaskState = "FAILED"
	TaskCanceled          TaskState = "CANCELED"
)

// TaskStates lists every task state in the order of a task's life.
var TaskStates = []TaskState{
	TaskQueued, TaskDispatching, TaskSubmitUnknown, TaskRunning, TaskProviderSucceeded,
	TaskPostProcessing, TaskSucceeded, TaskFailed, TaskCanceled,
}

var taskMoves = map[TaskState][]TaskState{
	TaskQueued:            {TaskDispatching, TaskFailed, TaskCanceled},
	TaskDispatching:       {TaskRunning, TaskSubmitUnknown, TaskQueued, TaskFailed, TaskCanceled},
	TaskSubmitUnknown:     {TaskRunning, TaskQueued, TaskFailed, TaskCanceled},
	TaskRunning:           {TaskProviderSucceeded, TaskQueued, TaskFailed, TaskCanceled},
	TaskProviderSucceeded: {TaskPostProcessing, TaskSucceeded, TaskFailed, TaskCanceled},
	TaskPostProcessing:    {TaskSucceeded, TaskProviderSucceeded, TaskFailed, TaskCanceled},
	TaskSucceeded:         nil,
	TaskFailed:            nil,
	TaskCanceled:          nil,
}

// Terminal reports whether a task in s never changes state again (I10).
func (s TaskState) Terminal() bool { return s == TaskSucceeded || s == TaskFailed || s == TaskCanceled }

// CanBecome reports whether the move from s to next is legal.
func (s TaskState) CanBecome(next TaskState) bool { return slices.Contains(taskMoves[s], next) }

// AttemptState is the state of one try at one stage.
type AttemptState string

// The states of an attempt.
const (
	AttemptCreated    AttemptState = "CREATED"
	AttemptSubmitting AttemptState = "SUBMITTING"
	AttemptAccepted   AttemptState = "ACCEPTED"
	AttemptRejected   AttemptState = "REJECTED"
	AttemptUnknown    AttemptState = "UNKNOWN"
	AttemptSucceeded  AttemptState = "SUCCEEDED"
	AttemptFailed     AttemptState = "FAILED"
	AttemptCanceled   AttemptState = "CANCELED"
	AttemptLost       AttemptState = "LOST"
	AttemptAbandoned  AttemptState = "ABANDONED"
)

// attemptMoves is the whole table. UNKNOWN → SUBMITTING is legal only where the provider dedupes
// by key; LOST leaves only when the provider speaks again or its longest run time has passed.
var attemptMoves = map[AttemptState][]AttemptState{
	AttemptCreated:    {AttemptSubmitting, AttemptCanceled, AttemptRejected},
	AttemptSubmitting: {AttemptAccepted, AttemptRejected, AttemptUnknown},
	AttemptUnknown:    {AttemptAccepted, AttemptRejected, AttemptAbandoned, AttemptSubmitting},
	AttemptAccepted:   {AttemptSucceeded, AttemptFailed, AttemptCanceled, AttemptLost},
	AttemptLost:       {AttemptSucceeded, AttemptFailed, AttemptCanceled, AttemptAbandoned},
	AttemptRejected:   nil,
	AttemptSucceeded:  nil,
	AttemptFailed:     nil,
	AttemptCanceled:   nil,
	AttemptAbandoned:  nil,
}

// Live reports whether an attempt in s may still hold a slot at the provider. LOST is live.
func (s AttemptState) Live() bool {
	switch s {
	case AttemptCreated, AttemptSubmitting, AttemptAccepted, AttemptUnknown, AttemptLost:
		return true
	}
	return false
}

// CanBecome reports whether the move from s to next is legal.
func (s AttemptState) CanBecome(next AttemptState) bool {
	return slices.Contains(attemptMoves[s], next)
}

// ReservationState is ACTIVE until released; nothing else ever happens to a reservation (I05).
type ReservationState string

// The states of a reservation.
const (
	ReservationActive   ReservationState = "ACTIVE"
	ReservationReleased ReservationState = "RELEASED"
)
