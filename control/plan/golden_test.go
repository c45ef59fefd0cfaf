package plan_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/queue"
	"fairlane/policy"
)

func goldenTexts(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden cases: %v", err)
	}
	out := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".txt")] = string(text)
	}
	return out
}

// variant is a change that must not change the order.
type variant struct {
	name    string
	batch   int   // 0: no limit
	rename  bool  // tenants' ids in the opposite order
	weights int64 // factor
}

var variants = []variant{
	{name: "as written", weights: 1},
	{name: "batch 1", batch: 1, weights: 1},
	{name: "batch 3", batch: 3, weights: 1},
	{name: "renamed", rename: true, weights: 1},
	{name: "weights x10", weights: 10},
	{name: "weights x1000, batch 1", batch: 1, weights: 1000},
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, text := range goldenTexts(t) {
		for _, v := range variants {
			t.Run(name+"/"+v.name, func(t *testing.T) {
				t.Parallel()
				s, err := parse(text)
				if err != nil {
					t.Fatal(err)
				}
				s.run(t, v)
			})
		}
	}
}

// D03: strict order per pool, not across pools.
func TestTrap_D03_FullPoolHoldsNobodyForAnotherPool(t *testing.T) {
	t.Parallel()
	golden(t, "G08")
}

// D04: a lender whose own task waits for its lane's idle units lends none of them; that task has them next.
func TestTrap_D04_ReserveHeldForTheLendersOwnTask(t *testing.T) {
	t.Parallel()
	golden(t, "H39")
}

// D45: a pool, or a lane's reserve, lowered below its use kills nothing and starts nothing until it has
// drained below.
func TestTrap_D45_PoolLoweredBelowItsUse(t *testing.T) {
	t.Parallel()
	golden(t, "H03")
	golden(t, "H18")
	golden(t, "H36")
}

// D46: a pool resized down and up while tasks run and end never holds more than its limit at a start.
func TestTrap_D46_PoolResizedWhileItWorks(t *testing.T) {
	t.Parallel()
	golden(t, "H37")
}

// D49: what is lent in total stops further lending once the lender wakes, and is back when the tasks end.
func TestTrap_D49_LenderIsWholeAfterTheLoansEnd(t *testing.T) {
	t.Parallel()
	golden(t, "H38")
}

func golden(t *testing.T, name string) {
	t.Helper()
	s, err := parse(goldenTexts(t)[name])
	if err != nil {
		t.Fatal(err)
	}
	s.run(t, variant{weights: 1})
}

// stage is a scenario set up in a world.
type stage struct {
	*scenario
	*world
	v      variant
	ids    map[string]uuid.UUID // tasks
	names  map[uuid.UUID]string
	runs   map[uuid.UUID]int64
	tenant map[string]uuid.UUID
	items  map[uuid.UUID]queue.Item
}

func (s *scenario) value(key string, def int64) int64 { return pick(s.set, key, def) }

func pick(m map[string]int64, key string, def int64) int64 {
	if v, ok := m[key]; ok {
		return v
	}
	return def
}

