package plan_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/queue"
	"fairlane/policy"
)

// figure appends a line to the file of figures, when one is wanted.
func figure(t testing.TB, format string, args ...any) {
	t.Helper()
	line := fmt.Sprintf(format, args...)
	t.Log(line)
	path := os.Getenv("FAIRLANE_TEST_FIGURES")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, line); err != nil {
		t.Fatal(err)
	}
}

var modelCounts struct{ sequences, actions, starts, refused, publishes atomic.Int64 }

// TestPlannerEqualsNaiveModel runs the planner and the model that walks literal rounds side by side
// over random arrivals, completions, cancels, publishes, refusals and batch limits.
func TestPlannerEqualsNaiveModel(t *testing.T) {
	t.Parallel()
	t.Cleanup(func() {
		c := &modelCounts
		if t.Failed() {
			return
		}
		figure(t, "planner against naive model: %d sequences, %d actions, %d starts, %d refusals, %d publishes, 0 differences",
			c.sequences.Load(), c.actions.Load(), c.starts.Load(), c.refused.Load(), c.publishes.Load())
	})
	for _, half := range []string{"one half", "other half"} {
		t.Run(half, func(t *testing.T) {
			t.Parallel()
			sequences(t, 2250, func(t *rapid.T) {
				p := newPair(t)
				modelCounts.sequences.Add(1)
				for range rapid.SampledFrom([]int{50, 20, 5, 100}).Draw(t, "actions") {
					modelCounts.actions.Add(1)
					p.act(t)
				}
			})
		})
	}
}

// pair is the planner and the model over one world.
type pair struct {
	*world
	n      *naive
	tasks  []uuid.UUID // that wait
	count  int
	models []string
}

func newPair(t *rapid.T) *pair {
	doc, tenants := drawDocument(t)
	w, err := newWorld(doc, tenants)
	if err != nil {
		t.Fatal(err)
	}
	return &pair{world: w, n: newNaive(w), models: []string{"m0", "m1", "m2"}}
}

func small(t *rapid.T, name string, lo, hi int64) int64 {
	return rapid.Int64Range(lo, hi).Draw(t, name)
}

func drawCapacity(t *rapid.T) int64 {
	return rapid.SampledFrom([]int64{6, 20, 3, 2, 1, 0}).Draw(t, "capacity")
}

func drawWeight(t *rapid.T) int64 {
	return rapid.SampledFrom([]int64{1, 1, 2, 3, 4, 10, 1000, 0}).Draw(t, "weight")
}

// drawSettings draws what tenant i is granted. Every second tenant has user caps that can bind: a
// publish that makes caps bind is corrected through refused claims, which the model does not know.
func drawSettings(t *rapid.T, lanes, i int) policy.TenantSettings {
	caps := int64(1000)
	if i%2 == 0 {
		caps = rapid.SampledFrom([]int64{3, 2, 1}).Draw(t, "user cap")
	}
	return policy.TenantSettings{
		Lane: fmt.Sprintf("L%d", small(t, "home", 0, int64(lanes-1))), Weight: drawWeight(t),
		ReservedUnits: small(t, "reserve", 0, 6), BurstUnits: small(t, "burst", 0, 8),
		MaxRunningUnits: rapid.SampledFrom([]int64{100, 9, 5, 3, 1}).Draw(t, "max units"), MaxRunningTasks: rapid.SampledFrom([]int64{100, 100, 4}).Draw(t, "max tasks"),
		UserMaxRunningTasks: caps, UserMaxRunningImage: rapid.SampledFrom([]int64{1000, caps}).Draw(t, "image cap"), UserMaxRunningVideo: caps,
	}
}

func drawRepay(t *rapid.T) int64 {
	return rapid.SampledFrom([]int64{500, 900, 333, 0}).Draw(t, "repay")
}

func drawAccount(t *rapid.T, own int64, lanes int) policy.LaneAccount {
	a := policy.LaneAccount{PoolGroup: testGroup, ReservedUnits: own}
	if rapid.Bool().Draw(t, "lends") {
		a.HeadroomUnits, a.LendableUnits = small(t, "headroom", 0, 2), small(t, "lendable", 0, 6)
		a.BorrowTimeout, a.Cooldown = rapid.SampledFrom([]int64{100, 30}).Draw(t, "borrow timeout"), small(t, "cooldown", 0, 40)
		for i := range lanes {
			if rapid.IntRange(0, 3).Draw(t, "to") < 3 {
				a.LendsTo = append(a.LendsTo, fmt.Sprintf("L%d", i))
			}
		}
	}
	a.BorrowLimit = rapid.SampledFrom([]int64{0, 2, 5}).Draw(t, "borrow limit")
	return a
}

