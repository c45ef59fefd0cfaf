package plan_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/queue"
	"fairlane/policy"
)

// arena is one lane with one large pool, whose tenants are kept backlogged.
type arena struct {
	*world
	weights []int64
	cost    func(tenant int) int64 // milli-units of its next task
	served  []int64
	waiting []int
	next    int
	run     int64 // seconds
}

func newArena(tb interface{ Fatal(...any) }, base, slots int64, weights []int64, cost func(int) int64) *arena {
	d := &policy.Document{
		Scheduling: policy.Scheduling{BaseQuantumUnits: base, BurstRounds: 20, AgingStepSeconds: 300, AgingCap: 3, FitScan: 16, MaxSkips: 4},
		Switches:   policy.Switches{SchedulingRunning: true},
		Lanes:      []policy.Lane{{Code: "L", Weight: 1, Accounts: []policy.LaneAccount{{PoolGroup: testGroup, ReservedUnits: slots}}}},
		PoolGroups: []policy.PoolGroup{{Code: testGroup, CapacityUnits: slots}},
		Pools:      []policy.Pool{{Key: "X", Kind: policy.PoolProvider, Group: testGroup, Model: "m", CapacityUnits: slots}},
	}
	var tenants []plan.TenantPlan
	for i, w := range weights {
		code := fmt.Sprint(i)
		d.Plans = append(d.Plans, policy.Plan{Code: code, Settings: policy.TenantSettings{
			Lane: "L", Weight: w, BurstUnits: slots, MaxRunningUnits: slots, MaxRunningTasks: slots,
			UserMaxRunningTasks: slots, UserMaxRunningImage: slots, UserMaxRunningVideo: slots,
		}})
		tenants = append(tenants, plan.TenantPlan{ID: numbered('t', i+1), PlanCode: code})
	}
	w, err := newWorld(d, tenants)
	if err != nil {
		tb.Fatal(err)
	}
	return &arena{world: w, weights: weights, cost: cost, served: make([]int64, len(weights)), waiting: make([]int, len(weights))}
}

// add queues n tasks of a tenant.
func (a *arena) add(tb interface{ Fatal(...any) }, tenant, n int) {
	for range n {
		a.next++
		a.waiting[tenant]++
		if err := a.queue.Upsert(queue.Item{
			TaskID: numbered('k', a.next), Version: 1, TenantID: numbered('t', tenant+1), UserID: numbered('u', 1), Lane: "L", Group: testGroup, Band: 2,
			Route: "m", Model: "m", Kind: control.KindVideo, SlotUnits: 1, CostMilli: a.cost(tenant),
			QueuedSince: second(a.now).Add(time.Duration(a.next) * time.Microsecond), EligibleAt: second(a.now),
		}); err != nil {
			tb.Fatal(err)
		}
	}
}

// some claims the next starts, and returns their tenants' numbers and their costs.
func (a *arena) some(batch int) (tenants []int, costs []int64) {
	needs := a.planner.Needs(second(a.now))
	p := a.planner.Cycle(second(a.now), a.snapshot(needs), batch)
	a.beside(p)
	for _, s := range p.Starts {
		a.count(s, 1)
		a.running[s.TaskID] = running{s, a.now + a.run}
		a.planner.Confirm(s.TaskID)
	}
	a.planner.Settle()
	for _, s := range p.Starts {
		a.queue.Remove(s.TaskID, s.TaskVersion)
		i := tenantNumber(s.TenantID)
		tenants, costs = append(tenants, i), append(costs, s.CostMilli)
		a.waiting[i]--
	}
	return tenants, costs
}

func tenantNumber(id uuid.UUID) int { return int(id[14])<<8 | int(id[15]) - 1 }

func maxOf(list []int64) int64 {
	m := list[0]
	for _, x := range list {
		m = max(m, x)
	}
	return m
}

