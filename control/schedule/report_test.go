package schedule_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"fairlane/control/plan"
	"fairlane/control/schedule"
	"fairlane/store/facts"
)

const (
	remembered = `SELECT count(*) FROM scheduler_status s, jsonb_array_elements(nullif(s.status -> 'tenants', 'null')) WHERE pool_group = 'default'`
	ofTerm     = `SELECT coalesce(max(term), 0)::int FROM scheduler_status WHERE pool_group = 'default'`
)

// What the planner remembers reaches PostgreSQL while there is work, and names nobody once there is none;
// a later term replaces it, an earlier one cannot.
func TestTrap_D18_TheStatusOfARunningLoopIsKeptUnderItsTerm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 2)
	statuses, leases := facts.NewStatuses(w.facts), facts.NewLeases(w.facts)
	begin := func() (term int64, end func()) {
		t.Helper()
		term, held, err := leases.Acquire(t.Context(), lease, "test", time.Minute)
		if err != nil || !held {
			t.Fatal(held, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.loop(schedule.Config{Statuses: statuses}).Run(ctx, term) }()
		return term, func() {
			stop()
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if err := leases.Release(t.Context(), lease, "test", term); err != nil {
				t.Error(err)
			}
		}
	}
	w.admit(0, 3)
	w.admit(1, 3)
	first, end := begin()
	w.await(2, dispatching)
	w.await(2, remembered)
	w.await(int(first), ofTerm)
	all, err := statuses.Statuses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := all[group]
	if s.Version != 1 || s.At.IsZero() || len(s.Tenants) != 2 || s.Tenants[0].Lane != "STANDARD" || s.Tenants[0].Tenant == s.Tenants[1].Tenant {
		t.Errorf("%+v", s)
	}
	lanes := map[string]plan.LaneStatus{}
	for _, l := range s.Lanes {
		lanes[l.Lane] = l
	}
	if l := lanes["STANDARD"]; l.Waiting != 2 {
		t.Errorf("two tenants wait in the lane: %+v", s.Lanes)
	}
	end()

	second, end := begin()
	w.release()
	w.await(int(second), ofTerm)
	w.await(0, queued)
	w.await(0, remembered) // at once, although little time has passed
	if second <= first {
		t.Errorf("term %d after %d", second, first)
	}
	late := plan.Status{At: time.Now().Add(time.Hour), Version: 99, Tenants: s.Tenants}
	if err := statuses.PutStatus(t.Context(), group, first, late); err != nil {
		t.Fatal(err)
	}
	if n := w.number(remembered); n != 0 || w.number(ofTerm) != int(second) {
		t.Errorf("what an earlier holder says has replaced it: %d tenants of term %d", n, w.number(ofTerm))
	}
	end()
}
