package schedule_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"fairlane/control"
	"fairlane/control/admit"
	"fairlane/control/lead"
	"fairlane/control/plan"
	"fairlane/control/queue"
	"fairlane/control/schedule"
	"fairlane/policy"
	"fairlane/store/facts"
	"fairlane/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a platform of one lane, one pool and its tenants over a database of its own.
type world struct {
	t         *testing.T
	db        *storetest.Database
	facts     *facts.DB
	store     *counted
	policies  *facts.Policies
	directory *facts.Tenants
	active    *policy.Active
	listener  *facts.Listener
	tenants   []policy.Tenant
	last      int
}

// counted counts what the loop asks of its store.
type counted struct {
	*facts.Backlogs
	*facts.Snapshots
	*facts.Claims
	snapshots atomic.Int64
	pages     atomic.Int64
	others    atomic.Int64 // questions for events, and claims
}

func (c *counted) QueueEvents(ctx context.Context, group, lease string, term int64, done []uuid.UUID, limit int) (queue.Events, error) {
	c.others.Add(1)
	return c.Backlogs.QueueEvents(ctx, group, lease, term, done, limit)
}

func (c *counted) Claim(ctx context.Context, claim schedule.Claim) ([]schedule.Claimed, error) {
	c.others.Add(1)
	return c.Claims.Claim(ctx, claim)
}

func (c *counted) Backlog(ctx context.Context, group string, after uuid.UUID, limit int) ([]queue.Item, error) {
	c.pages.Add(1)
	return c.Backlogs.Backlog(ctx, group, after, limit)
}

func (c *counted) Snapshot(ctx context.Context, group string, tenants []uuid.UUID, users []plan.TenantUser) (plan.Snapshot, error) {
	c.snapshots.Add(1)
	return c.Snapshots.Snapshot(ctx, group, tenants, users)
}

const (
	group = policy.DefaultGroup
	lease = "schedule/default"
	pool  = "provider:test:acct-1:us:clip"
)

func newWorld(t *testing.T, capacity int64, tenants int) *world {
	t.Helper()
	w := &world{t: t, db: storetest.New(t)}
	var err error
	if w.facts, err = facts.Open(t.Context(), w.db.URL, "test", 12); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.facts.Close)
	w.store = &counted{Backlogs: facts.NewBacklogs(w.facts), Snapshots: facts.NewSnapshots(w.facts), Claims: facts.NewClaims(w.facts)}
	w.policies, w.directory = facts.NewPolicies(w.facts), facts.NewTenants(w.facts)
	w.publish(0, document(capacity))
	var list []facts.NewTenant
	for i := range tenants {
		list = append(list, facts.NewTenant{Code: fmt.Sprintf("tenant-%d", i), Name: fmt.Sprintf("Tenant %d", i), Plan: "standard", Users: []facts.NewUser{{ExternalID: "u"}}})
	}
	if w.tenants, err = w.directory.Onboard(t.Context(), list, control.System, ""); err != nil {
		t.Fatal(err)
	}
	w.listener = facts.NewListener(w.db.URL, slog.New(slog.DiscardHandler), control.NotifyQueue, control.NotifyPolicy)
	w.active = policy.NewActive(w.policies, policy.ActiveConfig{Replica: "test", Hints: w.listener.Subscribe(control.NotifyPolicy)})
	if err := w.active.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.keep(w.listener.Run)
	w.keep(w.active.Run)
	return w
}

func document(capacity int64) *policy.Document {
	d := policy.Default()
	d.Models = []policy.Model{{
		Code: "clip", Kind: "VIDEO", ResourceClass: "STANDARD", Resolutions: []string{"720p"}, Seconds: []int64{5}, SlotUnits: 1,
		MeanSeconds: 30, P95Seconds: 60, CostMicro: 100_000, PriceMicro: 200_000, PriceAsOf: "2026-11-01", Enabled: true,
	}}
	d.Pools = []policy.Pool{{
		Key: pool, Kind: policy.PoolProvider, Group: group, Parents: []string{}, Provider: "test", Account: "acct-1", Region: "us", Model: "clip", CapacityUnits: capacity,
	}}
	for i := range d.Plans {
		s := &d.Plans[i].Settings
		s.UserMaxQueuedTasks, s.UserMaxRunningTasks, s.UserMaxRunningVideo = 5000, 200, 200
	}
	return d
}

func (w *world) publish(base int64, d *policy.Document) {
	w.t.Helper()
	_, err := policy.NewPublisher(w.policies, w.directory).Publish(w.t.Context(), policy.Publication{
		Base: base, Document: d, Reason: "test", Actor: control.System,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// keep runs something until the test ends.
func (w *world) keep(run func(context.Context) error) {
	ctx, stop := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := run(ctx); err != nil {
			w.t.Error(err)
		}
	}()
	w.t.Cleanup(func() { stop(); <-done })
}

// loop is one scheduler of the group with that name.
func (w *world) loop(cfg schedule.Config) *schedule.Loop {
	cfg.Group, cfg.Lease = group, lease
	if cfg.Hints == nil {
		cfg.Hints = w.listener.Subscribe(control.NotifyQueue)
	}
	return schedule.New(cfg, w.store, w.active, w.directory)
}

// run runs a loop under the lease until the test ends.
func (w *world) run(cfg schedule.Config) {
	loop := w.loop(cfg)
	w.keep(lead.New(lead.Config{Name: lease, Holder: "test"}, facts.NewLeases(w.facts), loop.Run).Run)
}

// admit queues n tasks of a tenant.
func (w *world) admit(tenant, n int) []uuid.UUID {
	w.t.Helper()
	list := make([]admit.NewTask, n)
	ids := make([]uuid.UUID, n)
	for i := range list {
		w.last++
		ids[i] = uuid.Must(uuid.NewV7())
		list[i] = admit.NewTask{
			TaskID: ids[i], TenantID: w.tenants[tenant].ID, User: "u", Key: fmt.Sprint(w.last), RequestHash: []byte{1},
			Answer: json.RawMessage(`{}`), Kind: control.KindVideo, Lane: control.LaneStandard, Group: group, Band: 3, ResourceClass: "STANDARD",
			Model: "clip", Route: "clip|720p", SlotUnits: 1, FairnessMilli: 1000, CostMicro: 100_000, PriceMicro: 200_000,
			MeanSeconds: 30, P95Seconds: 60, MaxAttempts: 3, PolicyVersion: 1, EstimateVersion: 1, Parameters: json.RawMessage(`{}`), Actor: "test",
		}
	}
	done, err := facts.NewAdmissions(w.facts).InsertTasks(w.t.Context(), list)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, one := range done {
		if one.Err != nil {
			w.t.Fatal(one.Err)
		}
	}
	return ids
}

// await asks until the query's number is want.
func (w *world) await(want int, sql string, args ...any) {
	w.t.Helper()
	bound := time.NewTimer(30 * time.Second)
	defer bound.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		got := w.number(sql, args...)
		if got == want {
			return
		}
		select {
		case <-tick.C:
		case <-bound.C:
			w.t.Fatalf("%s: %d, want %d", sql, got, want)
		}
	}
}

func (w *world) number(sql string, args ...any) int {
	w.t.Helper()
	var n int
	if err := w.db.Pool.QueryRow(w.t.Context(), sql, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}
