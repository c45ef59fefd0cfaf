package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/queue"
	"fairlane/policy"
)

// Crowd says for how many tenants to measure; each has PerTenant waiting tasks.
type Crowd struct {
	Tenants   []int
	PerTenant int
	Seed      uint64
}

const (
	fairGroup  = "main"
	fairBatch  = 1000
	fairModels = 12
	fairLanes  = 4
	fairRounds = 9 // of subject and baseline in turn
)

// fairWeights are the weights of tenants, with how many of a hundred have each: most are small.
var fairWeights = []struct {
	weight, percent int64
}{{1, 60}, {2, 25}, {5, 10}, {20, 5}}

// Fair measures the time of one pick of the whole plan (lane, tenant, task, account, pool, and what it
// changes) over the memory queue, beside deficit round robin over bare arrays with the same tenants,
// weights and costs, that walks every round. Both take turns; values are medians of the rounds.
func Fair(ctx context.Context, c Crowd, out io.Writer) error {
	for _, n := range c.Tenants {
		if err := fairAt(ctx, c, n, out); err != nil {
			return err
		}
	}
	return nil
}

func fairAt(ctx context.Context, c Crowd, tenants int, out io.Writer) error {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w, err := newFairWorld(c, tenants)
	if err != nil {
		return err
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	bare := newBareRing(c, tenants)
	picks := max(fairBatch, min(20_000, tenants*c.PerTenant/2/fairRounds))
	var plans, removals, arrays []float64
	for range fairRounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		pick, remove := w.round(picks)
		plans, removals = append(plans, pick), append(removals, remove)
		arrays = append(arrays, bare.round(10*picks))
	}
	params := map[string]any{"tenants": tenants, "tasks": tenants * c.PerTenant, "lanes": fairLanes, "models": fairModels, "batch": fairBatch, "picks": picks * fairRounds}
	base := median(arrays)
	for _, r := range []Result{
		{Name: "fair", Value: median(plans), Unit: "ns per pick", Baseline: "bare array DRR", BaselineValue: base, Ratio: median(plans) / base},
		{Name: "fair.leave", Value: median(removals), Unit: "ns per task that leaves the queue", Baseline: "bare array DRR", BaselineValue: base, Ratio: median(removals) / base},
		{Name: "fair.memory", Value: float64(after.HeapAlloc-before.HeapAlloc) / (1 << 20), Unit: "MB of queue and planner"},
	} {
		r.Params = params
		if err := r.Write(out); err != nil {
			return err
		}
	}
	return nil
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// weightOf gives tenant i its weight.
func weightOf(i int) int64 {
	at := int64(i*37) % 100
	for _, w := range fairWeights {
		if at -= w.percent; at < 0 {
			return w.weight
		}
	}
	return 1
}

func fairID(space byte, n int) (id uuid.UUID) {
	id[0] = space
	binary.BigEndian.PutUint64(id[8:], uint64(n)*0x9e3779b97f4a7c15) // spread like real ones
	return id
}

// fairWorld is a planner with its queue, and the counters that its starts move.
type fairWorld struct {
	queue   *queue.Memory
	planner *plan.Planner
	now     time.Time
	snap    plan.Snapshot
}

func newFairWorld(c Crowd, tenants int) (*fairWorld, error) {
	const room = 1 << 40
	d := &policy.Document{
		Scheduling: policy.Scheduling{BaseQuantumUnits: 4, BurstRounds: 20, AgingStepSeconds: 300, AgingCap: 3, FitScan: 16, MaxSkips: 4, RepayPermille: 500},
		Switches:   policy.Switches{SchedulingRunning: true},
		PoolGroups: []policy.PoolGroup{{Code: fairGroup, CapacityUnits: fairLanes * room}},
	}
	for l := range fairLanes {
		d.Lanes = append(d.Lanes, policy.Lane{
			Code: fmt.Sprint("lane-", l), Weight: int64(fairLanes - l), Strategy: policy.DRR,
			Accounts: []policy.LaneAccount{{PoolGroup: fairGroup, ReservedUnits: room}},
		})
		for _, w := range fairWeights {
			d.Plans = append(d.Plans, policy.Plan{Code: fmt.Sprint(l, "/", w.weight), Settings: policy.TenantSettings{
				Lane: fmt.Sprint("lane-", l), Weight: w.weight, BurstUnits: room, MaxRunningTasks: room, MaxRunningUnits: room,
				UserMaxRunningTasks: room, UserMaxRunningImage: room, UserMaxRunningVideo: room,
			}})
		}
	}
	d.Pools = []policy.Pool{{Key: "all", Kind: policy.PoolCapGroup, Group: fairGroup, CapacityUnits: room}}
	for m := range fairModels {
		for _, side := range []string{"a", "b"} {
			d.Pools = append(d.Pools, policy.Pool{
				Key: fmt.Sprint("provider:", m, side), Kind: policy.PoolProvider, Group: fairGroup, Parents: []string{"all"}, Model: fmt.Sprint("model-", m), CapacityUnits: room,
			})
		}
	}
	w := &fairWorld{queue: queue.NewMemory(), now: time.Unix(1_800_000_000, 0).UTC()}
	w.snap = plan.Snapshot{At: w.now, Tenants: map[uuid.UUID]plan.TenantUse{}, InLane: map[plan.TenantLane]plan.Use{}}
	var list []plan.TenantPlan
	for i := range tenants {
		list = append(list, plan.TenantPlan{ID: fairID('t', i+1), PlanCode: fmt.Sprint(i%fairLanes, "/", weightOf(i))})
	}
	rng := rand.New(rand.NewPCG(c.Seed, 1))
	for i := range tenants * c.PerTenant {
		tenant := i % tenants
		model := fmt.Sprint("model-", tenant%fairModels)
		if err := w.queue.Upsert(queue.Item{
			TaskID: fairID('k', i+1), Version: 1, TenantID: list[tenant].ID, UserID: fairID('u', tenant+1), Lane: fmt.Sprint("lane-", tenant%fairLanes), Group: fairGroup,
			Band: 2, Route: model, Model: model, Kind: control.KindVideo, SlotUnits: 1, CostMilli: fairCost(rng), P95: time.Minute,
			QueuedSince: w.now.Add(time.Duration(i) * time.Microsecond), EligibleAt: w.now,
		}); err != nil {
			return nil, err
		}
	}
	w.now = w.now.Add(time.Minute)
	compiled, err := plan.Compile(d, 1, list)
	if err != nil {
		return nil, err
	}
	w.planner = plan.NewPlanner(fairGroup, compiled, w.queue)
	w.plan(0)
	return w, nil
}

func fairCost(rng *rand.Rand) int64 { return control.Milli + rng.Int64N(9*control.Milli) }

// plan runs one cycle and grants all that it plans.
func (w *fairWorld) plan(batch int) []plan.Start {
	w.planner.Needs(w.now)
	starts := w.planner.Cycle(w.now, w.snap, batch).Starts
	for i := range starts {
		w.planner.Confirm(starts[i].TaskID)
	}
	w.planner.Settle()
	return starts
}

// round plans that many picks and returns the time of one, and the time that one task takes to leave the
// queue. What runs is counted between, and not timed: a database would do it.
func (w *fairWorld) round(picks int) (pick, remove float64) {
	var planning, leaving time.Duration
	done := 0
	for done < picks {
		began := time.Now()
		starts := w.plan(min(fairBatch, picks-done))
		planning += time.Since(began)
		if len(starts) == 0 {
			break
		}
		began = time.Now()
		for i := range starts {
			w.queue.Remove(starts[i].TaskID, starts[i].TaskVersion)
		}
		leaving += time.Since(began)
		for i := range starts {
			s := &starts[i]
			u := w.snap.Tenants[s.TenantID]
			u.Tasks, u.Units = u.Tasks+1, u.Units+s.SlotUnits
			w.snap.Tenants[s.TenantID] = u
			w.snap.InLane[plan.TenantLane{Tenant: s.TenantID, Lane: s.Lane}] = u.Use
		}
		done += len(starts)
	}
	return float64(planning.Nanoseconds()) / float64(max(1, done)), float64(leaving.Nanoseconds()) / float64(max(1, done))
}

// bareRing is deficit round robin over arrays: no lanes, pools, accounts or ids beside the tasks' own.
type bareRing struct {
	tenants []bareTenant
	at      int
	fresh   bool
	sum     byte
}

type bareTenant struct {
	deficit, quantum int64
	next             int
	tasks            []bareTask
}

type bareTask struct {
	cost int64
	id   uuid.UUID
}

func newBareRing(c Crowd, tenants int) *bareRing {
	r := &bareRing{tenants: make([]bareTenant, tenants), fresh: true}
	rng := rand.New(rand.NewPCG(c.Seed, 1))
	for i := range tenants {
		r.tenants[i] = bareTenant{quantum: 4 * control.Milli * weightOf(i) / 20, tasks: make([]bareTask, c.PerTenant)}
	}
	for i := range tenants * c.PerTenant {
		r.tenants[i%tenants].tasks[i/tenants] = bareTask{fairCost(rng), fairID('k', i+1)}
	}
	return r
}

// round walks to that many picks and returns the time of one. A queue that is empty starts again.
func (r *bareRing) round(picks int) float64 {
	began := time.Now()
	for n := 0; n < picks; {
		t := &r.tenants[r.at]
		if r.fresh {
			t.deficit += t.quantum
			r.fresh = false
		}
		if k := &t.tasks[t.next]; k.cost <= t.deficit {
			t.deficit -= k.cost
			r.sum ^= k.id[15]
			t.next = (t.next + 1) % len(t.tasks)
			n++
			continue
		}
		r.at, r.fresh = (r.at+1)%len(r.tenants), true
	}
	return float64(time.Since(began).Nanoseconds()) / float64(picks)
}
