package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/queue"
	"fairlane/policy"
)

func TestCompileRefusesWhatWouldBreakPlanning(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*policy.Document){
		"scheduling.base_quantum_units":   func(d *policy.Document) { d.Scheduling.BaseQuantumUnits = 0 },
		"scheduling.burst_rounds":         func(d *policy.Document) { d.Scheduling.BurstRounds = 1001 },
		"scheduling.initial_burst_credit": func(d *policy.Document) { d.Scheduling.InitialBurstCredit = -1 },
		"scheduling.aging_step_seconds":   func(d *policy.Document) { d.Scheduling.AgingStepSeconds = 0 },
		"scheduling.aging_cap":            func(d *policy.Document) { d.Scheduling.AgingCap = 2 },
		"scheduling.fit_scan":             func(d *policy.Document) { d.Scheduling.FitScan = 257 },
		"lanes: L is there twice":         func(d *policy.Document) { d.Lanes = append(d.Lanes, d.Lanes[0]) },
		"lanes.L.weight":                  func(d *policy.Document) { d.Lanes[0].Weight = 1_000_001 },
		"pools: X is there twice":         func(d *policy.Document) { d.Pools = append(d.Pools, d.Pools[0]) },
		"pools.X.parents: Y is not":       func(d *policy.Document) { d.Pools[0].Parents = []string{"Y"} },
		"pools.X.parents: it contains":    func(d *policy.Document) { d.Pools[0].Parents = []string{"X"} },
		"pool_groups: G is there twice":   func(d *policy.Document) { d.PoolGroups = append(d.PoolGroups, d.PoolGroups[0]) },
		"plans.0.weight":                  func(d *policy.Document) { d.Plans[0].Settings.Weight = -1 },
	} {
		a := newArena(t, 4, 10, []int64{1}, func(int) int64 { return control.Milli })
		change(a.doc)
		_, err := plan.Compile(a.doc, 1, a.tenants)
		if control.CodeOf(err) != control.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v", want, err)
		}
	}
}

func TestUnknownAndSuspendedTenantsWait(t *testing.T) {
	t.Parallel()
	a := newArena(t, 4, 10, []int64{1, 1}, func(int) int64 { return control.Milli })
	known := a.tenants
	a.tenants = known[:1]
	if err := a.publish(); err != nil {
		t.Fatal(err)
	}
	a.add(t, 0, 1)
	a.add(t, 1, 1)
	if got, _ := a.some(10); !slices.Equal(got, []int{0}) {
		t.Fatalf("tenants %v start, want only the known one", got)
	}
	if held := a.planner.Explain(waitingOf(t, a, 2)); held.Holds != plan.GateTenant {
		t.Errorf("the other waits at %s, want %s", held.Holds, plan.GateTenant)
	}
	suspended := known[1]
	suspended.Suspended = true
	a.planner.Publish(a.planner.Policy().With(suspended))
	if got, _ := a.some(10); len(got) != 0 {
		t.Errorf("tenants %v start while suspended", got)
	}
	a.planner.Publish(a.planner.Policy().With(known[1]))
	if got, _ := a.some(10); !slices.Equal(got, []int{1}) {
		t.Errorf("tenants %v start, want the one that was added", got)
	}
}

// A lane that the policy drops holds its tasks; when it comes back they start. Other lanes go on.
func TestLanesComeAndGo(t *testing.T) {
	t.Parallel()
	a := newArena(t, 4, 100, []int64{1}, func(int) int64 { return control.Milli })
	a.add(t, 0, 4)
	lane := a.doc.Lanes[0]
	if got, _ := a.some(1); len(got) != 1 {
		t.Fatal("nothing starts")
	}
	other := policy.Lane{Code: "M", Weight: 3, Accounts: []policy.LaneAccount{{PoolGroup: testGroup, ReservedUnits: 1}}}
	a.doc.Lanes = []policy.Lane{other}
	if err := a.publish(); err != nil {
		t.Fatal(err)
	}
	if got, _ := a.some(1); len(got) != 0 {
		t.Errorf("%v start in a lane that is gone", got)
	}
	if held := a.planner.Explain(waitingOf(t, a, 2)); held.Holds != plan.GateLane {
		t.Errorf("task 2 waits at %s, want %s", held.Holds, plan.GateLane)
	}
	a.doc.Lanes = []policy.Lane{other, lane}
	if err := a.publish(); err != nil {
		t.Fatal(err)
	}
	if got, _ := a.some(10); len(got) != 3 {
		t.Errorf("%d start after it has come back, want 3", len(got))
	}
}