// D01: a tenant that asked for less than its share for long gets no burst for it later.
func TestTrap_D01_NoCreditForTimeWithoutBacklog(t *testing.T) {
	t.Parallel()
	a := newArena(t, 4, 3, []int64{1, 1}, func(int) int64 { return control.Milli })
	a.run = 1
	for range 10_000 {
		a.complete()
		a.add(t, 0, 2)
		a.add(t, 1, 1)
		if got, _ := a.some(1000); len(got) != 3 {
			t.Fatalf("second %d: %d started, want 3", a.now, len(got))
		}
		a.now++
	}
	a.add(t, 0, 200)
	a.add(t, 1, 200)
	lead, worst := 0, 0
	for range 60 {
		a.complete()
		got, _ := a.some(1000)
		for _, i := range got {
			lead += 2*i - 1
			worst = max(worst, lead, -lead)
		}
		a.now++
	}
	if worst > 6 { // base_quantum + 2 c
		t.Errorf("one of two equal tenants got %d tasks ahead, want at most 6", worst)
	}
	figure(t, "D01: worst lead after 10,000 idle rounds: %d tasks, bound 6", worst)
}

// D01, among blocked ones: a tenant whose visits end early because its pool is full carries no more than
// its cap into the next, however often that happens.
func TestTrap_D01_VisitsCutShortSaveNothingBeyondTheCap(t *testing.T) {
	t.Parallel()
	s, err := parse(`
set base=4 burst_rounds=2
pool X 1
pool Y 1
lane L own=100
tenant A lane=L
tenant B lane=L
task a A x=99 run=10 pools=X
task b B x=99 run=10 cost=4 pools=Y
until 600
-- expect
t=0: a01 b01
`)
	if err != nil {
		t.Fatal(err)
	}
	g := s.stage(t, variant{weights: 1})
	for {
		g.complete()
		g.happen(t)
		if g.now == 600 {
			for _, key := range []string{"X", "Y"} {
				p, _ := g.doc.Pool(key)
				p.CapacityUnits = 60
			}
			if err := g.publish(); err != nil {
				t.Fatal(err)
			}
		}
		starts := g.cycle(func(plan.Start) int64 { return 10 })
		if g.now == 600 {
			row := 0
			for _, x := range starts {
				if g.names[x.TaskID][0] != 'a' {
					break
				}
				row++
			}
			if row > 2*4+4 { // what it carries and its quantum, in tasks of one unit
				t.Errorf("A starts %d tasks in a row, want at most 12", row)
			}
			return
		}
		g.now += 10
	}
}

// D02: a wide task of a small weight among many small ones of large weights is served in time, and the
// small ones are not held up by it.
func TestTrap_D02_WideTaskOfASmallWeightIsServed(t *testing.T) {
	t.Parallel()
	weights := []int64{1}
	for range 20 {
		weights = append(weights, 100)
	}
	a := newArena(t, 4, 1_000_000, weights, func(i int) int64 {
		if i == 0 {
			return 12 * control.Milli
		}
		return control.Milli
	})
	const turns = 301 // ceil(12 / (4/100)) + 1
	gap, longest, wide, total := 0, 0, 0, 0
	last := make([]int, len(weights))
	for total < 50_000 {
		for i := range weights {
			a.add(t, i, 100-a.waiting[i])
		}
		got, _ := a.some(100)
		for _, i := range got {
			total++
			gap++
			if i == 0 {
				wide++
				longest, gap = max(longest, gap), 0
			} else if since := total - last[i]; last[i] > 0 && since > 2*20*4+2 {
				t.Fatalf("a tenant of weight 100 waited for %d starts", since)
			}
			last[i] = total
		}
	}
	if wide < 2 || longest > turns*20*4+1 {
		t.Errorf("the wide task started %d times, longest gap %d starts, want at most %d", wide, longest, turns*20*4+1)
	}
	figure(t, "D02: longest gap of the wide task %d starts, bound %d", longest, turns*20*4+1)
}

// D07: long-run shares follow the weights within one cost, and do so at every scale of weights.
func TestTrap_D07_SharesFollowWeightsAtEveryScale(t *testing.T) {
	t.Parallel()
	var orders [3]string
	for n, factor := range []int64{1, 10, 100_000} {
		a := newArena(t, 4, 1_000_000, []int64{1 * factor, 2 * factor, 5 * factor}, func(i int) int64 { return int64(1+i) * control.Milli })
		for range 40 {
			for i := range a.weights {
				a.add(t, i, 100-a.waiting[i])
			}
			got, costs := a.some(100)
			for k, i := range got {
				a.served[i] += costs[k]
				orders[n] += fmt.Sprint(i)
			}
		}
		for i, s := range a.served {
			per := float64(s) / float64(a.weights[i]) * float64(factor) / control.Milli
			ideal := float64(a.served[0]+a.served[1]+a.served[2]) / 8 / control.Milli
			if math.Abs(per-ideal) > 4*8/5.0+3 {
				t.Errorf("factor %d: weight %d got %.1f units per weight, ideal %.1f", factor, a.weights[i], per, ideal)
			}
		}
	}
	if orders[0] != orders[1] || orders[0] != orders[2] {
		t.Error("multiplying all weights changes the order")
	}
}

