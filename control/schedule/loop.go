package schedule

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"fairlane/control/plan"
	"fairlane/control/queue"
	"fairlane/policy"
)

// Config configures a loop. Zero values take the defaults.
type Config struct {
	Group    string        // pool group that it plans
	Lease    string        // name of the lease under whose term it runs
	Hints    <-chan string // "something is there for you"; nil: the floor alone finds everything
	Batch    int           // starts per claim, 100
	Gap      time.Duration // least time between two cycles in steady work, 25 ms; a lone task never waits for it
	Floor    time.Duration // longest time without looking, 2 s
	Tenants  time.Duration // how often the list of tenants is read while there is work, 3 s
	Log      *slog.Logger
	Now      func() time.Time
	Observer Observer
}

// Loop plans one pool group. Its Run is the work of a lease: everything that it remembers ends with the
// term, deficits included, and the next holder starts from what PostgreSQL says.
type Loop struct {
	cfg      Config
	store    Store
	policies Policies
	tenants  Tenants
}

// New makes a loop.
func New(cfg Config, store Store, policies Policies, tenants Tenants) *Loop {
	if cfg.Batch <= 0 {
		cfg.Batch = 100
	}
	if cfg.Gap <= 0 {
		cfg.Gap = 25 * time.Millisecond
	}
	if cfg.Floor <= 0 {
		cfg.Floor = 2 * time.Second
	}
	if cfg.Tenants <= 0 {
		cfg.Tenants = 3 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Loop{cfg: cfg, store: store, policies: policies, tenants: tenants}
}

// turn is what one term of the lease keeps.
type turn struct {
	*Loop
	feed    *feed
	index   *queue.Memory
	planner *plan.Planner
	version *policy.Version
	known   []plan.TenantPlan
	listed  time.Time     // when the tenants were last read
	ahead   time.Duration // the database's clock minus ours
	last    time.Time     // end of the last cycle
}

// Run plans until ctx ends or something fails whose outcome is not known; then the caller runs it again
// under a new term, and it reads everything anew.
func (l *Loop) Run(ctx context.Context, term int64) error {
	moved := make(chan struct{}, 1)
	cancel := l.policies.Subscribe(func(*policy.Version) {
		select {
		case moved <- struct{}{}:
		default:
		}
	})
	defer cancel()
	t := &turn{Loop: l, index: queue.NewMemory()}
	t.feed = &feed{store: l.store, group: l.cfg.Group, lease: l.cfg.Lease, term: term, index: t.index, log: l.cfg.Log}
	tasks, err := t.feed.fill(ctx)
	if err != nil {
		return err
	}
	l.cfg.Log.Info("scheduling", "group", l.cfg.Group, "term", term, "waiting", tasks)
	for {
		again, wake, err := t.look(ctx)
		if err != nil {
			return err
		}
		if !t.wait(ctx, moved, again, wake) {
			return nil
		}
	}
}

// look follows policy and queue and, when something waits, plans and claims once.
func (t *turn) look(ctx context.Context) (again bool, wake time.Time, err error) {
	if _, err := t.feed.drain(ctx); err != nil {
		return false, wake, err
	}
	if t.index.Len() == 0 {
		return false, wake, nil
	}
	if ok, err := t.follow(ctx); err != nil || !ok {
		return false, wake, err
	}
	began := t.cfg.Now()
	p, err := t.cycle(ctx)
	t.last = t.cfg.Now()
	if err != nil {
		return false, wake, err
	}
	if t.cfg.Observer != nil {
		t.cfg.Observer.Cycled(t.last.Sub(began))
	}
	return p.More, p.Wake, nil
}

// follow puts the policy in force into the planner; false while there is none.
func (t *turn) follow(ctx context.Context) (bool, error) {
	now := t.cfg.Now()
	v := t.policies.Current()
	if v == nil {
		return false, nil
	}
	if v == t.version && now.Sub(t.listed) < t.cfg.Tenants {
		return true, nil
	}
	list, err := t.tenants.PlanList(ctx)
	if err != nil {
		return false, fmt.Errorf("list tenants: %w", err)
	}
	tenants := planTenants(list)
	if v == t.version && slices.Equal(tenants, t.known) {
		t.listed = now
		return true, nil
	}
	compiled, err := plan.Compile(v.Document, v.Number, tenants)
	if err != nil {
		return false, fmt.Errorf("policy version %d: %w", v.Number, err)
	}
	if t.planner == nil {
		t.planner = plan.NewPlanner(t.cfg.Group, compiled, t.index)
	} else {
		t.planner.Publish(compiled)
	}
	t.version, t.known, t.listed = v, tenants, now
	return true, nil
}

// wait returns when there is reason to look again; false when ctx has ended.
func (t *turn) wait(ctx context.Context, moved <-chan struct{}, again bool, wake time.Time) bool {
	pause := t.cfg.Floor
	if !wake.IsZero() {
		pause = min(pause, max(0, wake.Sub(t.cfg.Now().Add(t.ahead))))
	}
	if !again {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return false
		case <-t.cfg.Hints:
		case <-moved:
		case <-timer.C:
		}
	}
	// Hints that come while the loop is busy gather here; one after a quiet time passes at once.
	gap := t.cfg.Gap - t.cfg.Now().Sub(t.last)
	if again || gap <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(gap)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
