package monitor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"fairlane/control"
	"fairlane/control/estimate"
	"fairlane/control/monitor"
	"fairlane/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// facts is a source whose facts a test sets.
type facts struct {
	mu       sync.Mutex
	capacity monitor.Capacity
	uses     []monitor.TenantUse
	flow     []monitor.FlowCount
	machine  monitor.Machine
	down     error
	reads    []time.Time // of Capacity
}

func (f *facts) set(fn func()) { f.mu.Lock(); defer f.mu.Unlock(); fn() }

func (f *facts) Capacity(context.Context) (monitor.Capacity, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads = append(f.reads, time.Now())
	return f.capacity, f.down
}

func (f *facts) Demand(context.Context, time.Time) ([]monitor.TenantUse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]monitor.TenantUse(nil), f.uses...), f.down
}

func (f *facts) Identify(_ context.Context, ids []uuid.UUID) ([]monitor.TenantFace, error) {
	out := make([]monitor.TenantFace, len(ids))
	for i, id := range ids {
		out[i] = monitor.TenantFace{TenantID: id, Code: "t-" + id.String()[34:], Name: "<b>" + id.String()[34:]}
	}
	return out, nil
}

func (f *facts) Flow(_ context.Context, since time.Time) ([]monitor.FlowCount, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []monitor.FlowCount
	for _, c := range f.flow {
		if !c.Second.Before(since) {
			out = append(out, c)
		}
	}
	return out, f.down
}

func (f *facts) Machine(context.Context) (monitor.Machine, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.machine, f.down
}

func (f *facts) readCount() int { f.mu.Lock(); defer f.mu.Unlock(); return len(f.reads) }

func document() (*policy.Document, int64) {
	return &policy.Document{
		Lanes: []policy.Lane{
			{Code: "STANDARD", Weight: 3, WaitTargetSeconds: 600, AdmissionOpen: true},
			{Code: "PAID_SHARED", Weight: 5, WaitTargetSeconds: 180, AdmissionOpen: true, Paused: true},
		},
		Switches: policy.Switches{AdmissionOpen: true, SchedulingRunning: true},
	}, 7
}

func tenant(i int) uuid.UUID {
	return uuid.MustParse(fmt.Sprintf("00000000-0000-7000-8000-%012x", i))
}

// start runs a monitor inside the bubble; stop waits for it.
func start(t *testing.T, f *facts, cfg monitor.Config) (m *monitor.Monitor, stop func()) {
	t.Helper()
	m = monitor.New(cfg, f, document)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := m.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	synctest.Wait()
	return m, func() { cancel(); done.Wait() }
}

func example() *facts {
	return &facts{capacity: monitor.Capacity{
		PolicyWanted: 7,
		Groups:       []monitor.GroupUse{{Group: "main", CapacityUnits: 100, Common: 40, CommonUse: 7}},
		Accounts: []monitor.AccountUse{
			{Lane: "PAID_SHARED", Group: "main", Reserved: 40, Own: 11},
			{Lane: "STANDARD", Group: "main", Reserved: 20, Own: 23, Common: 7},
			{Lane: "GONE", Group: "main", Own: 1},
		},
		Pools: []monitor.PoolRow{
			{Key: "p:a", Kind: "PROVIDER", Capacity: 30, Limit: -1, Used: 33, Unknown: 2, UnknownUnits: 4},
			{Key: "p:b", Kind: "PROVIDER", Capacity: 30, Limit: 10, Used: 4},
			{Key: "g", Kind: "CAP_GROUP", Capacity: 100, Limit: -1, Used: 37, Unknown: 2},
		},
		Queues: []monitor.QueueUse{
			{Lane: "STANDARD", QueuedTasks: 5, QueuedMilli: 9000, RunningTasks: 30, OldestAt: time.Unix(1000, 0)},
			{Lane: "PAID_SHARED", QueuedTasks: 1, QueuedMilli: 1000, RunningTasks: 11, OldestAt: time.Unix(2000, 0)},
		},
	}}
}

