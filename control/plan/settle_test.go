package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/queue"
)

// once runs one cycle, refuses the first start by a gate (none when it is ""), and returns the tasks.
func (a *arena) once(batch int, gate plan.Gate) (tasks []int) {
	needs := a.planner.Needs(second(a.now))
	p := a.planner.Cycle(second(a.now), a.snapshot(needs), batch)
	for i, s := range p.Starts {
		tasks = append(tasks, int(s.TaskID[14])<<8|int(s.TaskID[15]))
		if i == 0 && gate != "" {
			a.planner.Refuse(s.TaskID, gate, s.Pool)
			continue
		}
		a.count(s, 1)
		a.running[s.TaskID] = running{Start: s}
		a.planner.Confirm(s.TaskID)
	}
	a.planner.Settle()
	for _, s := range p.Starts {
		if _, ok := a.running[s.TaskID]; ok {
			a.queue.Remove(s.TaskID, s.TaskVersion)
		}
	}
	return tasks
}

func TestRefusedTaskIsPassedOverUntilItsReasonChanges(t *testing.T) {
	t.Parallel()
	for gate, change := range map[plan.Gate]func(*arena){
		plan.GatePool:    func(a *arena) { a.pools["X"] = plan.PoolUse{Used: 5, Limit: -1} },
		plan.GateAccount: func(a *arena) { a.lanes[plan.LaneGroup{Lane: "L", Group: testGroup}] = plan.LaneUse{Own: 5} },
		plan.GateTenant: func(a *arena) {
			a.used[numbered('t', 1)] = plan.TenantUse{Use: plan.Use{Tasks: 7, Units: 7}}
		},
		plan.GateLane: func(a *arena) {
			if err := a.publish(); err != nil {
				t.Fatal(err)
			}
		},
		plan.GateTask: func(a *arena) {
			it, err := a.queue.ByID(numbered('k', 1))
			if err != nil {
				t.Fatal(err)
			}
			it.Version = 2
			if err := a.queue.Upsert(it); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(string(gate), func(t *testing.T) {
			t.Parallel()
			for _, wait := range []bool{false, true} {
				a := newArena(t, 4, 100, []int64{1}, func(int) int64 { return control.Milli })
				a.add(t, 0, 3)
				if got := a.once(1, gate); !slices.Equal(got, []int{1}) {
					t.Fatalf("first start is %v, want task 1", got)
				}
				if held := a.planner.Explain(waitingOf(t, a, 1)); held.Holds != gate {
					t.Errorf("task 1 is held by %s, want %s", held.Holds, gate)
				}
				if got := a.once(1, ""); !slices.Equal(got, []int{2}) {
					t.Errorf("next start is %v, want task 2: the refused one is passed over", got)
				}
				// the start of task 2 has moved the counters of pool, account and tenant
				if gate == plan.GateTask || gate == plan.GateLane {
					if got := a.once(1, ""); !slices.Equal(got, []int{3}) {
						t.Errorf("next start is %v, want task 3: the reason has not changed", got)
					}
				}
				if wait {
					a.now += 5
				} else {
					change(a)
				}
				if got := a.once(1, ""); !slices.Equal(got, []int{1}) {
					t.Errorf("after the change (by time: %t) %v starts, want task 1", wait, got)
				}
			}
		})
	}
}

func waitingOf(t *testing.T, a *arena, n int) plan.Waiting {
	t.Helper()
	it, err := a.queue.ByID(numbered('k', n))
	if err != nil {
		t.Fatal(err)
	}
	return plan.Waiting{TaskID: it.TaskID, TenantID: it.TenantID, UserID: it.UserID, Lane: it.Lane, EligibleAt: it.EligibleAt,
		Need: control.Need{Route: it.Route, Model: it.Model, Kind: it.Kind, SlotUnits: it.SlotUnits, P95: control.ClassOfP95(it.P95)}}
}

// A refused start costs its tenant nothing: the order of the others is as if it had not been picked,
// but for its turn.
func TestRefusalGivesBackWhatItCharged(t *testing.T) {
	t.Parallel()
	a := newArena(t, 4, 100, []int64{1, 1}, func(int) int64 { return 4 * control.Milli })
	a.add(t, 0, 3)
	a.add(t, 1, 3)
	if got := a.once(1, plan.GateTask); !slices.Equal(got, []int{1}) {
		t.Fatalf("first start is %v", got)
	}
	// the visit is still open and has its deficit back: tenant 0 goes on with its next task
	if got := a.once(4, ""); !slices.Equal(got, []int{2, 4, 3, 5}) {
		t.Errorf("then %v start, want 2 4 3 5", got)
	}
}

// Starts that nobody answers are refused by the next cycle, and their units go back.
func TestUnansweredStartsAreRefused(t *testing.T) {
	t.Parallel()
	a := newArena(t, 4, 2, []int64{1}, func(int) int64 { return control.Milli })
	a.add(t, 0, 4)
	a.planner.Needs(second(0))
	if p := a.planner.Cycle(second(0), a.snapshot(plan.Needs{}), 10); len(p.Starts) != 2 {
		t.Fatalf("%d start, want 2", len(p.Starts))
	}
	if got := a.once(10, ""); !slices.Equal(got, []int{3, 4}) {
		t.Errorf("then %v start, want 3 and 4: the others are passed over", got)
	}
	a.planner.Confirm(numbered('k', 1)) // too late: changes nothing
	a.finish(numbered('k', 3))
	a.finish(numbered('k', 4))
	a.now = 6
	if got := a.once(10, ""); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("6 s later %v start, want 1 and 2", got)
	}
}