// drawMinimums keeps units of a pool for a lane, sometimes.
func drawMinimums(t *rapid.T, lanes int) []policy.LaneMinimum {
	if rapid.IntRange(0, 3).Draw(t, "minimum") < 3 {
		return nil
	}
	return []policy.LaneMinimum{{Lane: fmt.Sprintf("L%d", small(t, "lane", 0, int64(lanes-1))), Units: small(t, "units", 1, 2)}}
}

func drawPool(t *rapid.T, key string, lanes int) policy.Pool {
	return policy.Pool{
		Key: key, Kind: policy.PoolProvider, Group: testGroup, Model: fmt.Sprintf("m%d", rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "model")), CapacityUnits: drawCapacity(t),
		CanLookUp: rapid.IntRange(0, 3).Draw(t, "look up") < 3, LaneMinimums: drawMinimums(t, lanes),
		Preference: small(t, "preference", 0, 1), Parents: rapid.SampledFrom([][]string{nil, {"g0"}, {"g1"}, {"g0", "g1"}}).Draw(t, "parents"),
	}
}

// drawDedication gives a pool to one tenant or one lane, sometimes.
func drawDedication(t *rapid.T, p *policy.Pool, tenants []plan.TenantPlan) {
	switch rapid.IntRange(0, 7).Draw(t, "dedicated") {
	case 6:
		p.DedicatedTenants = []uuid.UUID{tenants[0].ID}
	case 7:
		p.DedicatedLanes = []string{"L0"}
	}
}

func drawDocument(t *rapid.T) (*policy.Document, []plan.TenantPlan) {
	lanes := int(rapid.SampledFrom([]int64{3, 4, 2, 1}).Draw(t, "lanes"))
	d := &policy.Document{
		Scheduling: policy.Scheduling{
			BaseQuantumUnits: small(t, "base", 1, 6), BurstRounds: small(t, "burst rounds", 1, 5), InitialBurstCredit: rapid.SampledFrom([]int64{0, 0, 3}).Draw(t, "credit"),
			AgingStepSeconds: small(t, "aging step", 10, 60), AgingCap: small(t, "aging cap", 3, 4), FitScan: rapid.SampledFrom([]int64{3, 16, 1, 0}).Draw(t, "fit scan"), MaxSkips: small(t, "max skips", 1, 3),
			RepayPermille: drawRepay(t), EarmarkAfter: rapid.SampledFrom([]int64{0, 0, 20}).Draw(t, "earmark after"), EarmarkTimeout: rapid.SampledFrom([]int64{0, 60}).Draw(t, "earmark timeout"),
		},
		Switches: policy.Switches{AdmissionOpen: true, SchedulingRunning: true},
	}
	capacity := rapid.SampledFrom([]int64{3, 9, 1, 0}).Draw(t, "common")
	for i := range lanes {
		own := rapid.SampledFrom([]int64{6, 12, 3, 1, 0}).Draw(t, "own")
		capacity += own
		d.Lanes = append(d.Lanes, policy.Lane{
			Code: fmt.Sprintf("L%d", i), Weight: drawWeight(t), Strategy: rapid.SampledFrom([]policy.Strategy{policy.DRR, policy.DRR, policy.WRR}).Draw(t, "strategy"),
			Accounts: []policy.LaneAccount{drawAccount(t, own, lanes)},
		})
	}
	if rapid.Bool().Draw(t, "routed") {
		d.Routing = []policy.RoutingRule{{ResourceClass: "x", Lane: "L0"}}
	}
	d.PoolGroups = []policy.PoolGroup{{Code: testGroup, CapacityUnits: max(1, capacity)}}
	for _, g := range []string{"g0", "g1"} {
		d.Pools = append(d.Pools, policy.Pool{Key: g, Kind: policy.PoolCapGroup, Group: testGroup, CapacityUnits: rapid.SampledFrom([]int64{12, 30, 5, 2}).Draw(t, "group")})
	}
	d.Pools[1].Parents = rapid.SampledFrom([][]string{nil, {"g0"}}).Draw(t, "nested")
	for i := range rapid.SampledFrom([]int{4, 5, 3, 1}).Draw(t, "pools") {
		d.Pools = append(d.Pools, drawPool(t, fmt.Sprintf("p%d", i), lanes))
	}
	var tenants []plan.TenantPlan
	for i := range rapid.SampledFrom([]int{4, 6, 3, 1}).Draw(t, "tenants") {
		code := fmt.Sprintf("T%d", i)
		d.Plans = append(d.Plans, policy.Plan{Code: code, Settings: drawSettings(t, lanes, i)})
		tenants = append(tenants, plan.TenantPlan{ID: numbered('t', i+1), Code: code, PlanCode: code})
	}
	for i := range d.Pools {
		drawDedication(t, &d.Pools[i], tenants)
	}
	return d, tenants
}

