package control_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"fairlane/control"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var attemptStates = []control.AttemptState{
	control.AttemptCreated, control.AttemptSubmitting, control.AttemptAccepted, control.AttemptRejected, control.AttemptUnknown,
	control.AttemptSucceeded, control.AttemptFailed, control.AttemptCanceled, control.AttemptLost, control.AttemptAbandoned,
}

// reach is every state that can follow from, over any number of moves.
func reach[S comparable](from S, all []S, can func(a, b S) bool) []S {
	seen := []S{from}
	for i := 0; i < len(seen); i++ {
		for _, next := range all {
			if can(seen[i], next) && !slices.Contains(seen, next) {
				seen = append(seen, next)
			}
		}
	}
	return seen
}

func TestI10_TerminalTasksNeverMoveAndAllStatesAreReached(t *testing.T) {
	t.Parallel()
	can := control.TaskState.CanBecome
	if got := reach(control.TaskQueued, control.TaskStates, can); len(got) != len(control.TaskStates) {
		t.Errorf("from QUEUED only %v are reached", got)
	}
	for _, s := range control.TaskStates {
		terminal := !slices.ContainsFunc(control.TaskStates, func(next control.TaskState) bool { return can(s, next) })
		if s.Terminal() != terminal {
			t.Errorf("%s: Terminal() is %v, the table says %v", s, s.Terminal(), terminal)
		}
		if can(s, s) {
			t.Errorf("%s becomes itself", s)
		}
		if !s.Terminal() && !can(s, control.TaskFailed) {
			t.Errorf("%s cannot fail", s)
		}
	}
	if can(control.TaskQueued, control.TaskRunning) {
		t.Error("a task runs without having been claimed")
	}
}

func TestI03_EndedAttemptsAreNotLiveAndNeverMove(t *testing.T) {
	t.Parallel()
	can := control.AttemptState.CanBecome
	if got := reach(control.AttemptCreated, attemptStates, can); len(got) != len(attemptStates) {
		t.Errorf("from CREATED only %v are reached", got)
	}
	for _, s := range attemptStates {
		moves := slices.ContainsFunc(attemptStates, func(next control.AttemptState) bool { return can(s, next) })
		if s.Live() != moves {
			t.Errorf("%s: live %v, but it can move: %v", s, s.Live(), moves)
		}
	}
	if can(control.AttemptUnknown, control.AttemptSucceeded) {
		t.Error("an unknown attempt succeeds without having been found")
	}
	if can(control.AttemptSubmitting, control.AttemptCanceled) {
		t.Error("a submit in flight is canceled on a guess")
	}
}

func TestCodeOfFindsWrappedErrorsOnly(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("outer: %w", control.Errorf(control.CodeConflict, "version %d", 7))
	if control.CodeOf(err) != control.CodeConflict || control.CodeOf(errors.New("other")) != "" || control.CodeOf(nil) != "" {
		t.Error("codes are not found where they are, or found where they are not")
	}
	if control.Invalid(nil) != nil {
		t.Error("no wrong field makes an error")
	}
	if got := control.Invalid([]control.FieldError{{Field: "weight", Key: "range"}}); control.CodeOf(got) != control.CodeInvalid {
		t.Errorf("got %v", got)
	}
}
