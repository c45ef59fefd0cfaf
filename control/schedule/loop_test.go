package schedule_test

import (
	"slices"
	"testing"
	"time"

	"fairlane/control"
	"fairlane/control/dispatch"
	"fairlane/control/schedule"
	"fairlane/store/facts"
	"fairlane/store/storetest"
)

const (
	dispatching = `SELECT count(*) FROM generation_task WHERE state = 'DISPATCHING'`
	queued      = `SELECT count(*) FROM generation_task WHERE state = 'QUEUED'`
	used        = `SELECT sum(used_units)::int FROM resource_pool_shard`
)

func TestLoopFillsThePoolAndGoesOnWhenAttemptsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8, 2)
	w.admit(0, 20) // before the loop: its backlog
	w.run(schedule.Config{})
	w.await(8, dispatching)
	w.admit(1, 20) // beside it: its events
	w.await(32, queued)

	rows, err := w.db.Pool.Query(t.Context(), `SELECT attempt_id, fencing_token FROM task_attempt LIMIT 3`)
	if err != nil {
		t.Fatal(err)
	}
	var endings []dispatch.Ending
	for rows.Next() {
		e := dispatch.Ending{State: control.AttemptRejected, Retry: true, RetryAfter: time.Hour, ActualCost: -1, ErrorClass: "RATE_LIMITED"}
		if err := rows.Scan(&e.AttemptID, &e.FencingToken); err != nil {
			t.Fatal(err)
		}
		endings = append(endings, e)
	}
	if _, err := facts.NewEndings(w.facts).End(t.Context(), endings); err != nil {
		t.Fatal(err)
	}
	w.await(11, `SELECT count(*) FROM task_attempt`) // three others took their place; the three wait for their hour
	w.await(8, used)
	if n := w.number(`SELECT count(*) FROM generation_task WHERE state = 'QUEUED' AND next_eligible_at > now()`); n != 3 {
		t.Errorf("%d tasks wait for their retry, want 3", n)
	}
	if findings, err := facts.NewCheck(w.facts).Run(t.Context()); err != nil || len(findings) > 0 {
		t.Errorf("check: %v, %v", findings, err)
	}
}

// One row that no plan can carry does not stop the others.
func TestTrap_D09_AnItemThatCannotBeRightStopsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, 1)
	bad := w.admit(0, 1)[0]
	if _, err := w.db.Pool.Exec(t.Context(), `UPDATE generation_task SET fairness_units = 9000000000000 WHERE task_id = $1`, bad); err != nil {
		t.Fatal(err)
	}
	w.admit(0, 3)
	w.run(schedule.Config{})
	w.await(3, dispatching)
	if n := w.number(queued); n != 1 {
		t.Errorf("%d tasks wait, want the broken one", n)
	}
}

// A holder whose term is over takes no events and claims nothing more.
func TestTrap_D18_AnOldTermEndsItsLoop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, 1)
	leases := facts.NewLeases(w.facts)
	ctx := t.Context()
	term, held, err := leases.Acquire(ctx, lease, "old", time.Minute)
	if err != nil || !held {
		t.Fatal(term, held, err)
	}
	if err := leases.Release(ctx, lease, "old", term); err != nil {
		t.Fatal(err)
	}
	if next, held, err := leases.Acquire(ctx, lease, "new", time.Minute); err != nil || !held || next <= term {
		t.Fatal(next, held, err)
	}
	w.admit(0, 2)
	if err := w.loop(schedule.Config{}).Run(ctx, term); control.CodeOf(err) != control.CodeFenced {
		t.Fatalf("the loop of an old term ended with %v, want FENCED", err)
	}
	if n := w.number(queued); n != 2 {
		t.Errorf("the old term has claimed: %d of 2 wait", n)
	}
}

// Without work the loop asks for events once in every floor, and for nothing else.
func TestIdleLoopAsksOnceInEveryFloor(t *testing.T) {
	t.Parallel()
	const floor = 100 * time.Millisecond
	for _, on := range []string{"memory", "redis"} {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			w, see := newWorld(t, 4, 1), newWatcher()
			cfg := schedule.Config{Floor: floor, Observer: see}
			if on == "redis" {
				cfg = w.on(startRedis(t), cfg)
			}
			w.run(cfg)
			see.until(t, "start", func(s schedule.QueueState) bool { return s.Runs && s.Shared == (on == "redis") })
			w.admit(0, 1)
			w.await(1, dispatching)
			w.await(0, `SELECT count(*) FROM outbox_event WHERE topic = 'queue'`)
			w.number(`SELECT count(*) FROM pg_sleep(0.2)`)
			began, asked, snapshots, pages := time.Now(), w.store.others.Load(), w.store.snapshots.Load(), w.store.pages.Load()
			w.number(`SELECT count(*) FROM pg_sleep(1)`)
			floors := int64(time.Since(began)/floor) + 2
			if n := w.store.others.Load() - asked; n > floors {
				t.Errorf("%d questions in %d floors", n, floors)
			}
			if s, p := w.store.snapshots.Load()-snapshots, w.store.pages.Load()-pages; s+p > 0 {
				t.Errorf("%d snapshots and %d pages of the backlog while nothing waited", s, p)
			}
		})
	}
}

// A published pause holds what waits, and its end lets it go.
func TestLoopFollowsThePolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, 1)
	paused := document(4)
	paused.Switches.SchedulingRunning = false
	w.publish(1, paused)
	if err := w.active.Await(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	w.run(schedule.Config{Floor: 50 * time.Millisecond})
	w.admit(0, 3)
	for range 5 {
		w.number(`SELECT count(*) FROM generation_task, pg_sleep(0.1)`)
	}
	if n := w.number(dispatching); n != 0 {
		t.Fatalf("%d tasks started while scheduling was switched off", n)
	}
	w.publish(2, document(4))
	w.await(3, dispatching)
}

// A lone task is claimed soon after its commit, on either queue: the loop is woken, it does not poll.
func TestLoneTaskStartsAtOnce(t *testing.T) {
	for _, on := range []string{"memory", "redis"} {
		t.Run(on, func(t *testing.T) {
			w, see := newWorld(t, 200, 1), newWatcher()
			cfg := schedule.Config{Floor: 10 * time.Second, Observer: see}
			if on == "redis" {
				cfg = w.on(startRedis(t), cfg)
			}
			w.run(cfg)
			see.until(t, "start", func(s schedule.QueueState) bool { return s.Runs && s.Shared == (on == "redis") })
			const n = 100
			for i := range n {
				w.admit(0, 1)
				w.await(i+1, dispatching)
				w.number(`SELECT count(*) FROM pg_sleep(0.04)`) // longer than the gap: the next one is alone, too
			}
			rows, err := w.db.Pool.Query(t.Context(), `SELECT extract(epoch FROM a.created_at - g.created_at) * 1000 FROM task_attempt a JOIN generation_task g USING (task_id)`)
			if err != nil {
				t.Fatal(err)
			}
			var waits []float64
			for rows.Next() {
				var ms float64
				if err := rows.Scan(&ms); err != nil {
					t.Fatal(err)
				}
				waits = append(waits, ms)
			}
			slices.Sort(waits)
			if waits[len(waits)/2] > 5000 { // half the floor: it was woken
				t.Errorf("a lone task waited %.0f ms at the median: nobody woke the loop", waits[len(waits)/2])
			}
			storetest.Figure(t, "schedule on %s: a lone task is claimed %.1f ms (median), %.1f ms (p95) after its insert", on, waits[len(waits)/2], waits[len(waits)*95/100])
		})
	}
}