// D08: tasks are charged by the slot time that they are expected to take, so that long tasks of small
// weights cannot fill all slots for good.
func TestTrap_D08_OccupancyFollowsWeights(t *testing.T) {
	t.Parallel()
	minutes := []int64{1, 100, 100}
	a := newArena(t, 4, 10, []int64{4, 1, 1}, func(i int) int64 { return minutes[i] * 2 * control.Milli }) // 30 s a unit
	held := make([]int64, 3)
	const hours = 100
	for a.now < hours*60 { // the clock counts minutes
		a.complete()
		for i := range minutes {
			a.add(t, i, 20-a.waiting[i])
		}
		needs := a.planner.Needs(second(a.now))
		p := a.planner.Cycle(second(a.now), a.snapshot(needs), 1000)
		for _, s := range p.Starts {
			i := tenantNumber(s.TenantID)
			a.count(s, 1)
			a.running[s.TaskID] = running{s, a.now + minutes[i]}
			a.planner.Confirm(s.TaskID)
			a.waiting[i]--
			held[i] += minutes[i]
		}
		a.planner.Settle()
		for _, s := range p.Starts {
			a.queue.Remove(s.TaskID, s.TaskVersion)
		}
		a.now++
	}
	share := float64(held[0]) / float64(held[0]+held[1]+held[2])
	if math.Abs(share-4.0/6) > 0.02 {
		t.Errorf("the tenant of weight 4 of 6 has %.3f of the slot time", share)
	}
	figure(t, "D08: slot time of weight 4 of 6: %.3f, ideal 0.667", share)
}

// D06: whatever cost the queue tells, a start charges at least one unit and at most 10,000.
func TestTrap_D06_CostsAreFlooredWhereTheyAreCharged(t *testing.T) {
	t.Parallel()
	for _, bad := range []int64{-5000, 0, math.MinInt64, math.MaxInt64} {
		a := newArena(t, 4, 1000, []int64{1, 1}, func(int) int64 { return control.Milli })
		p, err := plan.Compile(a.doc, 1, a.tenants)
		if err != nil {
			t.Fatal(err)
		}
		a.planner = plan.NewPlanner(testGroup, p, &lying{a.queue, bad})
		a.add(t, 0, 50)
		a.add(t, 1, 50)
		got, _ := a.some(40)
		n := [2]int{}
		for _, i := range got {
			n[i]++
		}
		if bad <= 0 && (n[0] < 18 || n[0] > 22) || bad > 0 && n[0] > 1 {
			t.Errorf("a cost of %d lets its tenant start %d of 40", bad, n[0])
		}
	}
}

// lying is a queue that tells a wrong cost for every task of tenant 1.
type lying struct {
	*queue.Memory
	cost int64
}

func (l *lying) Heads(backlog, scan int, skip func(int) bool, yield func(control.Head)) {
	l.Memory.Heads(backlog, scan, skip, func(h control.Head) {
		if it, err := l.ByID(h.TaskID); err == nil && it.TenantID == numbered('t', 1) {
			h.CostMilli = l.cost
		}
		yield(h)
	})
}

// D05: weight 0 has its reserve and leftovers, nothing else, and divides nothing by zero.
func TestTrap_D05_WeightZero(t *testing.T) {
	t.Parallel()
	a := newArena(t, 4, 4, []int64{0, 1}, func(int) int64 { return control.Milli })
	a.run = 1
	p, _ := a.doc.Plan("0")
	p.Settings.ReservedUnits = 1
	if err := a.publish(); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		a.complete()
		a.add(t, 0, 4-a.waiting[0])
		a.add(t, 1, 4-a.waiting[1])
		got, _ := a.some(1000)
		n := [2]int{}
		for _, i := range got {
			n[i]++
		}
		if n != [2]int{1, 3} {
			t.Fatalf("second %d: weight 0 started %d and weight 1 %d of 4, want 1 and 3", a.now, n[0], n[1])
		}
		a.now++
	}
	a.complete()
	if got, _ := a.some(1000); len(got) != 4 {
		t.Errorf("%d started, want all 4 slots filled", len(got))
	}
}