// Counters that another scheduler moves: the mirror of a tenant may be behind, the claim refuses, and
// the next snapshot asks for it.
func TestStaleCountersAreCorrectedByARefusal(t *testing.T) {
	t.Parallel()
	a := newArena(t, 4, 100, []int64{1}, func(int) int64 { return control.Milli })
	set, _ := a.doc.Plan("0")
	set.Settings.MaxRunningUnits = 3
	if err := a.publish(); err != nil {
		t.Fatal(err)
	}
	a.add(t, 0, 9)
	needs := a.planner.Needs(second(0)) // reads 0
	a.planner.Cycle(second(0), a.snapshot(needs), 0)
	a.used[numbered('t', 1)] = plan.TenantUse{Use: plan.Use{Tasks: 3, Units: 3}} // another group starts three
	if needs = a.planner.Needs(second(1)); len(needs.Tenants) != 0 {
		t.Fatalf("a tenant that runs nothing is asked for: %v", needs.Tenants)
	}
	p := a.planner.Cycle(second(1), a.snapshot(needs), 100)
	for _, s := range p.Starts {
		if gate, pool := a.check(s); gate != "" {
			a.planner.Refuse(s.TaskID, gate, pool)
		} else {
			t.Errorf("the claim lets %v pass", s.TaskID)
		}
	}
	a.planner.Settle()
	if needs = a.planner.Needs(second(2)); !slices.Equal(needs.Tenants, []uuid.UUID{numbered('t', 1)}) {
		t.Errorf("after the refusal %v are asked for, want the tenant", needs.Tenants)
	}
	if p = a.planner.Cycle(second(2), a.snapshot(needs), 100); len(p.Starts) != 0 {
		t.Errorf("%d start although the tenant is at its maximum", len(p.Starts))
	}
	delete(a.used, numbered('t', 1))
	a.now = 3
	if got := a.cycle(func(plan.Start) int64 { return 1 << 40 }); len(got) != 3 {
		t.Errorf("%d start after the release, want 3", len(got))
	}
}

