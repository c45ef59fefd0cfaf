package run

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/admit"
	"fairlane/control/dispatch"
	"fairlane/control/lead"
	"fairlane/control/monitor"
	"fairlane/control/reconcile"
	"fairlane/control/schedule"
	"fairlane/control/service"
	"fairlane/store/facts"
	"fairlane/store/speed"
)

// scheduleStore puts the stores that the loop needs together.
type scheduleStore struct {
	*facts.Backlogs
	*facts.Snapshots
	*facts.Claims
}

// observer tells metrics and views what the loop does.
type observer struct {
	metrics *monitor.Metrics
	monitor *monitor.Monitor
}

func (o observer) Cycled(took time.Duration) { o.metrics.Cycled(took) }

func (o observer) Claimed(took time.Duration, granted int, refused map[string]int) {
	o.metrics.Claimed(took, granted, refused)
	if granted > 0 {
		o.monitor.Hint(monitor.HintSlots)
	}
}

// ender tells the views that slots came free.
type ender struct {
	dispatch.Ender
	a *app
}

func (e ender) End(ctx context.Context, endings []dispatch.Ending) ([]dispatch.Ended, error) {
	ended, err := e.Ender.End(ctx, endings)
	if err == nil && len(ended) > 0 {
		e.a.monitor.Hint(monitor.HintSlots)
	}
	for i := range ended {
		if ended[i].Applied {
			e.a.metrics.Settled(&ended[i].Settled)
		}
	}
	return ended, err
}

// ran tells the health page of a sweep.
type ran struct{ monitor *monitor.Monitor }

func (r ran) Ran(name string, at time.Time, result reconcile.Result, err error) {
	run := monitor.Run{At: at, Found: result.Found, Repaired: result.Repaired}
	if err != nil {
		run.Error = err.Error()
	}
	r.monitor.ReconcilerRan(name, run)
}

// run starts every part in the order of its needs, and stops them in reverse: intake, schedule,
// dispatch, then what they stand on.
func (a *app) run(ctx context.Context, listener net.Listener, h http.Handler, hub func(context.Context) error, d *dispatch.Service) error {
	g := service.NewGroup(a.log)
	add := func(name string, stop time.Duration, run func(context.Context) error) {
		g.Add(service.Func(name, run), stop)
	}
	add("database hints", time.Second, a.listener.Run)
	add("policy", time.Second, a.active.Run)
	add("estimates", time.Second, a.estimates.Run)
	add("access", time.Second, a.rights.Run)
	add("denials", 2*time.Second, a.denials.Run)
	add("monitor", time.Second, a.monitor.Run)
	add("replica hints", time.Second, a.replicaHints().Run)
	add("stores", time.Second, a.watchStores)
	add("dispatch", 3*time.Second, d.Run)
	add("reconcilers", 2*time.Second, a.reconcilers().Run)
	add("scheduler", 2*time.Second, a.scheduler().Run)
	add("live", time.Second, hub)
	add("web", 2*time.Second, func(ctx context.Context) error { return serveHTTP(ctx, listener, h, a.log) })
	if a.platform.traffic != nil {
		add("traffic", time.Second, func(ctx context.Context) error { return a.platform.traffic(ctx, a) })
	}
	if err := g.Start(ctx); err != nil {
		return err
	}
	if a.platform.ready != nil {
		a.platform.ready(a)
	}
	err := g.Wait(ctx)
	stopped := g.Stop()
	if err != nil {
		return err
	}
	return stopped
}

func (a *app) scheduler() *schedule.Groups {
	store := scheduleStore{facts.NewBacklogs(a.schedule), facts.NewSnapshots(a.schedule), facts.NewClaims(a.schedule)}
	leases := facts.NewLeases(a.schedule)
	return schedule.NewGroups(a.active, func(ctx context.Context, group string) {
		lease := "schedule/" + group
		cfg := schedule.Config{
			Group: group, Lease: lease, Log: a.log, Observer: observer{a.metrics, a.monitor},
			Statuses: facts.NewStatuses(a.schedule),
			Hints:    a.listener.Subscribe(control.NotifyQueue), // its own: a hint wakes whoever takes it, and no other
		}
		a.shareQueue(&cfg)
		loop := schedule.New(cfg, store, a.active, a.tenants())
		_ = lead.New(lead.Config{Name: lease, Holder: a.replica, Log: a.log}, leases, loop.Run).Run(ctx)
	})
}

