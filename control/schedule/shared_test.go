package schedule_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"fairlane/control"
	"fairlane/control/dispatch"
	"fairlane/control/schedule"
	"fairlane/store/facts"
	"fairlane/store/storetest"
)

// release ends every attempt that runs, again and again, so that others take its place.
func (w *world) release() {
	w.keep(func(ctx context.Context) error {
		endings := facts.NewEndings(w.facts)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			rows, err := w.db.Pool.Query(ctx, `SELECT attempt_id, fencing_token FROM task_attempt WHERE state = 'CREATED' LIMIT 50`)
			if err != nil {
				return nil
			}
			var list []dispatch.Ending
			for rows.Next() {
				e := dispatch.Ending{State: control.AttemptRejected, ActualCost: -1, ErrorClass: "REJECTED"}
				if err := rows.Scan(&e.AttemptID, &e.FencingToken); err != nil {
					return err
				}
				list = append(list, e)
			}
			if _, err := endings.End(ctx, list); err != nil && ctx.Err() == nil {
				return err
			}
		}
	})
}

const attempts = `SELECT count(*) FROM task_attempt`

// onceEach fails unless every task was started exactly once and every counter is right.
func (w *world) onceEach(tasks int) {
	w.t.Helper()
	w.await(tasks, `SELECT count(*) FROM generation_task WHERE state = 'FAILED'`)
	if n := w.number(attempts); n != tasks {
		w.t.Errorf("%d attempts of %d tasks", n, tasks)
	}
	if n := w.number(`SELECT count(*) FROM (SELECT task_id FROM task_attempt GROUP BY task_id HAVING count(*) > 1) twice`); n != 0 {
		w.t.Errorf("%d tasks were started twice", n)
	}
	if findings, err := facts.NewCheck(w.facts).Run(w.t.Context()); err != nil || len(findings) > 0 {
		w.t.Errorf("check: %v, %v", findings, err)
	}
}

// empty waits until the index on the server holds nothing.
func (w *world) empty(s *server) {
	w.t.Helper()
	s.do(func(ctx context.Context, rdb *redis.Client) error {
		for range 200 {
			left := int64(0)
			for it := rdb.Scan(ctx, 0, "*:items", 1000).Iterator(); it.Next(ctx); {
				left += rdb.HLen(ctx, it.Val()).Val()
			}
			if left == 0 {
				return nil
			}
			w.number(`SELECT count(*) FROM pg_sleep(0.05)`)
		}
		w.t.Error("tasks that have ended are still in the index")
		return nil
	})
}

func TestQueueOnRedisIsBuiltAndFollowed(t *testing.T) {
	t.Parallel()
	w, s, see := newWorld(t, 8, 2), startRedis(t), newWatcher()
	w.admit(0, 30) // before: the index is built from them
	w.run(w.on(s, schedule.Config{Observer: see}))
	see.until(t, "start", shared)
	w.await(8, dispatching)
	w.admit(1, 30)
	w.release()
	w.onceEach(60)
	w.empty(s)
	if n := w.number(`SELECT count(*) FROM outbox_event WHERE topic = 'queue'`); n != 0 {
		w.await(0, `SELECT count(*) FROM outbox_event WHERE topic = 'queue'`)
	}
}

// A successor reads heads, not the backlog, and goes on.
func TestNextTermTakesTheIndexOver(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t, 4, 2), startRedis(t)
	leases := facts.NewLeases(w.facts)
	for term := range 3 {
		see := newWatcher()
		ctx, stop := context.WithCancel(t.Context())
		n, held, err := leases.Acquire(ctx, lease, "test", time.Minute)
		if err != nil || !held {
			t.Fatal(held, err)
		}
		before := w.store.pages.Load()
		done := make(chan error, 1)
		go func() { done <- w.loop(w.on(s, schedule.Config{Observer: see})).Run(ctx, n) }()
		see.until(t, "term", shared)
		if read := w.store.pages.Load() - before; term > 0 && read != 0 {
			t.Errorf("term %d has read %d pages of the backlog", term, read)
		}
		w.admit(term%2, 5)
		w.await(min(4, 5*(term+1)), dispatching)
		stop()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := leases.Release(t.Context(), lease, "test", n); err != nil {
			t.Fatal(err)
		}
	}
	w.run(w.on(s, schedule.Config{}))
	w.release()
	w.onceEach(15)
}

// I12 and D36: everything in Redis vanishes in full work, in every way. Claims go on within two seconds,
// nothing is lost, nothing starts twice, and the index comes back by itself.
func TestI12_RedisVanishesInFullWork(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct{ strike, heal func(*server) }{
		"flushed":   {func(s *server) { s.flush() }, func(*server) {}},
		"killed":    {func(s *server) { s.kill() }, func(s *server) { s.start() }},
		"hung":      {func(s *server) { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }, func(s *server) { _ = s.cmd.Process.Signal(syscall.SIGCONT) }},
		"half gone": {func(s *server) { s.dropEvery("*:units") }, func(*server) {}},
		"wrong types": {func(s *server) {
			s.do(func(ctx context.Context, rdb *redis.Client) error {
				for it := rdb.Scan(ctx, 0, "*:items", 1000).Iterator(); it.Next(ctx); {
					if err := rdb.Set(ctx, it.Val(), "not a hash", 0).Err(); err != nil {
						return err
					}
				}
				return nil
			})
		}, func(*server) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s, see := newWorld(t, 10, 3), startRedis(t), newWatcher()
			w.run(w.on(s, schedule.Config{Observer: see, Hold: 300 * time.Millisecond}))
			see.until(t, "start", shared)
			w.release()
			const rounds, each = 4, 60
			for i := range rounds {
				w.admit(i%3, each/2)
				w.admit((i+1)%3, each/2)
			}
			w.await(1, `SELECT least(1, count(*)) FROM task_attempt`)
			at := time.Now()
			before := w.number(attempts)
			fault.strike(s)
			left := see.until(t, name, limited)
			if away := name == "killed" || name == "hung"; away != (left.Why == schedule.WhyAway) || !away != (left.Why == schedule.WhyBuilding) {
				t.Errorf("E24: %s: the queue says %q", name, left.Why)
			}
			w.await(1, `SELECT least(1, count(*)) FROM task_attempt WHERE created_at > $1`, left.Since)
			after := time.Since(at)
			if after > 15*time.Second {
				t.Errorf("no claim for %v", after)
			}
			storetest.Figure(t, "schedule: Redis %s in full work: the next claim without it came after %.2f s (%d claims before)", name, after.Seconds(), before)
			w.admit(0, each)
			fault.heal(s)
			back := see.until(t, name+" and back", shared)
			w.admit(1, each)
			w.onceEach(rounds*each + 2*each)
			w.empty(s)
			storetest.Figure(t, "schedule: Redis %s: shared again %.2f s after it was left", name, back.Since.Sub(left.Since).Seconds())
		})
	}
}

func (s *server) dropEvery(pattern string) {
	s.t.Helper()
	s.do(func(ctx context.Context, rdb *redis.Client) error {
		for it := rdb.Scan(ctx, 0, pattern, 1000).Iterator(); it.Next(ctx); {
			if err := rdb.Del(ctx, it.Val()).Err(); err != nil {
				return err
			}
		}
		return nil
	})
}
