package reconcile

import (
	"context"
	"errors"
	"slices"
	"testing"

	"fairlane/policy"
)

func TestBoundsFollowTargetsAndExemptLanesSayWhy(t *testing.T) {
	t.Parallel()
	doc := &policy.Document{
		Scheduling: policy.Scheduling{BaseQuantumUnits: 4, RepayPermille: 500}, Switches: policy.Switches{SchedulingRunning: true},
		Lanes: []policy.Lane{
			{Code: "A", Weight: 5, WaitTargetSeconds: 60},
			{Code: "B", Weight: 5, WaitTargetSeconds: 600, MaxWaitSeconds: 1000},
			{Code: "C", Weight: 5},
			{Code: "D", Weight: 0, WaitTargetSeconds: 60},
			{Code: "E", Weight: 5, WaitTargetSeconds: 60, Paused: true},
		},
	}
	want := []LaneBound{{"A", 180, ""}, {"B", 750, ""}, {"C", 0, ""}, {"D", 180, ExemptWeightZero}, {"E", 180, ExemptPaused}}
	r := RuleOf(doc)
	if !slices.Equal(r.Lanes, want) || r.BaseQuantumUnits != 4 || r.RepayPermille != 500 {
		t.Errorf("got %+v, want %+v", r, want)
	}
	doc.Switches.SchedulingRunning = false
	for _, b := range RuleOf(doc).Lanes {
		if b.Exempt != ExemptStopped {
			t.Errorf("%s is held to a bound while nothing is scheduled", b.Lane)
		}
	}
}

// keeper counts what it is asked for.
type keeper struct {
	rule  StarvationRule
	left  int
	fails error
}

func (k *keeper) Starving(_ context.Context, r StarvationRule) (int64, error) {
	k.rule = r
	return 3, k.fails
}
func (k *keeper) Sample(context.Context) (int64, error) { return 7, k.fails }
func (k *keeper) Roll(context.Context) (int64, error)   { return 2, k.fails }
func (k *keeper) Forget(_ context.Context, limit int) (int, error) {
	n := min(limit, k.left)
	k.left -= n
	return n, k.fails
}

func TestWatchingFindsAndRepairsNothing(t *testing.T) {
	t.Parallel()
	k := &keeper{left: forgetAtATime + 1}
	var doc *policy.Document
	sweeps := Watching(k, Starvation(k, func() (*policy.Document, int64) { return doc, 1 }))
	run := func() (found []int64, failed int) {
		for _, s := range sweeps {
			r, err := s.Do(t.Context())
			if r.Repaired != 0 {
				t.Errorf("%s says that it repaired %d", s.Name, r.Repaired)
			}
			if err != nil {
				failed++
			}
			found = append(found, r.Found)
		}
		return found, failed
	}
	if _, failed := run(); failed != 1 || k.left != 0 {
		t.Errorf("without a policy %d sweeps failed, want the detector alone; %d samples are left", failed, k.left)
	}
	doc = &policy.Document{Lanes: []policy.Lane{{Code: "A"}}}
	if found, failed := run(); failed != 0 || !slices.Equal(found, []int64{7, 2, 0, 3}) || len(k.rule.Lanes) != 1 {
		t.Errorf("found %v, %d failed, rule %+v", found, failed, k.rule)
	}
	k.fails = errors.New("away")
	if _, failed := run(); failed != len(sweeps) {
		t.Errorf("%d of %d sweeps tell of the failure", failed, len(sweeps))
	}
}