func (a *app) reconcilers() *lead.Runner {
	cancels, rebuild := facts.NewCancels(a.back), facts.NewRebuild(a.back)
	admissions, sessions := facts.NewAdmissions(a.back), facts.NewSessions(a.back)
	sweeper := reconcile.New(append(append(a.watching(), a.queueSweeps()...), []reconcile.Sweep{
		{Name: "deadlines", Every: time.Second, Do: reconcile.Batches(cancels.ExpireDeadlines, 500, 20)},
		{Name: "counters", Every: 5 * time.Minute, Do: func(ctx context.Context) (reconcile.Result, error) {
			drifts, err := rebuild.RebuildCounters(ctx, control.System)
			n := int64(len(drifts))
			return reconcile.Result{Found: n, Repaired: n}, err
		}},
		{Name: "estimates", Every: 5 * time.Second, Do: a.learn},
		{Name: "idempotency_keys", Every: 10 * time.Minute, Do: func(ctx context.Context) (reconcile.Result, error) {
			n, err := admissions.PurgeKeys(ctx, admit.KeyLifetime, 10_000)
			return reconcile.Result{Found: n, Repaired: n}, err
		}},
		{Name: "sessions", Every: 10 * time.Minute, Do: func(ctx context.Context) (reconcile.Result, error) {
			n, err := sessions.Sweep(ctx)
			return reconcile.Result{Found: n, Repaired: n}, err
		}},
	}...), ran{a.monitor}, a.log, nil)
	return lead.New(lead.Config{Name: "reconcile", Holder: a.replica, Log: a.log}, facts.NewLeases(a.back), sweeper.Run)
}

func (a *app) dispatcher() (*dispatch.Service, error) {
	attempts, outbox := facts.NewAttempts(a.dispatch), facts.NewOutbox(a.dispatch)
	return dispatch.New(dispatch.Config{
		Attempts: attempts, Checks: attempts, Callbacks: facts.NewCallbacks(a.dispatch),
		Ender:     ender{facts.NewEndings(a.dispatch), a},
		Transport: dispatch.NewPostgres(outbox, a.listener.Subscribe(control.NotifyDispatch), 30*time.Second),
		Providers: a.registry, Lanes: a.lanes, Log: a.log, Rand: rand.Float64,
		CallbackURL: func(provider string, attempt uuid.UUID, token string) string {
			return a.settings.PublicURL + "/callbacks/" + provider + "/" + attempt.String() + "/" + token
		},
		Settings: dispatch.Settings{Speed: a.platform.speed, Grace: 500 * time.Millisecond},
	})
}

// lanes are those whose messages this process takes: those of the policy in force, and RECOVERY always.
func (a *app) lanes() []string {
	out := []string{control.LaneRecovery}
	if doc, _ := a.inForce(); doc != nil {
		for _, l := range doc.Lanes {
			if !slices.Contains(out, l.Code) {
				out = append(out, l.Code)
			}
		}
	}
	return out
}

// replicaHints carries view hints over Redis; without it each process has only its own.
func (a *app) replicaHints() *speed.Hints {
	hints := speed.NewHints(a.redis, a.log, []string{monitor.HintQueue, monitor.HintSlots, monitor.HintPolicy}, a.monitor.Heard,
		func(up bool) { a.monitor.SetDegraded(monitor.DegradedRealtime, !up); a.monitor.SetStore("redis", up) })
	a.monitor.TellOthers(hints.Tell)
	return hints
}

// watchStores ends the process when its private database has ended.
func (a *app) watchStores(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.stores.failed:
		return err
	}
}