func TestStateFoldsFacts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, stop := start(t, example(), monitor.Config{})
		defer stop()
		s := m.State()
		o := s.Overview
		if o.Capacity != 100 || o.Own != 35 || o.Common != 7 || o.Used != 42 || o.Free != 58 || o.QueuedTasks != 6 || o.QueuedMilli != 10_000 || o.Running != 41 {
			t.Errorf("sums: %+v", o)
		}
		if o.OldestLane != "STANDARD" || !o.OldestAt.Equal(time.Unix(1000, 0)) || o.Unknown != 2 || o.UnknownUnits != 4 {
			t.Errorf("oldest and unknown: %+v", o)
		}
		if o.PolicyActive != 7 || o.PolicyWanted != 7 || len(o.Degraded) != 0 || strings.Join(o.PausedLanes, " ") != "PAID_SHARED" {
			t.Errorf("policy: %+v", o)
		}
		if len(s.Lanes) != 3 || s.Lanes[0].Lane != "STANDARD" || s.Lanes[2].Lane != "GONE" {
			t.Fatalf("lanes: %+v", s.Lanes)
		}
		if l := s.Lanes[0]; l.Used != 30 || l.Over != 3 || l.Free != 33 || l.Capacity != 60 || l.TargetSeconds != 600 {
			t.Errorf("standard: %+v", l)
		}
	})
}

// TestTrap_D45_ShownAsOverBy: capacity below use is "over by n", never negative and never hidden.
func TestTrap_D45_ShownAsOverBy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, stop := start(t, example(), monitor.Config{})
		defer stop()
		pools := m.State().Pools
		if p := pools[0]; p.Over != 3 || p.Free != 0 {
			t.Errorf("33 of 30: %+v", p)
		}
		if p := pools[1]; p.Over != 0 || p.Free != 6 {
			t.Errorf("4 of an adaptive limit of 10: %+v", p)
		}
	})
}

func TestHintsAreCoalescedToFourASecondAndTheFloorHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := example()
		m, stop := start(t, f, monitor.Config{})
		defer stop()
		release := m.Watch(monitor.TopicLanes)
		pass(time.Second)
		before := f.readCount()
		for range 1000 {
			m.Hint(monitor.HintSlots)
			pass(10 * time.Millisecond)
		}
		if n := f.readCount() - before; n < 35 || n > 41 {
			t.Errorf("1,000 hints in 10 s: %d reads, want about 40", n)
		}
		before = f.readCount()
		pass(20 * time.Second)
		if n := f.readCount() - before; n < 9 || n > 11 {
			t.Errorf("no hints, watched, 20 s: %d reads, want about 10", n)
		}
		release()
		pass(6 * time.Second)
		before = f.readCount()
		for range 2000 {
			m.Hint(monitor.HintSlots)
			pass(10 * time.Millisecond)
		}
		if n := f.readCount() - before; n < 3 || n > 5 {
			t.Errorf("2,000 hints in 20 s that nobody watches: %d reads, want about 4", n)
		}
		before = f.readCount()
		m.Hint(monitor.HintPolicy)
		pass(time.Second)
		if n := f.readCount() - before; n < 1 {
			t.Error("a publish was not read at once although nobody watches")
		}
		before = f.readCount()
		m.Look()
		pass(300 * time.Millisecond)
		if n := f.readCount() - before; n != 1 {
			t.Errorf("a page that was looked at: %d reads, want 1", n)
		}
	})
}

// board applies updates as a client does and checks that they have no gap.
type board struct {
	t     *testing.T
	mu    sync.Mutex
	snap  monitor.Snapshot
	rows  map[string]json.RawMessage
	order []string
}

func (b *board) now() monitor.Snapshot { b.mu.Lock(); defer b.mu.Unlock(); return b.snap }

func (b *board) row(key string) string { b.mu.Lock(); defer b.mu.Unlock(); return string(b.rows[key]) }