// act does one random thing.
func (p *pair) act(t *rapid.T) {
	switch rapid.SampledFrom([]string{"cycle", "arrive", "complete", "cycle", "arrive", "wait", "complete", "cycle", "arrive", "publish", "breaker", "cancel", "wait"}).Draw(t, "action") {
	case "arrive":
		for range rapid.SampledFrom([]int{6, 12, 3, 1}).Draw(t, "how many") {
			p.arrive(t)
		}
	case "cycle":
		p.cycleBoth(t, rapid.SampledFrom([]int{1, 2, 3, 1000}).Draw(t, "batch"), rapid.SampledFrom([]int{0, 0, 0, 4}).Draw(t, "refuse one in"))
	case "complete":
		for _, id := range p.sorted() {
			if rapid.Bool().Draw(t, "ends") {
				r := p.running[id]
				tl := plan.TenantLane{Tenant: r.TenantID, Lane: r.Lane}
				by := rapid.SampledFrom([]int64{0, 3000, 20_000, -2000, -20_000}).Draw(t, "correction")
				p.debts[tl] = min(max(p.debts[tl]+by, -60_000), 60_000)
				p.finish(id)
			}
		}
	case "cancel":
		if len(p.tasks) > 0 {
			i := rapid.IntRange(0, len(p.tasks)-1).Draw(t, "which")
			p.queue.Remove(p.tasks[i], 1)
			p.n.cancel(p.tasks[i])
			p.tasks = slices.Delete(p.tasks, i, i+1)
		}
	case "publish":
		p.change(t)
	case "breaker":
		o := rapid.SampledFrom(p.doc.Pools).Draw(t, "pool").Key
		u, ok := p.pools[o]
		if !ok {
			u.Limit = -1
		}
		u.Open, u.Limit = rapid.IntRange(0, 2).Draw(t, "open") == 2, rapid.SampledFrom([]int64{-1, -1, 1, 3}).Draw(t, "limit")
		p.pools[o] = u
	case "wait":
		p.now += small(t, "seconds", 1, 40)
	}
}