// A publish that makes user caps bind finds users of whom nothing is known; claims keep the cap, and
// the mirror follows.
func TestUserCapsThatComeIntoForce(t *testing.T) {
	t.Parallel()
	a := newArena(t, 4, 100, []int64{1}, func(int) int64 { return control.Milli })
	user := func(n, u int) {
		a.next++
		if err := a.queue.Upsert(queue.Item{
			TaskID: numbered('k', n), Version: 1, TenantID: numbered('t', 1), UserID: numbered('u', u), Lane: "L", Group: testGroup, Band: 2,
			Route: "m", Model: "m", Kind: control.KindVideo, SlotUnits: 1, CostMilli: 1000, QueuedSince: second(0).Add(time.Duration(n)), EligibleAt: second(0),
		}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 4 {
		user(n+1, 1)
	}
	if got := a.once(2, ""); len(got) != 2 {
		t.Fatalf("%v start", got)
	}
	user(9, 2)
	set, _ := a.doc.Plan("0")
	set.Settings.UserMaxRunningTasks = 2
	if err := a.publish(); err != nil {
		t.Fatal(err)
	}
	a.now = 10
	got := a.cycle(func(plan.Start) int64 { return 1 << 40 })
	if len(got) != 1 || got[0].TaskID != numbered('k', 9) {
		t.Fatalf("%v start, want only the task of user 2", got)
	}
	if held := a.planner.Explain(waitingOf(t, a, 3)); held.Holds != plan.GateUser {
		t.Errorf("task 3 is held by %s, want %s", held.Holds, plan.GateUser)
	}
	a.finish(numbered('k', 1))
	if got := a.cycle(func(plan.Start) int64 { return 1 << 40 }); len(got) != 1 || got[0].TaskID != numbered('k', 3) {
		t.Errorf("after a release %v start, want task 3", got)
	}
	set.Settings.UserMaxRunningTasks = 1000
	if err := a.publish(); err != nil {
		t.Fatal(err)
	}
	if got := a.cycle(func(plan.Start) int64 { return 1 << 40 }); len(got) != 1 || got[0].TaskID != numbered('k', 4) {
		t.Errorf("without the cap %v start, want task 4", got)
	}
}

// Snapshots are asked for no more tenants than their limit, and in turn for all.
func TestNeedsAreBounded(t *testing.T) {
	t.Parallel()
	const tenants = 2000
	weights := make([]int64, tenants)
	for i := range weights {
		weights[i] = 1
	}
	a := newArena(t, 4, 1_000_000, weights, func(int) int64 { return control.Milli })
	for i := range weights {
		a.add(t, i, 1)
	}
	seen := map[string]bool{}
	for range 4 {
		needs := a.planner.Needs(second(0))
		if len(needs.Tenants) > 512 || len(needs.Users) > 512 {
			t.Fatalf("%d tenants and %d users are asked for", len(needs.Tenants), len(needs.Users))
		}
		for _, id := range needs.Tenants {
			seen[fmt.Sprint(id)] = true
		}
		if p := a.planner.Cycle(second(0), a.snapshot(needs), 0); p.Wake.IsZero() && len(seen) < tenants {
			t.Error("nobody is told to come back for the rest")
		}
	}
	if len(seen) != tenants {
		t.Errorf("%d of %d tenants were asked for in four cycles", len(seen), tenants)
	}
}

// A pool's adaptive limit holds below its capacity, and ends when the snapshot says so.
func TestAdaptiveLimitHolds(t *testing.T) {
	t.Parallel()
	a := newArena(t, 4, 10, []int64{1}, func(int) int64 { return control.Milli })
	a.add(t, 0, 9)
	for _, step := range []struct {
		limit int64
		want  int
	}{{2, 2}, {1, 0}, {0, 0}, {3, 1}, {-1, 6}} {
		needs := a.planner.Needs(second(a.now))
		s := a.snapshot(needs)
		s.Pools = map[string]plan.PoolUse{"X": {Used: a.pools["X"].Used, Limit: step.limit}}
		p := a.planner.Cycle(second(a.now), s, 100)
		if len(p.Starts) != step.want {
			t.Errorf("limit %d: %d start, want %d", step.limit, len(p.Starts), step.want)
		}
		for _, x := range p.Starts {
			a.count(x, 1)
			a.planner.Confirm(x.TaskID)
		}
		a.planner.Settle()
		for _, x := range p.Starts {
			a.queue.Remove(x.TaskID, x.TaskVersion)
		}
	}
}
