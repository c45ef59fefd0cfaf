package run

import (
	"context"
	"time"

	"fairlane/control/monitor"
	"fairlane/control/reconcile"
	"fairlane/control/schedule"
	"fairlane/store/facts"
	"fairlane/store/speed"
)

// queueIndexes are the shared indexes in the loop's words.
type queueIndexes struct{ *speed.QueueIndex }

func (q queueIndexes) Open(ctx context.Context, group string, now time.Time) (schedule.Shared, error) {
	queue, err := q.QueueIndex.Open(ctx, group, now)
	if err != nil {
		return nil, err // never a nil pointer inside of an interface
	}
	return queue, nil
}

// queueOnRedis is where the settings want the queue.
const queueOnRedis = "redis"

// shareQueue lets a loop keep its queue on Redis.
func (a *app) shareQueue(cfg *schedule.Config) {
	if a.settings.Queue != queueOnRedis {
		return
	}
	cfg.Indexes = queueIndexes{a.queueIndex()}
	cfg.Rebuilder = a.queueRebuilder(facts.NewBacklogs(a.schedule), facts.NewLeases(a.schedule))
}

// queueIndex is this installation's: others may keep theirs on the same Redis.
func (a *app) queueIndex() *speed.QueueIndex {
	return speed.NewQueueIndex(a.redis, a.installation+":", a.log, nil)
}

func (a *app) queueRebuilder(waiting *facts.Backlogs, leases *facts.Leases) *reconcile.QueueIndexRebuilder {
	return reconcile.NewQueueIndexRebuilder(waiting, a.queueIndex(), leases, a.replica, a.log)
}

// queueSweeps compare the queue index with PostgreSQL.
func (a *app) queueSweeps() []reconcile.Sweep {
	if a.settings.Queue != queueOnRedis {
		return nil
	}
	rebuilder := a.queueRebuilder(facts.NewBacklogs(a.back), facts.NewLeases(a.back))
	return []reconcile.Sweep{{Name: "queue_index", Every: 30 * time.Second, Do: func(ctx context.Context) (reconcile.Result, error) {
		doc, _ := a.inForce()
		if doc == nil {
			return reconcile.Result{}, nil
		}
		groups := make([]string, len(doc.PoolGroups))
		for i, g := range doc.PoolGroups {
			groups[i] = g.Code
		}
		return rebuilder.Sweep(ctx, groups)
	}}}
}

// warnOfEviction says at the start that the Redis of the queue may drop its keys: nothing is lost by it,
// but the index is rebuilt again and again.
func (a *app) warnOfEviction(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	policy, err := a.redis.Eviction(ctx)
	if err != nil || policy == "noeviction" {
		return
	}
	a.log.Warn("redis may evict the queue index under memory pressure; set maxmemory-policy to noeviction", "maxmemory_policy", policy)
	a.monitor.SetDegraded(monitor.DegradedEviction, true)
}

// Queued and Parked tell the health page where the queue lies.
func (o observer) Queued(group string, s schedule.QueueState) {
	if !s.Runs {
		o.monitor.UnsetQueue(group)
		return
	}
	o.monitor.SetQueue(monitor.QueuePlace{Group: group, Shared: s.Shared, Limited: s.Limited, Why: string(s.Why), Since: s.Since})
}

// Parked counts queued tasks that cannot be scheduled.
func (o observer) Parked(group string, tasks int) {
	o.monitor.SetParked(group, tasks)
	o.metrics.Parked(group, tasks)
}
