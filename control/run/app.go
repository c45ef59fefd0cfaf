package run

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"fairlane/audit"
	"fairlane/control"
	"fairlane/control/estimate"
	"fairlane/control/monitor"
	"fairlane/control/provider"
	"fairlane/policy"
	"fairlane/policy/access"
	"fairlane/store/facts"
	"fairlane/store/speed"
)

// platform is what differs between serve and demo.
type platform struct {
	speed     float64 // divides polling intervals and retries; 1 but for the demo
	prepare   func(ctx context.Context, a *app) error
	providers func(ctx context.Context, a *app) ([]provider.Provider, func(), error)
	traffic   func(ctx context.Context, a *app) error // runs beside everything else; nil for none
	ready     func(a *app)                            // told once everything runs
}

// Connections of each role; a database of its defaults (100) leaves room for commands and a second replica.
const (
	apiConns      = 12
	scheduleConns = 4
	dispatchConns = 10
	backConns     = 6
)

// app is one serving process: its stores, its view of policy and rights, and what the parts share.
type app struct {
	settings *serveSettings
	platform platform
	log      *slog.Logger
	replica  string // name of this process among the replicas

	stores   *stores
	api      *facts.DB // requests
	schedule *facts.DB // snapshots and claims
	dispatch *facts.DB // attempts, outbox, endings
	back     *facts.DB // monitor, reconcilers, policy and access followers

	listener     *facts.Listener
	redis        *speed.Client
	installation string // its name on a Redis that others use too
	policies     *facts.Policies
	audits       *facts.Audits
	active       *policy.Active
	estimates    *estimate.Active
	rights       *access.Enforcer
	denials      *audit.Denials
	monitor      *monitor.Monitor
	metrics      *monitor.Metrics
	registry     *provider.Registry

	closers []func()
}

// open starts or reaches the stores, brings the schema up to date and reads policy and rights. What it
// has opened is closed by close, also after an error.
func (a *app) open(ctx context.Context) error {
	var err error
	if a.stores, err = openStores(ctx, &a.settings.storeSettings, a.log); err != nil {
		return err
	}
	a.closers = append(a.closers, a.stores.stop)
	if _, _, err := facts.Migrate(ctx, a.stores.databaseURL); err != nil {
		return fmt.Errorf("database schema: %w", err)
	}
	for _, db := range []struct {
		to    **facts.DB
		name  string
		conns int32
	}{{&a.api, "api", apiConns}, {&a.schedule, "schedule", scheduleConns}, {&a.dispatch, "dispatch", dispatchConns}, {&a.back, "back", backConns}} {
		if *db.to, err = facts.Open(ctx, a.stores.databaseURL, db.name, db.conns); err != nil {
			return err
		}
		a.closers = append(a.closers, (*db.to).Close)
	}
	if a.redis, err = speed.Open(a.stores.redisURL); err != nil {
		return settingError{"FAIRLANE_REDIS_URL", err.Error()}
	}
	a.closers = append(a.closers, func() { _ = a.redis.Close() })
	if a.settings.RedisURL != "" {
		if err := a.pingRedis(ctx); err != nil {
			return err
		}
	}
	a.listener = facts.NewListener(a.stores.databaseURL, a.log, control.NotifyQueue, control.NotifyDispatch, control.NotifyPolicy, control.NotifyAccess)
	a.policies = facts.NewPolicies(a.back)
	a.audits = facts.NewAudits(a.back)
	a.denials = audit.NewDenials(a.audits, audit.DenialsConfig{Log: a.log})
	if a.platform.prepare != nil {
		if err := a.platform.prepare(ctx, a); err != nil {
			return err
		}
	}
	return a.govern(ctx)
}

// pingRedis finds a wrong address at the start; later absences are lived with.
func (a *app) pingRedis(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := a.redis.Ping(ctx); err != nil {
		return settingError{"FAIRLANE_REDIS_URL", "no Redis answers there: " + err.Error()}
	}
	return nil
}

// govern reads the policy and the rights in force, and makes the first of both in a new database.
func (a *app) govern(ctx context.Context) error {
	if err := firstPolicy(ctx, a.policies, a.tenants(), policy.Default(), "The shipped defaults."); err != nil {
		return err
	}
	var err error
	if a.installation, err = facts.NewAudits(a.back).Installation(ctx); err != nil {
		return err
	}
	a.active = policy.NewActive(a.policies, policy.ActiveConfig{
		Replica: a.replica, Hints: a.listener.Subscribe(control.NotifyPolicy), Log: a.log,
	})
	if err := a.active.Refresh(ctx); err != nil {
		return fmt.Errorf("policy in force: %w", err)
	}
	a.estimates = estimate.NewActive(facts.NewEstimates(a.back), estimate.ActiveConfig{Log: a.log})
	if err := a.estimates.Refresh(ctx); err != nil {
		return fmt.Errorf("estimates in force: %w", err)
	}
	rules := facts.NewAccess(a.back)
	if _, err := rules.EnsureRules(ctx, access.Shipped()); err != nil {
		return fmt.Errorf("access rules: %w", err)
	}
	a.rights, err = access.NewEnforcer(ctx, access.Config{
		Source: rules, Wake: a.listener.Subscribe(control.NotifyAccess), Log: a.log,
	})
	if err != nil {
		return fmt.Errorf("access rules: %w", err)
	}
	providers, done, err := a.platform.providers(ctx, a)
	if err != nil {
		return err
	}
	a.closers = append(a.closers, done)
	if a.registry, err = provider.NewRegistry(providers...); err != nil {
		return err
	}
	a.metrics = monitor.NewMetrics()
	views := facts.NewMonitor(a.back)
	a.monitor = monitor.New(monitor.Config{Log: a.log, Moved: a.metrics.TasksMoved, Details: views}, views, a.inForce)
	a.metrics.Show(a.monitor)
	a.warnOfEviction(ctx)
	a.closers = append(a.closers, a.active.Subscribe(func(*policy.Version) { a.monitor.Hint(monitor.HintPolicy) }))
	return nil
}

// firstPolicy publishes version 1 in a database that has none.
func firstPolicy(ctx context.Context, store *facts.Policies, tenants *facts.Tenants, doc *policy.Document, reason string) error {
	head, err := store.HeadNumber(ctx)
	if err != nil || head > 0 {
		return err
	}
	_, err = policy.NewPublisher(store, tenants).Publish(ctx, policy.Publication{Document: doc, Reason: reason, Actor: control.System})
	if control.CodeOf(err) == control.CodeConflict { // another replica was faster
		return nil
	}
	return err
}

func (a *app) tenants() *facts.Tenants { return facts.NewTenants(a.back) }

// inForce is the policy in force in this process.
func (a *app) inForce() (*policy.Document, int64) {
	if v := a.active.Current(); v != nil {
		return v.Document, v.Number
	}
	return nil, 0
}

// close closes what open opened, the last first.
func (a *app) close() {
	for i := len(a.closers) - 1; i >= 0; i-- {
		a.closers[i]()
	}
	a.closers = nil
}

// replicaName tells this process from others, also after a restart on the same machine.
func replicaName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}