// Tenants that come and go leave gaps in the ring, which is numbered anew; the order stays that of the
// model, and so it does for tenants that have been there all the time.
func TestManyComeAndGo(t *testing.T) {
	t.Parallel()
	a := newArena(t, 2, 1_000_000, []int64{1, 2, 3, 5, 1}, func(i int) int64 { return int64(1+i%3) * control.Milli })
	for i := range 3 { // their starts by reserve go round as well
		s, _ := a.doc.Plan(fmt.Sprint(i))
		s.Settings.ReservedUnits = 2
	}
	if err := a.publish(); err != nil {
		t.Fatal(err)
	}
	model := newNaive(a.world)
	for round := range 1500 {
		for i := range a.weights {
			if i < 2 || round%(i+1) == 0 { // tenants 0 and 1 are always backlogged, the others come and go
				n := 2 - a.waiting[i]
				from := a.next
				a.add(t, i, n)
				for k := from + 1; k <= a.next; k++ {
					it, err := a.queue.ByID(numbered('k', k))
					if err != nil {
						t.Fatal(err)
					}
					model.arrive(it)
				}
			}
		}
		needs := a.planner.Needs(second(a.now))
		got, want := a.planner.Cycle(second(a.now), a.snapshot(needs), 5), model.cycle(a.now, 5).Starts
		if len(got.Starts) != len(want) {
			t.Fatalf("round %d: %d start, want %d", round, len(got.Starts), len(want))
		}
		for i, s := range got.Starts {
			if s.TaskID != want[i].TaskID {
				t.Fatalf("round %d: start %d is %v, want %v", round, i, s.TaskID, want[i].TaskID)
			}
			a.planner.Confirm(s.TaskID)
			model.answer(s.TaskID, "", "")
			a.waiting[tenantNumber(s.TenantID)]--
		}
		a.planner.Settle()
		model.settle()
		for _, s := range got.Starts {
			a.queue.Remove(s.TaskID, s.TaskVersion)
		}
	}
}

// An earmark ends with the publish after which it is of no use: its pool is for others now, or its lane's
// reserve is smaller than what is kept in it. Nobody waits out its time.
func TestPublishEndsEarmarksOfNoUse(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(d *policy.Document, held string){
		"pool of another lane": func(d *policy.Document, held string) {
			for i := range d.Pools {
				if d.Pools[i].Key == held {
					d.Pools[i].DedicatedLanes = []string{"M"}
				}
			}
		},
		"pool of another model": func(d *policy.Document, held string) {
			for i := range d.Pools {
				if d.Pools[i].Key == held {
					d.Pools[i].Model = "other"
				}
			}
		},
		"reserve below the task": func(d *policy.Document, _ string) { d.Lanes[0].Accounts[0].ReservedUnits = 3 },
	} {
		a := newArena(t, 4, 8, []int64{1, 1}, func(int) int64 { return control.Milli })
		a.doc.Scheduling.MaxSkips, a.doc.Scheduling.EarmarkTimeout, a.run = 1, 5000, 1_000_000
		a.doc.Pools[0].CapacityUnits = 4
		other := a.doc.Pools[0]
		other.Key = "Y"
		a.doc.Pools = append(a.doc.Pools, other)
		if err := a.publish(); err != nil {
			t.Fatal(err)
		}
		a.add(t, 0, 8)
		a.some(8)
		if err := a.queue.Upsert(queue.Item{
			TaskID: numbered('w', 1), Version: 1, TenantID: numbered('t', 2), UserID: numbered('u', 1), Lane: "L", Group: testGroup, Band: 2,
			Route: "m", Model: "m", Kind: control.KindVideo, SlotUnits: 4, CostMilli: control.Milli, QueuedSince: second(a.now), EligibleAt: second(a.now),
		}); err != nil {
			t.Fatal(err)
		}
		for step := 0; a.planner.Holds() == ""; step++ {
			if step == 20 {
				t.Fatalf("%s: no earmark", name)
			}
			a.add(t, 0, 1)
			ids := slices.Collect(maps.Keys(a.running))
			a.finish(slices.MinFunc(ids, func(x, y uuid.UUID) int { return slices.Compare(x[:], y[:]) }))
			a.now++
			a.some(8)
		}
		change(a.doc, a.planner.Status(0).Earmarks[0].Pool)
		if err := a.publish(); err != nil {
			t.Fatal(err)
		}
		a.now++
		a.some(8)
		if held := a.planner.Holds(); held != "" {
			t.Errorf("%s: %s is kept still", name, held)
		}
	}
}

// A version with lower debt limits cuts debts in PostgreSQL; a tenant that runs nothing owes less as well.
func TestPublishReadsDebtsAnew(t *testing.T) {
	t.Parallel()
	a := newArena(t, 4, 2, []int64{1, 1}, func(int) int64 { return control.Milli })
	a.run = 1_000_000
	a.add(t, 0, 2)
	a.some(2)
	owes := plan.TenantLane{Tenant: numbered('t', 2), Lane: "L"}
	a.debts[owes] = 60_000
	a.add(t, 1, 1)
	for _, want := range []int64{60_000, 1000} {
		a.debts[owes] = want
		if err := a.publish(); err != nil {
			t.Fatal(err)
		}
		a.now++
		a.some(2)
		if got, ok := a.planner.Debt("L", owes.Tenant); !ok || got != want {
			t.Errorf("the planner has a debt of %d (%t), want %d", got, ok, want)
		}
	}
}
