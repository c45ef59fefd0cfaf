package plan_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/queue"
	"fairlane/policy"
)

// large builds a lane of many tenants with tasks of random cost, a pool that holds them all, and for
// blocked > 0 that share of the tenants, in hundredths, waiting for a pool that is full.
func large(tb testing.TB, tenants, tasks, blocked int) (*queue.Memory, *plan.Planner, plan.Snapshot) {
	tb.Helper()
	const room = 1 << 30
	d := &policy.Document{
		Scheduling: policy.Scheduling{BaseQuantumUnits: 4, BurstRounds: 20, AgingStepSeconds: 300, AgingCap: 3, FitScan: 16, MaxSkips: 4},
		Switches:   policy.Switches{SchedulingRunning: true},
		Lanes:      []policy.Lane{{Code: "L", Weight: 1, Accounts: []policy.LaneAccount{{PoolGroup: testGroup, ReservedUnits: room}}}},
		PoolGroups: []policy.PoolGroup{{Code: testGroup, CapacityUnits: room}},
		Pools: []policy.Pool{
			{Key: "open", Kind: policy.PoolProvider, Group: testGroup, Model: "open", CapacityUnits: room},
			{Key: "full", Kind: policy.PoolProvider, Group: testGroup, Model: "full", CapacityUnits: 1},
		},
	}
	for w := range 10 {
		d.Plans = append(d.Plans, policy.Plan{Code: fmt.Sprint(w), Settings: policy.TenantSettings{
			Lane: "L", Weight: int64(w + 1), BurstUnits: room, MaxRunningUnits: room, MaxRunningTasks: room,
			UserMaxRunningTasks: room, UserMaxRunningImage: room, UserMaxRunningVideo: room,
		}})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	q := queue.NewMemory()
	var list []plan.TenantPlan
	for i := range tenants {
		list = append(list, plan.TenantPlan{ID: numbered('t', i+1), PlanCode: fmt.Sprint(i % 10)})
	}
	for i := range tasks {
		model := "open"
		if (i%tenants)%100 < blocked {
			model = "full"
		}
		it := queue.Item{
			TaskID: numbered('k', i+1), Version: 1, TenantID: numbered('t', i%tenants+1), UserID: numbered('u', i%7), Lane: "L", Group: testGroup,
			Band: 2, Route: model, Model: model, Kind: control.KindVideo, SlotUnits: 1, CostMilli: 1000 + rng.Int64N(9000),
			QueuedSince: second(0).Add(time.Duration(i) * time.Microsecond), EligibleAt: second(0),
		}
		if err := q.Upsert(it); err != nil {
			tb.Fatal(err)
		}
	}
	p, err := plan.Compile(d, 1, list)
	if err != nil {
		tb.Fatal(err)
	}
	s := plan.Snapshot{Pools: map[string]plan.PoolUse{"full": {Used: 1, Limit: -1}}}
	planner := plan.NewPlanner(testGroup, p, q)
	planner.Needs(second(1))
	planner.Cycle(second(1), s, 0)
	return q, planner, s
}

// BenchmarkStart measures one start with all that belongs to it: choosing, confirming, settling and
// leaving the queue, in batches of 1,000, at 100,000 tenants with 1,000,000 tasks.
func BenchmarkStart(b *testing.B) {
	for _, blocked := range []int{0, 90} {
		b.Run(fmt.Sprintf("blocked=%d", blocked), func(b *testing.B) {
			q, p, s := large(b, 100_000, 1_000_000, blocked)
			runtime.GC()
			b.ResetTimer()
			began, n := cpu(), 0
			for n < b.N {
				p.Needs(second(1))
				out := p.Cycle(second(1), s, min(1000, b.N-n))
				if len(out.Starts) == 0 {
					b.Fatalf("nothing left after %d; ask for fewer", n)
				}
				for _, x := range out.Starts {
					p.Confirm(x.TaskID)
				}
				p.Settle()
				for _, x := range out.Starts {
					q.Remove(x.TaskID, x.TaskVersion)
				}
				n += len(out.Starts)
			}
			b.ReportMetric(float64(cpu()-began)/float64(n), "cpu-ns/op")
		})
	}
}

// cpu is the processor time of this process in nanoseconds: other programs on the machine do not count.
func cpu() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// TestQueueMemory holds the size of a million waiting tasks.
func TestQueueMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	q, p, _ := large(t, 10_000, 1_000_000, 0)
	runtime.GC()
	runtime.ReadMemStats(&after)
	mb := float64(after.HeapAlloc-before.HeapAlloc) / (1 << 20)
	runtime.KeepAlive(q)
	runtime.KeepAlive(p)
	figure(t, "1,000,000 waiting tasks of 10,000 tenants: %.0f MB in queue and planner", mb)
	if mb > 400 {
		t.Errorf("queue and planner take %.0f MB, want at most 400", mb)
	}
}
