package plan_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/queue"
	"fairlane/policy"
)

// script is a random course of events that can be played again under another batch limit, other names
// or other weights.
type script struct {
	doc     *policy.Document
	tenants []plan.TenantPlan
	steps   []step
}

type step struct {
	arrive  []arrival
	pools   map[int]int64 // new capacities
	open    map[int]bool  // breakers
	seconds int64
	ends    []bool  // of what runs, in the order of the starts
	actual  []int64 // what it costs more or less than estimated, milli-units
}

type arrival struct {
	tenant, user, count int
	band                control.Band
	model               string
	slots, cost, delay  int64
	p95                 int64 // seconds
}

// cast is a way to play a script that must not change the order.
type cast struct {
	batch  int
	rename bool
	factor int64 // of weights
	users  int   // above 0: no user has a cap, and each tenant's work is spread over so many
}

func drawScript(t *rapid.T) script {
	var s script
	s.doc, s.tenants = drawDocument(t)
	s.doc.Routing = nil
	count := 0
	for range rapid.IntRange(2, 8).Draw(t, "steps") {
		st := step{seconds: small(t, "seconds", 0, 30), pools: map[int]int64{}, open: map[int]bool{}}
		for range rapid.IntRange(0, 12).Draw(t, "arrivals") {
			count++
			st.arrive = append(st.arrive, arrival{
				tenant: rapid.IntRange(0, len(s.tenants)-1).Draw(t, "tenant"), user: rapid.IntRange(1, 2).Draw(t, "user"), count: count,
				band: control.Band(small(t, "band", 0, 4)), model: rapid.SampledFrom([]string{"m0", "m1", "m2"}).Draw(t, "model"),
				slots: rapid.SampledFrom([]int64{1, 1, 2}).Draw(t, "slots"), cost: rapid.SampledFrom([]int64{1000, 3000, 7500}).Draw(t, "cost"),
				delay: rapid.SampledFrom([]int64{0, 0, 20}).Draw(t, "delay"), p95: rapid.SampledFrom([]int64{20, 60, 200}).Draw(t, "p95"),
			})
		}
		if rapid.IntRange(0, 2).Draw(t, "publish") == 0 {
			st.pools[rapid.IntRange(0, len(s.doc.Pools)-1).Draw(t, "pool")] = drawCapacity(t)
		}
		if rapid.IntRange(0, 3).Draw(t, "breaker") == 3 {
			st.open[rapid.IntRange(0, len(s.doc.Pools)-1).Draw(t, "pool")] = rapid.Bool().Draw(t, "open")
		}
		st.ends = rapid.SliceOfN(rapid.Bool(), 16, 16).Draw(t, "ends")
		st.actual = rapid.SliceOfN(rapid.SampledFrom([]int64{0, 3000, 20_000, -2000, -20_000}), 7, 7).Draw(t, "actual")
		s.steps = append(s.steps, st)
	}
	return s
}

