package page

import (
	"fairlane/views/part"
)

// Tasks is one page of the list of tasks, the newest first.
type Tasks struct {
	State, Lane, Tenant, Model string // filters as asked for
	States, Lanes, Models      []string
	TenantError                string
	Rows                       []TaskLine
	More                       bool // nothing matched here, but the list goes on
	Pager                      part.Pager
}

// TaskLine is a task as the list shows it, ready to be shown.
type TaskLine struct {
	ID, State, Kind, Lane, Model, TenantID, Tenant string
	Band, Attempts, SlotUnits                      int64
	Created, Local, Machine                        string
	Waited, Ran                                    string
}

// stateKinds is how a state's badge looks; the word says what it is.
var stateKinds = map[string]string{
	"SUCCEEDED": "good", "FAILED": "bad", "CANCELED": "", "QUEUED": "", "RUNNING": "acc", "DISPATCHING": "acc",
	"SUBMIT_UNKNOWN": "warn", "PROVIDER_SUCCEEDED": "acc", "POST_PROCESSING": "acc",
	"ACCEPTED": "acc", "REJECTED": "bad", "UNKNOWN": "warn", "LOST": "warn", "ABANDONED": "bad",
}

// Task is a task with its history.
type Task struct {
	ID, State, Title string
	Live             Live
	Address, Seen    string // of what is made anew when the task moves
	Why              Why
	Facts            []Fact
	Tries            []TaskTry
	Events           []TaskEvent
	MoreEvents       int64 // how many are shown when there are more; 0: all
	Parameters       string
	Result           string
	MayCancel        bool
	Canceled         string // what came of a cancel that was just asked for
	Reason           string
	ReasonError      string
}

// TaskTry is one attempt, ready to be shown.
type TaskTry struct {
	No, Provider, Pool, Job, State, Holds, Fence, Began, Took, Error string
}

// TaskEvent is one line of the history, ready to be shown.
type TaskEvent struct {
	UTC, Local, Machine, Type, From, To, Actor, Detail string
}