// document builds the policy of a scenario. A pool of the text is a cap group; each distinct list of
// pools is a model with a leaf in every pool of the list, in that order of preference.
func (g *stage) document() *policy.Document {
	s := g.scenario
	d := &policy.Document{
		Schema: policy.SchemaVersion,
		Scheduling: policy.Scheduling{
			BaseQuantumUnits: s.value("base", 4), BurstRounds: s.value("burst_rounds", 2), InitialBurstCredit: s.value("credit", 0),
			AgingStepSeconds: s.value("aging_step", 300), AgingCap: s.value("aging_cap", 3),
			FitScan: s.value("fit_scan", 16), MaxSkips: s.value("max_skips", 4),
			RepayPermille: s.value("repay", 500), EarmarkTimeout: s.value("earmark_timeout", 2000), EarmarkAfter: s.value("earmark_after", 0),
		},
		Switches: policy.Switches{AdmissionOpen: true, SchedulingRunning: s.value("running", 1) == 1},
	}
	capacity := s.value("common", 0)
	for _, l := range s.lanes {
		lane := policy.Lane{Code: l.name, Weight: pick(l.num, "w", 1), Strategy: policy.DRR, Paused: l.num["paused"] == 1, AdmissionOpen: true}
		if l.num["wrr"] == 1 {
			lane.Strategy = policy.WRR
		}
		lane.Accounts = []policy.LaneAccount{g.account(l)}
		capacity += l.num["own"]
		d.Lanes = append(d.Lanes, lane)
	}
	d.PoolGroups = []policy.PoolGroup{{Code: testGroup, CapacityUnits: capacity}}
	for _, p := range s.pools {
		d.Pools = append(d.Pools, policy.Pool{Key: p.name, Kind: policy.PoolCapGroup, Group: testGroup, CapacityUnits: p.capacity, Parents: p.parents, LaneMinimums: p.minimums})
	}
	seen := map[string]bool{}
	for _, k := range s.tasks {
		model := strings.Join(k.pools, ",")
		for i, p := range k.pools {
			if !seen[model] {
				d.Pools = append(d.Pools, policy.Pool{
					Key: model + "/" + p, Kind: policy.PoolProvider, Group: testGroup, Parents: []string{p}, Model: model,
					CapacityUnits: 1_000_000, Preference: int64(i), CanLookUp: true, DedicatedLanes: s.dedicated(p),
				})
			}
		}
		seen[model] = true
	}
	for i, t := range s.tenants {
		d.Plans = append(d.Plans, policy.Plan{Code: t.name, Settings: t.settings(g.v.weights)})
		id := numbered('t', i+1)
		if g.v.rename {
			id = numbered('t', 1000-i)
		}
		g.tenant[t.name] = id
		g.world.tenants = append(g.world.tenants, plan.TenantPlan{ID: id, Code: t.name, PlanCode: t.name})
	}
	return d
}

// account of a lane; it lends to every other one.
func (g *stage) account(l gLane) policy.LaneAccount {
	a := policy.LaneAccount{
		PoolGroup: testGroup, ReservedUnits: l.num["own"], HeadroomUnits: l.num["headroom"], LendableUnits: l.num["lendable"],
		BorrowTimeout: l.num["borrow_timeout"], Cooldown: l.num["cooldown"], BorrowLimit: l.num["borrow_limit"],
	}
	for _, o := range g.scenario.lanes {
		if o.name != l.name {
			a.LendsTo = append(a.LendsTo, o.name)
		}
	}
	return a
}

func (t *gTenant) settings(factor int64) policy.TenantSettings {
	cap := pick(t.num, "user_cap", 1_000_000)
	return policy.TenantSettings{
		Lane: t.lane, Weight: pick(t.num, "w", 1) * factor, ReservedUnits: t.num["reserve"], BurstUnits: pick(t.num, "burst", 100),
		MaxRunningUnits: pick(t.num, "max", 100), MaxRunningTasks: pick(t.num, "max_tasks", 1_000_000),
		UserMaxRunningTasks: cap, UserMaxRunningImage: cap, UserMaxRunningVideo: cap,
	}
}

// stage sets a scenario up.
func (s *scenario) stage(t *testing.T, v variant) *stage {
	t.Helper()
	g := &stage{scenario: s, v: v, ids: map[string]uuid.UUID{}, names: map[uuid.UUID]string{}, runs: map[uuid.UUID]int64{},
		tenant: map[string]uuid.UUID{}, items: map[uuid.UUID]queue.Item{}, world: &world{}}
	doc := g.document()
	w, err := newWorld(doc, g.world.tenants)
	if err != nil {
		t.Fatal(err)
	}
	g.world = w
	for _, t := range s.tenants {
		w.debts[plan.TenantLane{Tenant: g.tenant[t.name], Lane: t.lane}] = t.num["debt"] * control.Milli
	}
	if v.batch > 0 {
		w.batch = v.batch
	}
	g.name()
	return g
}