func (b *board) take(u monitor.Update) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rows == nil || u.Patch == nil {
		if b.rows != nil && u.Snapshot.Seq != b.snap.Seq {
			b.t.Errorf("sequence %d without a patch after %d", u.Snapshot.Seq, b.snap.Seq)
		}
		if b.rows == nil {
			b.rows = map[string]json.RawMessage{}
			for _, r := range u.Snapshot.Rows {
				b.rows[r.Key] = r.JSON
				b.order = append(b.order, r.Key)
			}
		}
		b.snap = u.Snapshot
		return
	}
	if u.Snapshot.Seq != b.snap.Seq+1 {
		b.t.Errorf("sequence %d after %d", u.Snapshot.Seq, b.snap.Seq)
	}
	b.snap = u.Snapshot
	for _, k := range u.Patch.Gone {
		delete(b.rows, k)
		for i := range b.order {
			if b.order[i] == k {
				b.order = append(b.order[:i:i], b.order[i+1:]...)
				break
			}
		}
	}
	for _, r := range u.Patch.Set {
		if _, ok := b.rows[r.Key]; !ok {
			b.order = append(b.order, r.Key)
		}
		b.rows[r.Key] = r.JSON
	}
	if u.Patch.Order != nil {
		b.order = u.Patch.Order
	}
	if len(b.order) != len(u.Snapshot.Rows) {
		b.t.Fatalf("%d rows after the patch, %d in the snapshot", len(b.order), len(u.Snapshot.Rows))
	}
	for i, r := range u.Snapshot.Rows {
		if b.order[i] != r.Key || string(b.rows[r.Key]) != string(r.JSON) {
			b.t.Fatalf("row %d after the patch is %s, in the snapshot %s", i, b.order[i], r.Key)
		}
	}
}

func TestE21_PatchesLeadToTheSnapshotWithoutAGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := example()
		m, stop := start(t, f, monitor.Config{})
		defer stop()
		b := &board{t: t}
		detach, ok := m.Attach(monitor.TopicTenants, b.take)
		if !ok {
			t.Fatal("no such topic")
		}
		defer detach()
		release := m.Watch(monitor.TopicTenants)
		defer release()
		for step := range 60 {
			f.set(func() {
				f.uses = nil
				for i := range 5 + (step*7)%11 {
					f.uses = append(f.uses, monitor.TenantUse{TenantID: tenant((i*3 + step) % 17), Lane: "STANDARD", HomeLane: "STANDARD",
						Weight: int64(1 + (i+step)%4), QueuedTasks: int64(step % 3), RunningTasks: 1, ServedMilli: int64(step * i * 1000)})
				}
			})
			m.Hint(monitor.HintQueue)
			pass(1100 * time.Millisecond)
		}
		if b.now().Seq < 50 {
			t.Errorf("only %d changes were told", b.now().Seq)
		}
		at, seq := b.now().AsOf, b.now().Seq
		f.set(func() { f.uses = nil })
		pass(3 * time.Second)
		last := b.now().Seq
		pass(3 * time.Second)
		if b.now().Seq != last || last == seq {
			t.Errorf("sequence went from %d to %d to %d", seq, last, b.now().Seq)
		}
		if !b.now().AsOf.After(at) {
			t.Error("nothing changed, but the facts were read again: as_of must say so")
		}
	})
}

func TestE20_AgeOfTheDataGrowsWhenFactsCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := example()
		m, stop := start(t, f, monitor.Config{})
		defer stop()
		b := &board{t: t}
		detach, _ := m.Attach(monitor.TopicOverview, b.take)
		defer detach()
		release := m.Watch(monitor.TopicOverview)
		defer release()
		pass(3 * time.Second)
		f.set(func() { f.down = errors.New("gone") })
		pass(10 * time.Second)
		if age := time.Since(b.now().AsOf); age < 9*time.Second {
			t.Errorf("as_of is %v old, the facts were last read 10 s ago", age)
		}
		if d := m.State().Overview.Degraded; len(d) != 1 || d[0].Code != monitor.DegradedPostgres {
			t.Errorf("degraded: %+v", d)
		}
		if !strings.Contains(b.row(monitor.OverviewKey), `"postgres"`) {
			t.Error("the mode was not told")
		}
		f.set(func() { f.down = nil })
		pass(3 * time.Second)
		if d := m.State().Overview.Degraded; len(d) != 0 || time.Since(b.now().AsOf) > 3*time.Second {
			t.Errorf("after the return: %+v", d)
		}
	})
}