// play returns the numbers of the tasks in the order of their starts.
func (s script) play(t *rapid.T, c cast) (order []int) {
	d := *s.doc
	d.Plans, d.Lanes, d.Pools = slices.Clone(d.Plans), slices.Clone(d.Lanes), slices.Clone(d.Pools)
	for i := range d.Plans {
		d.Plans[i].Settings.Weight *= c.factor
		if c.users > 0 {
			set := &d.Plans[i].Settings
			set.UserMaxRunningTasks, set.UserMaxRunningImage, set.UserMaxRunningVideo = 1000, 1000, 1000
		}
	}
	for i := range d.Lanes {
		d.Lanes[i].Weight *= c.factor
	}
	tenants := slices.Clone(s.tenants)
	if c.rename {
		for i := range d.Pools {
			if len(d.Pools[i].DedicatedTenants) > 0 {
				d.Pools[i].DedicatedTenants = []uuid.UUID{numbered('t', 1000)}
			}
		}
		for i := range tenants {
			tenants[i].ID = numbered('t', 1000-i)
		}
	}
	w, err := newWorld(&d, tenants)
	if err != nil {
		t.Fatal(err)
	}
	w.batch = c.batch
	w.refused = func(p plan.Start, gate plan.Gate) { t.Fatalf("start of %v passes a limit: %s", p.TaskID, gate) }
	number := map[uuid.UUID]int{}
	var live []uuid.UUID
	for _, st := range s.steps {
		w.now += st.seconds
		kept := live[:0]
		for i, id := range live {
			if st.ends[i%len(st.ends)] {
				r := w.running[id]
				tl := plan.TenantLane{Tenant: r.TenantID, Lane: r.Lane}
				w.debts[tl] = min(max(w.debts[tl]+st.actual[i%len(st.actual)], -60_000), 60_000)
				w.finish(id)
			} else {
				kept = append(kept, id)
			}
		}
		live = kept
		for i, units := range st.pools {
			d.Pools[i].CapacityUnits = units
		}
		for i, open := range st.open {
			u, ok := w.pools[d.Pools[i].Key]
			if !ok {
				u.Limit = -1
			}
			u.Open = open
			w.pools[d.Pools[i].Key] = u
		}
		if len(st.pools) > 0 {
			if err := w.publish(); err != nil {
				t.Fatal(err)
			}
		}
		for _, a := range st.arrive {
			id := numbered('k', a.count)
			number[id] = a.count
			user := a.user
			if c.users > 0 {
				user = a.count % c.users
			}
			if c.rename {
				user = 9 - user
			}
			if err := w.queue.Upsert(queue.Item{
				TaskID: id, Version: 1, TenantID: tenants[a.tenant].ID, UserID: numbered('u', user), Lane: d.Plans[a.tenant].Settings.Lane, Group: testGroup,
				Band: a.band, Route: a.model, Model: a.model, Kind: control.KindVideo, SlotUnits: a.slots, CostMilli: a.cost,
				P95: time.Duration(a.p95) * time.Second, QueuedSince: second(w.now), EligibleAt: second(w.now + a.delay),
			}); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range w.cycle(func(plan.Start) int64 { return 1 << 40 }) {
			order = append(order, number[p.TaskID])
			live = append(live, p.TaskID)
		}
	}
	return order
}

// Scaling all weights, renaming tenants and users, and any batch limit leave the order as it is; so does
// splitting the tenants' work over more users where no user's cap binds.
func TestOrderIsInvariant(t *testing.T) {
	t.Parallel()
	var count, starts int
	sequences(t, 1500, func(t *rapid.T) {
		s := drawScript(t)
		for _, group := range []map[string]cast{
			{
				"as drawn": {1_000_000, false, 1, 0}, "batch limit 1": {1, false, 1, 0}, "batch limit 3": {3, false, 1, 0}, "batch limit 1000": {1000, false, 1, 0},
				"renamed": {1_000_000, true, 1, 0}, "weights x10": {1_000_000, false, 10, 0}, "weights x1000": {2, true, 1000, 0},
			},
			{"one user": {1_000_000, false, 1, 1}, "seven users": {1_000_000, false, 1, 7}},
		} {
			var first []int
			for _, name := range slices.Sorted(maps.Keys(group)) {
				got := s.play(t, group[name])
				if first == nil {
					first = got
				}
				if !slices.Equal(got, first) {
					t.Fatalf("%s: order is %v, want %v", name, got, first)
				}
				starts += len(got)
			}
		}
		count++
	})
	figure(t, "order invariant under batch, names, scale and users: %d scripts played 9 times, %d starts", count, starts)
}

// Work is conserved: after a cycle without batch limit no head could start that no rule forbids, and no
// limit is passed. Looked at from outside, by the claim's own checks.
func TestWorkIsConserved(t *testing.T) {
	t.Parallel()
	var count, looked int
	sequences(t, 1500, func(t *rapid.T) {
		p := newPair(t)
		for range rapid.SampledFrom([]int{12, 30, 5, 1}).Draw(t, "actions") {
			p.act(t)
		}
		p.now += 10 // beyond what a refused task is passed over
		for p.cycleBoth(t, 1<<30, 0) {
			continue
		}
		p.n.load()
		for _, id := range p.waiting() {
			looked++
			task := p.n.tasks[id]
			l, _ := p.doc.Lane(task.Lane)
			if task.EligibleAt.After(second(p.now)) || l.Paused || !p.doc.Switches.SchedulingRunning || !p.first(task) {
				continue
			}
			r, u := p.n.rule(task.TenantID), p.used[task.TenantID]
			if u.Units+task.SlotUnits > r.MaxRunningUnits || u.Tasks >= r.MaxRunningTasks || p.n.userFull(task) {
				continue
			}
			if p.n.fits(task) {
				account, _ := p.n.account(task)
				t.Fatalf("task %v of tenant %v waits although %s has room and account %s units", id, task.TenantID, p.n.fit(task, false), account)
			}
		}
		count++
	})
	figure(t, "work conservation: %d sequences, %d waiting tasks looked at, 0 could have started", count, looked)
}

// waiting lists the tasks that are still in the queue.
func (p *pair) waiting() (out []uuid.UUID) {
	for id := range p.n.tasks {
		if _, err := p.queue.ByID(id); err == nil {
			out = append(out, id)
		} else {
			delete(p.n.tasks, id)
		}
	}
	slices.SortFunc(out, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	return out
}

// first reports whether a task is the oldest of its tenant, lane, band and route that may be seen, and
// no earlier head of its tenant is beyond the tenant's maximum.
func (p *pair) first(t *nTask) bool {
	m := &nParty{lane: t.Lane, tenant: t.TenantID}
	r, u := p.n.rule(t.TenantID), p.used[t.TenantID]
	for _, h := range p.n.heads(m) {
		if h.Band == t.Band && h.Route == t.Route && older(h, t) < 0 {
			return false
		}
		if u.Units+h.SlotUnits > r.MaxRunningUnits {
			return false
		}
	}
	return true
}