func (s *scenario) run(t *testing.T, v variant) {
	t.Helper()
	g := s.stage(t, v)
	var got []gStarts
	for {
		g.complete()
		g.happen(t)
		starts := g.cycle(func(p plan.Start) int64 { return g.runs[p.TaskID] })
		if len(starts) > 0 {
			line := gStarts{at: g.now}
			for _, p := range starts {
				_, pool, _ := strings.Cut(p.Pool, "/")
				account := string(p.Account)
				if p.Lender != "" {
					account += "<" + p.Lender
				}
				line.starts = append(line.starts, gStart{g.names[p.TaskID], pool, account})
			}
			got = append(got, line)
		}
		next, ok := g.next()
		if !ok || s.until >= 0 && next > s.until {
			break
		}
		g.now = next
	}
	g.compare(t, got)
}

// name gives every task an id in the order of its name.
func (g *stage) name() {
	var all []string
	for _, k := range g.tasks {
		all = append(all, k.names()...)
	}
	slices.Sort(all)
	for i, n := range all {
		g.ids[n] = numbered('k', i+1)
		g.names[g.ids[n]] = n
	}
}

func (k *gTask) names() []string {
	if k.copies == 0 {
		return []string{k.name}
	}
	var out []string
	for i := range k.copies {
		out = append(out, fmt.Sprintf("%s%02d", k.name, i+1))
	}
	return out
}

// next is the next instant at which something ends or happens.
func (g *stage) next() (int64, bool) {
	at, ok := g.nextEnd()
	consider := func(n int64) {
		if n > g.now && (!ok || n < at) {
			at, ok = n, true
		}
	}
	for _, k := range g.tasks {
		consider(k.num["at"])
	}
	for _, e := range g.events {
		consider(e.at)
	}
	return at, ok
}

// happen does what the lines of the file say for now, in their order.
func (g *stage) happen(t *testing.T) {
	t.Helper()
	for _, o := range g.order {
		if o.task > 0 {
			if k := g.tasks[o.task-1]; k.num["at"] == g.now {
				g.arrive(t, k)
			}
			continue
		}
		if e := g.events[o.event-1]; e.at == g.now {
			g.event(t, e.what)
		}
	}
}

func (g *stage) arrive(t *testing.T, k gTask) {
	t.Helper()
	for _, n := range k.names() {
		user := numbered('u', 1)
		copy(user[1:8], k.user)
		it := queue.Item{
			TaskID: g.ids[n], Version: 1, TenantID: g.tenant[k.tenant], UserID: user, Group: testGroup,
			Lane: g.laneOf(k.tenant), Band: control.Band(pick(k.num, "band", 2)), Route: strings.Join(k.pools, ","), Model: strings.Join(k.pools, ","),
			Kind: control.KindVideo, SlotUnits: pick(k.num, "slots", 1), CostMilli: pick(k.num, "cost", 1) * control.Milli,
			P95: time.Duration(pick(k.num, "run", 60)) * time.Second, QueuedSince: second(pick(k.num, "since", g.now)), EligibleAt: second(g.now),
		}
		g.runs[it.TaskID] = pick(k.num, "run", 60)
		g.items[it.TaskID] = it
		if err := g.queue.Upsert(it); err != nil {
			t.Fatalf("%s: %v", n, err)
		}
	}
}

func (g *stage) laneOf(tenant string) string {
	i := slices.IndexFunc(g.scenario.tenants, func(t gTenant) bool { return t.name == tenant })
	return g.scenario.tenants[i].lane
}

