package facts

import (
	"math"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/dispatch"
	"fairlane/control/estimate"
)

// maxRetryAfter bounds what a provider may ask us to wait.
const maxRetryAfter = 24 * time.Hour

// endDecision gathers what the endings of a batch change.
type endDecision struct {
	held    *heldRows
	ledger  *ledger
	journal *journal

	attempts []endedAttempt
	tasks    []endedTask
	released []uuid.UUID
	limits   map[string]estimate.DebtLimits // by lane; lanes without keep no debt
	samples  []endedSample
}

type endedAttempt struct {
	id      uuid.UUID
	from    control.AttemptState
	token   int64
	ending  *dispatch.Ending
	seconds float64 // as told; 0: not
	cost    int64   // as told; -1: not

	used, held float64 // seconds
	milli      *int64  // used; nil: not known
	settled    int64
}

type endedTask struct {
	id             uuid.UUID
	version        int64 // before
	moves          int64
	state          control.TaskState
	retryAfter     time.Duration
	more           int64 // tries that the task may make beyond its limit: one that did not count
	cost           int64
	result         string
	code, message  string
	endedWithError bool
}

func (d *endDecision) decide(e *dispatch.Ending) dispatch.Ended {
	out := dispatch.Ended{AttemptID: e.AttemptID}
	a := d.held.attempts[e.AttemptID]
	t := d.held.tasks[a.task]
	out.TaskID, out.PoolGroup, out.TaskState = t.id, t.group, t.state
	if a.token != e.FencingToken {
		out.Why = control.CodeFenced
		return out
	}
	if !a.state.CanBecome(e.State) {
		out.Why = control.CodeIllegalMove
		if !a.state.Live() {
			out.Why = control.CodeConflict
		}
		return out
	}
	path := taskPath(t, a.id, e)
	for at, i := t.state, 0; i < len(path); at, i = path[i], i+1 {
		if !at.CanBecome(path[i]) {
			out.Why = control.CodeIllegalMove
			return out
		}
	}
	out.Settled = d.endAttempt(t, a, e)
	if len(path) > 0 {
		d.moveTask(t, a, e, path)
	} else {
		d.journal.event(t.id, a.id, control.EventAttemptReleased, t.state, t.state, control.System.Name, endingDetail(e))
	}
	out.TaskState, out.Applied = t.state, true
	return out
}

// taskPath is the way of the task from here; empty when it has moved on without this attempt, which
// still gives back what it holds.
func taskPath(t *taskRow, attempt uuid.UUID, e *dispatch.Ending) []control.TaskState {
	if t.state.Terminal() || t.attempt != attempt {
		return nil
	}
	switch {
	case e.State == control.AttemptSucceeded: // a task without a second stage is done at once
		return []control.TaskState{control.TaskProviderSucceeded, control.TaskSucceeded}
	case e.State == control.AttemptCanceled, t.cancelAsked:
		return []control.TaskState{control.TaskCanceled}
	case e.Retry && !t.overdue && (t.made < t.max || e.Uncounted && t.max < dispatch.MaxTries):
		return []control.TaskState{control.TaskQueued}
	}
	return []control.TaskState{control.TaskFailed}
}

// endAttempt gives back what the attempt holds, by what its rows say and nothing else, and corrects
// what its claim was charged.
func (d *endDecision) endAttempt(t *taskRow, a *attemptRow, e *dispatch.Ending) estimate.Settlement {
	row := endedAttempt{id: a.id, from: a.state, token: a.token, ending: e, cost: max(-1, e.ActualCost)}
	if e.ActualSeconds > 0 && !math.IsInf(e.ActualSeconds, 1) {
		row.seconds = e.ActualSeconds
	}
	settled := d.settle(t, a, &row)
	d.attempts = append(d.attempts, row)
	a.state = e.State
	reservations := d.held.reservations[a.id]
	var units int64
	for i := range reservations {
		r := &reservations[i]
		d.released = append(d.released, r.id)
		d.ledger.release(r)
		d.journal.hint(control.NotifyQueue, r.group)
		units += r.units
	}
	if len(reservations) > 0 {
		r := &reservations[0]
		d.ledger.running(r.tenant, r.user, r.lane, r.kind, units, -1)
	}
	return settled
}

func (d *endDecision) moveTask(t *taskRow, a *attemptRow, e *dispatch.Ending, path []control.TaskState) {
	row := endedTask{id: t.id, version: t.version, moves: int64(len(path)), state: path[len(path)-1], cost: max(-1, e.ActualCost)}
	for _, to := range path {
		d.journal.event(t.id, a.id, taskEventOf[to], t.state, to, control.System.Name, endingDetail(e))
		t.state = to
		t.version++
	}
	switch row.state {
	case control.TaskSucceeded:
		row.result = storableJSON(e.Result)
	case control.TaskQueued:
		row.retryAfter = min(max(0, e.RetryAfter), maxRetryAfter)
		if e.Uncounted && t.max < dispatch.MaxTries {
			t.max++
			row.more = 1
		}
		d.ledger.queued(t, 1)
		d.journal.queueEvent(control.EventTaskRequeued, t, t.version)
	case control.TaskFailed:
		row.endedWithError = true
		row.code, row.message = storableText(firstOf(e.ErrorCode, e.ErrorClass, string(e.State)), maxCode), storableText(e.ErrorMessage, maxMessage)
	}
	d.tasks = append(d.tasks, row)
}

var taskEventOf = map[control.TaskState]string{
	control.TaskProviderSucceeded: control.EventTaskProviderSucceeded,
	control.TaskSucceeded:         control.EventTaskSucceeded,
	control.TaskQueued:            control.EventTaskRequeued,
	control.TaskFailed:            control.EventTaskFailed,
	control.TaskCanceled:          control.EventTaskCanceled,
}

func endingDetail(e *dispatch.Ending) map[string]any {
	detail := map[string]any{"attempt": e.State}
	if e.ErrorClass != "" {
		detail["error_class"] = storableText(e.ErrorClass, maxCode)
	}
	if e.ErrorCode != "" {
		detail["error_code"] = storableText(e.ErrorCode, maxCode)
	}
	return detail
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