func TestE08_ModesOfOtherRoomsAreToldWithinAFrame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, stop := start(t, example(), monitor.Config{})
		defer stop()
		pass(time.Second)
		m.SetDegraded(monitor.DegradedRealtime, true)
		m.SetStore("redis", false)
		m.ReconcilerRan("counters", monitor.Run{At: time.Now(), Repaired: 3})
		pass(2500 * time.Millisecond)
		if d := m.State().Overview.Degraded; len(d) != 1 || d[0].Code != monitor.DegradedRealtime {
			t.Errorf("%+v", d)
		}
		pass(5 * time.Second)
		bad := map[string]string{}
		for _, h := range m.State().Health {
			bad[h.Key()] = h.Code
		}
		if bad["store:redis"] != monitor.HealthDown || bad["store:postgresql"] != "" || len(bad) != 3 {
			t.Errorf("%+v", bad)
		}
	})
}

func TestHealthSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := example()
		now := time.Now()
		f.machine = monitor.Machine{
			Leases:   []monitor.Lease{{Name: "a", Live: true}, {Name: "b"}, {Name: "queue-index/x"}, {Name: "queue-index/y", Live: true}},
			Outbox:   []monitor.Outbox{{Topic: "queue"}, {Topic: "dispatch", Rows: 4, OldestAt: now.Add(-time.Minute)}},
			Replicas: []monitor.Replica{{Name: "r1", Version: 7, Fresh: true}, {Name: "r2", Version: 6, Fresh: true}, {Name: "r3", Version: 7}, {Name: "r4", Version: 7, Fresh: true, Error: "x"}},
		}
		m, stop := start(t, f, monitor.Config{})
		defer stop()
		got := map[string]string{}
		for _, h := range m.State().Health {
			if h.Good != (h.Code == "" || h.Code == monitor.HealthIdle) {
				t.Errorf("%s is good %v and %q", h.Key(), h.Good, h.Code)
			}
			got[h.Key()] = h.Code
		}
		want := map[string]string{"lease:a": "", "lease:b": "expired", "lease:queue-index/x": "idle", "lease:queue-index/y": "", "outbox:queue": "", "outbox:dispatch": "late",
			"replica:r1": "", "replica:r2": "behind", "replica:r3": "gone", "replica:r4": "failed"}
		for key, code := range want {
			if c, ok := got[key]; !ok || c != code {
				t.Errorf("%s: %q, want %q", key, c, code)
			}
		}
	})
}

func TestFlowCountsEachSecondOnceThoughReadOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := example()
		told := map[control.TaskState]int64{}
		m, stop := start(t, f, monitor.Config{Moved: func(s control.TaskState, n int64) { told[s] += n }})
		defer stop()
		release := m.Watch(monitor.TopicOverview)
		defer release()
		pass(time.Second) // what came before the first read is not told
		for range 90 {
			f.set(func() {
				second := time.Now().Truncate(time.Second)
				f.flow = append(f.flow, monitor.FlowCount{Second: second, State: string(control.TaskDispatching), Tasks: 2},
					monitor.FlowCount{Second: second, State: string(control.TaskSucceeded), Tasks: 1})
			})
			pass(time.Second)
		}
		pass(time.Second)
		o := m.State().Overview
		if o.StartsPerMinute < 114 || o.StartsPerMinute > 122 || o.Succeeded < 89 || o.Succeeded > 90 {
			t.Errorf("2 starts a second: %d a minute; 90 ended: %d", o.StartsPerMinute, o.Succeeded)
		}
		pass(7 * time.Minute)
		if o := m.State().Overview; o.StartsPerMinute != 0 || o.Succeeded != 0 {
			t.Errorf("long after: %d, %d", o.StartsPerMinute, o.Succeeded)
		}
		if told[control.TaskDispatching] != 180 || told[control.TaskSucceeded] != 90 {
			t.Errorf("told %v of 180 starts and 90 ends", told)
		}
	})
}

func TestTenantsTopicIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := example()
		for i := range 10_000 {
			f.uses = append(f.uses, monitor.TenantUse{TenantID: tenant(i), Lane: "STANDARD", HomeLane: "STANDARD", Weight: 1, RunningTasks: 1, RunningUnits: int64(i)})
		}
		m, stop := start(t, f, monitor.Config{})
		defer stop()
		s := m.State()
		if len(s.Tenants) != monitor.MaxTenantRows || s.TenantSum.WithWork != 10_000 || s.TenantSum.Complete {
			t.Fatalf("%d rows, %+v", len(s.Tenants), s.TenantSum)
		}
		for _, r := range s.Tenants {
			if r.RunningUnits < 10_000-monitor.MaxTenantRows {
				t.Fatalf("%d units are not among the busiest", r.RunningUnits)
			}
		}
	})
}

func TestMetricsHaveBoundedLabelsAndFollowTheState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := example()
		m, stop := start(t, f, monitor.Config{})
		defer stop()
		metrics := monitor.NewMetrics()
		metrics.Show(m)
		metrics.TasksMoved(control.TaskSucceeded, 3)
		metrics.Admitted("ACCEPTED")
		metrics.Claimed(time.Millisecond, 10, map[string]int{"POOL": 2})
		metrics.Served("/tasks/:task", "GET", 200, time.Millisecond)
		metrics.Served("", "BREW", 404, time.Millisecond)
		metrics.SocketOpened()
		metrics.Settled(&estimate.Settlement{Kind: control.KindVideo, Known: true, Whole: true, Seconds: 90, ExpectedSeconds: 60, HeldSeconds: 160, P95Seconds: 150,
			UsedMilli: 3_000, ChargedMilli: 2_000, DebtMilli: 1_000})
		metrics.Settled(&estimate.Settlement{Kind: control.KindVideo, Known: true, ChargedMilli: 2_000, DebtMilli: -2_000})
		metrics.Settled(&estimate.Settlement{Kind: control.KindImage, ChargedMilli: 2_000})
		families, err := metrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for _, f := range families {
			for _, x := range f.GetMetric() {
				name := f.GetName()
				for _, l := range x.GetLabel() {
					name += " " + l.GetName() + "=" + l.GetValue()
					if _, err := uuid.Parse(l.GetValue()); err == nil || l.GetName() == "tenant" || l.GetName() == "task" {
						t.Errorf("%s has label %s=%q", f.GetName(), l.GetName(), l.GetValue())
					}
				}
				values[name] = x.GetGauge().GetValue() + x.GetCounter().GetValue()
			}
		}
		for name, want := range map[string]float64{
			"fairlane_queue_tasks lane=STANDARD": 5, "fairlane_queue_tasks lane=PAID_SHARED": 1, "fairlane_queue_tasks lane=GONE": 0,
			"fairlane_policy_version which=active": 7, "fairlane_policy_version which=wanted": 7, "fairlane_live_sockets": 1,
			"fairlane_admission_total decision=ACCEPTED":    1,
			"fairlane_settled_total kind=VIDEO known=whole": 1, "fairlane_settled_total kind=VIDEO known=part": 1,
			"fairlane_settled_total kind=IMAGE known=estimate": 1, "fairlane_settled_total kind=IMAGE known=whole": 0,
			"fairlane_estimate_above_p95_total kind=VIDEO": 1, "fairlane_estimate_above_p95_total kind=IMAGE": 0,
			"fairlane_debt_milli_total direction=debit": 1_000, "fairlane_debt_milli_total direction=credit": 2_000,
			"fairlane_task_total state=SUCCEEDED": 3, "fairlane_task_total state=FAILED": 0, "fairlane_claim_total result=POOL": 2,
			"fairlane_slot_used_units account=own lane=STANDARD": 23, "fairlane_slot_capacity_units": 100,
		} {
			if got, ok := values[name]; !ok || got != want {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	})
}

// pass lets time go by and waits until everybody has done what was due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