func (p *pair) sorted() []uuid.UUID {
	var ids []uuid.UUID
	for id := range p.running {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	return ids
}

func (p *pair) arrive(t *rapid.T) {
	p.count++
	tenant := rapid.SampledFrom(p.tenants).Draw(t, "tenant")
	s, _ := p.doc.Effective(tenant.PlanCode, tenant.ID)
	lane := s.Lane
	if rapid.IntRange(0, 4).Draw(t, "elsewhere") == 4 {
		lane = rapid.SampledFrom(p.doc.Lanes).Draw(t, "lane").Code
	}
	model := rapid.SampledFrom(p.models).Draw(t, "model")
	since := second(p.now - rapid.SampledFrom([]int64{0, 20, 45, 100}).Draw(t, "age")).Add(time.Duration(p.count) * time.Microsecond)
	it := queue.Item{
		TaskID: numbered('k', int(small(t, "id", 0, 1_000_000))*1000+p.count), Version: 1, TenantID: tenant.ID, UserID: numbered('u', int(small(t, "user", 1, 2))),
		Lane: lane, Group: testGroup, Band: control.Band(rapid.SampledFrom([]int{2, 3, 1, 0, 4}).Draw(t, "band")), Route: model, Model: model,
		Kind:      map[string]control.Kind{"m0": control.KindImage, "m1": control.KindVideo, "m2": control.KindVideo}[model],
		SlotUnits: rapid.SampledFrom([]int64{1, 1, 1, 2, 3}).Draw(t, "slots"), CostMilli: rapid.SampledFrom([]int64{1000, 1000, 2500, 4000, 7000, 50_000}).Draw(t, "cost"),
		P95: time.Duration(rapid.SampledFrom([]int64{20, 60, 200}).Draw(t, "p95")) * time.Second, QueuedSince: since, EligibleAt: second(p.now + rapid.SampledFrom([]int64{0, 0, 0, 5, 30}).Draw(t, "delay")),
	}
	if err := p.queue.Upsert(it); err != nil {
		t.Fatal(err)
	}
	p.n.arrive(it)
	p.tasks = append(p.tasks, it.TaskID)
}

func (p *pair) change(t *rapid.T) {
	modelCounts.publishes.Add(1)
	switch rapid.SampledFrom([]string{"lane", "tenant", "pool", "settings", "tenant", "running"}).Draw(t, "change") {
	case "tenant":
		i := rapid.IntRange(0, len(p.doc.Plans)-1).Draw(t, "plan")
		p.doc.Plans[i].Settings = drawSettings(t, len(p.doc.Lanes), i)
	case "lane":
		l := &p.doc.Lanes[rapid.IntRange(0, len(p.doc.Lanes)-1).Draw(t, "lane")]
		own := rapid.SampledFrom([]int64{6, 12, 3, 1, 0}).Draw(t, "own")
		p.doc.PoolGroups[0].CapacityUnits = max(1, p.doc.PoolGroups[0].CapacityUnits+own-l.Accounts[0].ReservedUnits)
		l.Weight, l.Paused = drawWeight(t), rapid.IntRange(0, 3).Draw(t, "paused") == 3
		l.Accounts = []policy.LaneAccount{drawAccount(t, own, len(p.doc.Lanes))}
		l.Strategy = rapid.SampledFrom([]policy.Strategy{policy.DRR, policy.DRR, policy.WRR}).Draw(t, "strategy")
	case "pool":
		o := &p.doc.Pools[rapid.IntRange(0, len(p.doc.Pools)-1).Draw(t, "pool")]
		if o.Kind == policy.PoolProvider && rapid.Bool().Draw(t, "anew") {
			*o = drawPool(t, o.Key, len(p.doc.Lanes))
			drawDedication(t, o, p.tenants)
		}
		o.CapacityUnits, o.Paused = drawCapacity(t), rapid.IntRange(0, 3).Draw(t, "paused") == 3
	case "settings":
		p.doc.Scheduling.BaseQuantumUnits, p.doc.Scheduling.BurstRounds = small(t, "base", 1, 6), small(t, "burst rounds", 1, 5)
		p.doc.Scheduling.RepayPermille, p.doc.Scheduling.MaxSkips = drawRepay(t), small(t, "max skips", 1, 3)
		p.doc.Scheduling.EarmarkAfter, p.doc.Scheduling.FitScan = rapid.SampledFrom([]int64{0, 20}).Draw(t, "earmark after"), rapid.SampledFrom([]int64{16, 1, 0}).Draw(t, "fit scan")
	case "running":
		p.doc.Switches.SchedulingRunning = rapid.IntRange(0, 3).Draw(t, "running") < 3
	}
	if err := p.publish(); err != nil {
		t.Fatal(err)
	}
	p.n.publish()
}

// describe says what the model and the planner know of a task.
func (p *pair) describe(id uuid.UUID) string {
	k := p.n.tasks[id]
	if k == nil {
		return fmt.Sprint(id, " is unknown")
	}
	held := p.planner.Explain(plan.Waiting{TaskID: id, TenantID: k.TenantID, UserID: k.UserID, Lane: k.Lane, EligibleAt: k.EligibleAt,
		Need: k.need})
	return fmt.Sprintf("%v in %s, band %d, route %s, user %d, %d units, since %v, hidden %t; the planner says %s",
		id, k.Lane, k.Band, k.Route, k.UserID[15], k.SlotUnits, k.QueuedSince.Sub(second(p.now)), k.hidden, held.Holds)
}

func (n *naive) held() (out string) {
	for _, t := range n.holders() {
		kept := slices.Clone(t.kept)
		slices.Sort(kept)
		out += fmt.Sprintln(t.TaskID, kept, t.inLane, t.skips)
	}
	return out
}

// cycleBoth plans with both, compares, and answers both alike: one start in so many is refused, or none.
// It reports whether there may be more to start at once.
func (p *pair) cycleBoth(t *rapid.T, batch, refuse int) (more bool) {
	needs := p.planner.Needs(second(p.now))
	got := p.planner.Cycle(second(p.now), p.snapshot(needs), batch)
	want := p.n.cycle(p.now, batch)
	for i := range max(len(got.Starts), len(want.Starts)) {
		var a, b plan.Start
		if i < len(got.Starts) {
			s := got.Starts[i]
			a = plan.Start{TaskID: s.TaskID, Pool: s.Pool, Account: s.Account, Lender: s.Lender}
		}
		if i < len(want.Starts) {
			b = want.Starts[i]
		}
		if a.TaskID != b.TaskID || a.Pool != b.Pool || a.Account != b.Account || a.Lender != b.Lender {
			t.Log(p.describe(a.TaskID), p.describe(b.TaskID))
			t.Fatalf("start %d of %d (model: %d): planner %v, model %v", i, len(got.Starts), len(want.Starts), a, b)
		}
	}
	if a, b := fmt.Sprint(got.Relabels, got.Lending, got.Repaid, got.More), fmt.Sprint(want.Relabels, want.Lending, want.Repaid, want.More); a != b {
		t.Fatalf("beside the starts the planner says %s, the model %s", a, b)
	}
	p.beside(got)
	var done []plan.Start
	for _, s := range got.Starts {
		if gate, pool := p.check(s); gate != "" {
			t.Fatalf("start of %v passes a limit: %s %s", s.TaskID, gate, pool)
		}
		if refuse > 0 && rapid.IntRange(0, refuse-1).Draw(t, "refused") == refuse-1 {
			gate := rapid.SampledFrom([]plan.Gate{plan.GateTask, plan.GateTenant, plan.GateUser, plan.GateLane, plan.GateAccount, plan.GatePool}).Draw(t, "gate")
			p.planner.Refuse(s.TaskID, gate, s.Pool)
			p.n.answer(s.TaskID, gate, s.Pool)
			modelCounts.refused.Add(1)
			continue
		}
		modelCounts.starts.Add(1)
		p.world.count(s, 1)
		p.running[s.TaskID] = running{Start: s}
		p.planner.Confirm(s.TaskID)
		p.n.answer(s.TaskID, "", "")
		done = append(done, s)
	}
	p.lend(got, true)
	p.planner.Settle()
	p.n.settle()
	for _, m := range p.n.parties {
		l := p.n.lane(m.lane)
		if got, ok := p.planner.Debt(m.lane, m.tenant); ok && got != m.debt {
			t.Fatalf("tenant %d owes %d in %s, want %d", m.tenant[15], got, m.lane, m.debt)
		}
		if lane, tenant := p.planner.Deficits(m.lane, m.tenant); lane != l.deficit || tenant != m.deficit {
			t.Fatalf("deficits of %s and of tenant %d in it are %d and %d, want %d and %d", m.lane, m.tenant[15], lane, tenant, l.deficit, m.deficit)
		}
	}
	if got, want := p.planner.Holds(), p.n.held(); got != want {
		t.Fatalf("earmarks are %s, want %s", got, want)
	}
	for _, l := range p.n.lanes {
		if busy := p.planner.Busy(l.Code); busy != l.busy {
			t.Fatalf("lane %s is busy: %t, want %t", l.Code, busy, l.busy)
		}
		if cur, cursor, streak := p.planner.Turn(l.Code); cur != l.ring.cur || cursor != l.cursor || streak != l.streak {
			t.Fatalf("lane %s stands at %d, %d, %d, want %d, %d, %d", l.Code, cur, cursor, streak, l.ring.cur, l.cursor, l.streak)
		}
		var ring []uuid.UUID
		in := p.n.in(l)
		slices.SortFunc(in, func(a, b *nParty) int { return cmp.Compare(a.pos, b.pos) })
		for _, m := range in {
			ring = append(ring, m.tenant)
		}
		if got := p.planner.InRing(l.Code); !slices.Equal(got, ring) {
			t.Fatalf("in the ring of lane %s are %v, want %v", l.Code, got, ring)
		}
	}
	for _, s := range done {
		p.queue.Remove(s.TaskID, s.TaskVersion)
		p.tasks = slices.DeleteFunc(p.tasks, func(id uuid.UUID) bool { return id == s.TaskID })
	}
	return got.More
}
