package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"fairlane/control/plan"
	"fairlane/policy"
)

// Config configures a loop. Zero values take the defaults.
type Config struct {
	Group     string        // pool group that it plans
	Lease     string        // name of the lease under whose term it runs
	Hints     <-chan string // "something is there for you"; nil: the floor alone finds everything
	Batch     int           // starts per claim, 100
	Gap       time.Duration // least time between two cycles in steady work, 25 ms; a lone task never waits for it
	Floor     time.Duration // longest time without looking, 2 s
	Tenants   time.Duration // how often the list of tenants is read while there is work, 3 s
	Hold      time.Duration // how long a shared index must answer before it is used again, 5 s
	Indexes   Indexes       // shared indexes; nil: the queue lies in the process
	Rebuilder Rebuilder     // with Indexes
	Statuses  Statuses      // nil: nobody wants to know
	Log       *slog.Logger
	Now       func() time.Time
	Observer  Observer
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
	if cfg.Hold <= 0 {
		cfg.Hold = 5 * time.Second
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
	feed     *feed
	index    Index
	shared   Shared // the index, when it is a shared one
	verified time.Time
	state    QueueState
	planner  *plan.Planner
	version  *policy.Version
	known    []plan.TenantPlan
	listed   time.Time     // when the tenants were last read
	ahead    time.Duration // the database's clock minus ours
	last     time.Time     // end of the last cycle
	term     int64
	reported time.Time // when the status was last kept
	quiet    bool      // and nothing waited then

	mend        *mender
	menders     sync.WaitGroup
	stopMending func()
	follows     bool // events go to the shared index as well
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
	t := &turn{Loop: l, term: term, feed: &feed{
		store: l.store, group: l.cfg.Group, lease: l.cfg.Lease, term: term, log: l.cfg.Log, parked: map[uuid.UUID]struct{}{}, told: func(int) {},
	}}
	if o := l.cfg.Observer; o != nil {
		t.feed.told = func(tasks int) { o.Parked(l.cfg.Group, tasks) }
		defer func() {
			o.Parked(l.cfg.Group, 0)
			o.Queued(l.cfg.Group, QueueState{})
		}()
	}
	ctx, end := context.WithCancel(ctx)
	defer t.menders.Wait()
	defer end()
	if err := t.settle(ctx); err != nil {
		return err
	}
	l.cfg.Log.Info("scheduling", "group", l.cfg.Group, "term", term, "waiting", t.index.Len(), "shared", t.shared != nil)
	for {
		again, wake, err := t.look(ctx)
		if errors.Is(err, errIndex) {
			again, err = true, t.leave(ctx, true, err)
		}
		if err != nil {
			return err
		}
		if !t.wait(ctx, moved, again, wake) {
			return nil
		}
	}
}

// look follows queue and policy and, when something waits, plans and claims once. What need not come
// before the claim comes after it.
func (t *turn) look(ctx context.Context) (again bool, wake time.Time, err error) {
	if err := t.mending(ctx); err != nil {
		return false, wake, err
	}
	if err := t.verify(ctx); err != nil {
		return false, wake, err
	}
	if _, err := t.feed.drain(ctx); err != nil {
		return false, wake, err
	}
	if !t.feed.full {
		if _, err := t.feed.fill(ctx); err != nil {
			return false, wake, err
		}
	}
	if t.index.Len() > 0 {
		if again, wake, err = t.work(ctx); err != nil {
			return false, wake, err
		}
	}
	if len(t.feed.done) > 0 {
		more, err := t.feed.drain(ctx)
		if err != nil {
			return false, wake, err
		}
		again = again || more > 0
	}
	if t.shared != nil && t.shared.Err() != nil {
		return false, wake, errors.Join(errIndex, t.shared.Err())
	}
	t.report(ctx)
	return again || !t.feed.full, wake, nil
}

// work is one cycle under the policy in force.
func (t *turn) work(ctx context.Context) (again bool, wake time.Time, err error) {
	if ok, err := t.follow(ctx); err != nil || !ok {
		return false, wake, err
	}
	began := t.cfg.Now()
	p, refused, err := t.cycle(ctx)
	t.last = t.cfg.Now()
	if err != nil {
		return false, wake, err
	}
	if t.cfg.Observer != nil {
		t.cfg.Observer.Cycled(t.last.Sub(began))
	}
	corrected, err := t.correct(ctx, refused)
	if err != nil {
		return false, wake, err
	}
	changed, err := t.tenantsMoved(ctx)
	return p.More || corrected || changed, p.Wake, err
}

// follow puts the policy in force into the planner; false while there is none. The list of tenants is
// read with a new version, and now and then after a cycle.
func (t *turn) follow(ctx context.Context) (bool, error) {
	v := t.policies.Current()
	if v == nil {
		return false, nil
	}
	if v == t.version {
		return true, nil
	}
	list, err := t.tenants.PlanList(ctx)
	if err != nil {
		return false, fmt.Errorf("list tenants: %w", err)
	}
	return true, t.publish(v, plan.Tenants(list))
}

// tenantsMoved reads the list of tenants when it is old and tells whether it has changed.
func (t *turn) tenantsMoved(ctx context.Context) (bool, error) {
	now := t.cfg.Now()
	if now.Sub(t.listed) < t.cfg.Tenants {
		return false, nil
	}
	list, err := t.tenants.PlanList(ctx)
	if err != nil {
		return false, fmt.Errorf("list tenants: %w", err)
	}
	tenants := plan.Tenants(list)
	if slices.Equal(tenants, t.known) {
		t.listed = now
		return false, nil
	}
	return true, t.publish(t.version, tenants)
}

// publish compiles a version for the planner; in the limited form with the lanes paused that say so.
func (t *turn) publish(v *policy.Version, tenants []plan.TenantPlan) error {
	doc := v.Document
	if t.state.Limited {
		doc = doc.Clone()
		for i := range doc.Lanes {
			doc.Lanes[i].Paused = doc.Lanes[i].Paused || doc.Lanes[i].PauseWhenDegraded
		}
	}
	compiled, err := plan.Compile(doc, v.Number, tenants)
	if err != nil {
		return fmt.Errorf("policy version %d: %w", v.Number, err)
	}
	if t.planner == nil {
		t.planner = plan.NewPlanner(t.cfg.Group, compiled, t.index)
	} else {
		t.planner.Publish(compiled)
	}
	t.version, t.known, t.listed = v, tenants, t.cfg.Now()
	return nil
}

// wait returns when there is reason to look again; false when ctx has ended.
func (t *turn) wait(ctx context.Context, moved <-chan struct{}, again bool, wake time.Time) bool {
	longest := t.cfg.Floor
	if !wake.IsZero() {
		longest = min(longest, max(0, wake.Sub(t.cfg.Now().Add(t.ahead))))
	}
	if !again {
		timer := time.NewTimer(longest)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return false
		case <-t.cfg.Hints:
		case <-moved:
		case <-t.mendWake():
		case <-timer.C:
		}
	}
	// Hints that come while the loop is busy gather here; one after a quiet time passes at once.
	gap := t.gap() - t.cfg.Now().Sub(t.last)
	if again && !t.state.Limited || gap <= 0 {
		return ctx.Err() == nil
	}
	return pause(ctx, gap)
}

// The degraded form: batches of a quarter, gaps of four times.
func (t *turn) gap() time.Duration {
	if t.state.Limited {
		return 4 * t.cfg.Gap
	}
	return t.cfg.Gap
}

func (t *turn) batch() int {
	if t.state.Limited {
		return max(1, t.cfg.Batch/4)
	}
	return t.cfg.Batch
}
