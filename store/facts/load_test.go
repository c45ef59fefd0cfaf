package facts_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"fairlane/control/admit"
	"fairlane/store/facts"
)

func TestLoadsAreSumsAtMostASecondOld(t *testing.T) {
	t.Parallel()
	g := newGatehouse(t, 2)
	clock := newHands()
	loads := facts.NewLoads(g.db, clock.now, 0)
	empty, err := loads.Load(t.Context())
	if err != nil || empty.Tasks != 0 || len(empty.Lanes) != 0 {
		t.Fatalf("%+v %v", empty, err)
	}
	g.fill(t, 3, "")
	wide := g.newTask(1, "u", "wide")
	wide.SlotUnits, wide.FairnessMilli, wide.MeanSeconds, wide.Lane = 4, 16_000, 120, "COSTLY"
	g.insert(t, wide)
	clock.move(999 * time.Millisecond)
	if same, _ := loads.Load(t.Context()); same != empty {
		t.Error("read again before a second had passed")
	}
	clock.move(time.Millisecond)
	got, err := loads.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Tasks != 4 || got.Milli != 22_000 || got.Lanes["MAIN"].Tasks != 3 || got.Lanes["MAIN"].Milli != 6_000 || got.At.IsZero() {
		t.Errorf("sums %+v %+v", got, got.Lanes["MAIN"])
	}
	if main := got.Lanes["MAIN"].Tenants[g.tenants[0]]; main != (admit.TenantLoad{Tasks: 3, Milli: 6_000, Weight: 2}) {
		t.Errorf("tenant %+v", main)
	}
	if c := got.Lanes["COSTLY"]; c.SlotSeconds != 480 || c.SampleMilli != 16_000 {
		t.Errorf("mix of work %+v", c)
	}
}

func TestLoadsAreReadOnceForAll(t *testing.T) {
	t.Parallel()
	g := newGatehouse(t, 1)
	loads := facts.NewLoads(g.db, newHands().now, 0)
	var mu sync.Mutex
	got := map[*admit.Load]bool{}
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			l, err := loads.Load(context.Background())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			got[l] = true
			mu.Unlock()
		})
	}
	wg.Wait()
	if len(got) != 1 {
		t.Errorf("32 askers got %d different answers", len(got))
	}
	g.db.Close()
	late := facts.NewLoads(g.db, nil, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := late.Load(ctx); err == nil {
		t.Error("a closed database answered")
	}
}