func (g *stage) event(t *testing.T, w []string) {
	t.Helper()
	switch w[0] {
	case "wake":
		return
	case "breaker":
		u := g.world.pools[w[1]]
		u.Open, u.Limit = w[2] == "open", -1
		g.world.pools[w[1]] = u
		return
	case "limit":
		n, _ := number(w[2])
		u := g.world.pools[w[1]]
		u.Limit = n
		g.world.pools[w[1]] = u
		return
	case "settle":
		units, credit := strings.CutPrefix(w[2], "-")
		n, _ := number(units)
		if credit {
			n = -n
		}
		tl := plan.TenantLane{Tenant: g.tenant[w[1]], Lane: g.laneOf(w[1])}
		g.debts[tl] += n * control.Milli
		return
	case "cancel":
		g.queue.Remove(g.ids[w[1]], 1)
		delete(g.items, g.ids[w[1]])
		return
	case "drop":
		g.doc.Lanes = slices.DeleteFunc(g.doc.Lanes, func(l policy.Lane) bool { return l.Code == w[1] })
	case "pool":
		p, _ := g.doc.Pool(w[1])
		p.CapacityUnits, _ = number(w[2])
	case "set":
		into := map[string]int64{}
		if err := pairs(w[1:], into, setKeys); err != nil {
			t.Fatal(err)
		}
		g.doc.Scheduling.BaseQuantumUnits = pick(into, "base", g.doc.Scheduling.BaseQuantumUnits)
		g.doc.Switches.SchedulingRunning = pick(into, "running", 1) == 1
	case "lane":
		into := map[string]int64{}
		if err := pairs(w[2:], into, laneKeys); err != nil {
			t.Fatal(err)
		}
		l, _ := g.doc.Lane(w[1])
		l.Weight = pick(into, "w", l.Weight)
		l.Paused = into["paused"] == 1
		if v, ok := into["wrr"]; ok {
			l.Strategy = policy.DRR
			if v == 1 {
				l.Strategy = policy.WRR
			}
		}
		i := slices.IndexFunc(g.scenario.lanes, func(x gLane) bool { return x.name == w[1] })
		old := l.Accounts[0].ReservedUnits
		for k, v := range into {
			g.scenario.lanes[i].num[k] = v
		}
		l.Accounts[0] = g.account(g.scenario.lanes[i])
		g.doc.PoolGroups[0].CapacityUnits += l.Accounts[0].ReservedUnits - old
	case "tenant":
		i := slices.IndexFunc(g.scenario.tenants, func(x gTenant) bool { return x.name == w[1] })
		if err := pairs(w[2:], g.scenario.tenants[i].num, tenantKeys); err != nil {
			t.Fatal(err)
		}
		p, _ := g.doc.Plan(w[1])
		p.Settings = g.scenario.tenants[i].settings(g.v.weights)
	}
	if err := g.publish(); err != nil {
		t.Fatal(err)
	}
}

// compare holds the starts against the answer; a pool or account that the answer leaves out is free.
func (g *stage) compare(t *testing.T, got []gStarts) {
	t.Helper()
	want := g.expect
	same := slices.EqualFunc(got, want, func(a, b gStarts) bool {
		return a.at == b.at && slices.EqualFunc(a.starts, b.starts, func(x, y gStart) bool {
			return x.task == y.task && (y.pool == "" || x.pool == y.pool) && (y.account == "" || x.account == y.account)
		})
	})
	if !same {
		t.Errorf("starts are\n%swant\n%s", render(got), render(want))
	}
	started := map[string]bool{}
	for _, l := range got {
		for _, x := range l.starts {
			started[x.task] = true
		}
	}
	for _, n := range g.never {
		it, ok := g.items[g.ids[n.task]]
		if !ok {
			t.Errorf("%s is named under never, but is not there", n.task)
			continue
		}
		held := g.planner.Explain(plan.Waiting{TaskID: it.TaskID, TenantID: it.TenantID, UserID: it.UserID, Lane: it.Lane, EligibleAt: it.EligibleAt,
			Need: control.Need{Route: it.Route, Model: it.Model, Kind: it.Kind, SlotUnits: it.SlotUnits, P95: control.ClassOfP95(it.P95)}})
		if started[n.task] || held.Holds != gates[n.gate] {
			t.Errorf("%s is held by %s (started: %t), want %s", n.task, held.Holds, started[n.task], n.gate)
		}
	}
	for id := range g.items {
		if n := g.names[id]; !started[n] && !slices.ContainsFunc(g.never, func(x gNever) bool { return x.task == n }) {
			t.Errorf("%s did not start and is not named under never", n)
		}
	}
}

var gates = map[string]plan.Gate{
	"pool": plan.GatePool, "never": plan.GateNeverFits, "user": plan.GateUser, "tenant": plan.GateTenant,
	"account": plan.GateAccount, "lane": plan.GateLane, "turn": plan.GateTurn, "later": plan.GateNotEligible,
}

func render(all []gStarts) string {
	var b strings.Builder
	for _, l := range all {
		fmt.Fprintf(&b, "t=%d:", l.at)
		for _, x := range l.starts {
			fmt.Fprintf(&b, " %s@%s:%s", x.task, x.pool, x.account)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
