package monitor_test

import (
	"testing"
	"testing/synctest"
	"time"

	"fairlane/control/monitor"
)

// served says what every tenant of the lane was served so far, by its number.
func served(weights, totals []int64, queued int64) []monitor.TenantUse {
	var uses []monitor.TenantUse
	for i := range weights {
		uses = append(uses, monitor.TenantUse{TenantID: tenant(i), Lane: "STANDARD", HomeLane: "STANDARD", Weight: weights[i], ServedMilli: totals[i],
			QueuedTasks: queued, RunningTasks: 1})
	}
	return uses
}

func TestShareIsOfWhatTheLaneServedWithinTheWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := example()
		totals := []int64{900_000_000, 0, 5} // history before the start must not count
		f.uses = served([]int64{4, 1, 0}, totals, 3)
		m, stop := start(t, f, monitor.Config{})
		defer stop()
		if r, ok := m.State().Tenant(tenant(0)); !ok || r.Share != -1 || r.Entitled != 8000 {
			t.Errorf("before anything was served: %+v", r)
		}
		for range 24 {
			totals[0] += 4000
			totals[1] += 1000
			f.set(func() { f.uses = served([]int64{4, 1, 0}, totals, 3) })
			pass(5 * time.Second)
		}
		want := map[int][2]int64{0: {8000, 8000}, 1: {2000, 2000}, 2: {0, 0}}
		for i, w := range want {
			r, ok := m.State().Tenant(tenant(i))
			if !ok || r.Share != w[0] || r.Entitled != w[1] || !r.Backlogged {
				t.Errorf("tenant %d: share %d, entitled %d, backlogged %v, want %v", i, r.Share, r.Entitled, r.Backlogged, w)
			}
		}
		// The weights are made equal; what was served before leaves the window.
		for range 14 {
			totals[0] += 2000
			totals[1] += 2000
			f.set(func() { f.uses = served([]int64{1, 1, 0}, totals, 3) })
			pass(5 * time.Second)
		}
		for i := range 2 {
			if r, _ := m.State().Tenant(tenant(i)); r.Share != 5000 || r.Entitled != 5000 || r.ServedMilli != 24_000 {
				t.Errorf("a window after the change, tenant %d: %+v", i, r)
			}
		}
	})
}

func TestShareOfATenantThatLeftGoesToThoseWithDemand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := example()
		f.uses = served([]int64{1, 3}, []int64{0, 0}, 1)
		m, stop := start(t, f, monitor.Config{})
		defer stop()
		pass(20 * time.Second)
		f.set(func() { f.uses = served([]int64{1}, []int64{7000}, 1) })
		pass(80 * time.Second)
		if r, _ := m.State().Tenant(tenant(0)); r.Entitled != 10_000 {
			t.Errorf("alone in its lane: entitled to %d", r.Entitled)
		}
		if _, ok := m.State().Tenant(tenant(1)); ok {
			t.Error("a tenant without work still has a row")
		}
		f.set(func() { f.uses = served([]int64{1}, []int64{100}, 1) }) // a total that fell back counts for nothing
		pass(10 * time.Second)
		if r, _ := m.State().Tenant(tenant(0)); r.ServedMilli < 0 || r.Share > 10_000 {
			t.Errorf("after a total fell: %+v", r)
		}
	})
}

func TestANewTenantsFirstWorkCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := example()
		f.uses = served([]int64{1}, []int64{50_000}, 1)
		m, stop := start(t, f, monitor.Config{})
		defer stop()
		pass(10 * time.Second)
		f.set(func() { f.uses = served([]int64{1, 1}, []int64{51_000, 3000}, 1) })
		pass(10 * time.Second)
		a, _ := m.State().Tenant(tenant(0))
		b, _ := m.State().Tenant(tenant(1))
		if a.Share != 2500 || b.Share != 7500 {
			t.Errorf("1 unit against 3: %d, %d", a.Share, b.Share)
		}
	})
}
