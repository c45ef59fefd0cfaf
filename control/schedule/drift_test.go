package schedule_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"fairlane/control/queue"
	"fairlane/control/reconcile"
	"fairlane/control/schedule"
	"fairlane/store/facts"
	"fairlane/store/storetest"
)

// D09: an index that holds tasks which nobody knows, which have ended, and which cannot be read, all in
// front of the others. They are put right where they are met, and the rest goes on at full speed.
func TestTrap_D09_AnIndexOfWrongTasksHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	const wrong, right = 150, 180
	for _, on := range []string{"right index", "wrong index"} {
		w, s := newWorld(t, 1000, 2), startRedis(t)
		w.admit(0, right/2)
		w.admit(1, right/2)
		cfg := w.on(s, schedule.Config{})
		x := cfg.Indexes.(indexes)
		if err := x.Begin(t.Context(), group, false); err != nil {
			t.Fatal(err)
		}
		if err := cfg.Rebuilder.Rebuild(t.Context(), group); err != nil {
			t.Fatal(err)
		}
		if on == "wrong index" {
			w.spoil(s, x, wrong)
		}
		see := newWatcher()
		cfg.Observer = see
		at := time.Now()
		w.run(cfg)
		see.until(t, on, shared) // as it is: nobody has looked for differences
		w.await(right, dispatching)
		storetest.Figure(t, "schedule: %d tasks claimed in %.2f s from a %s", right, time.Since(at).Seconds(), on)
		w.await(0, queued)
		if on == "wrong index" { // what no claim has met is found by the sweep
			if found, err := cfg.Rebuilder.(*reconcile.QueueIndexRebuilder).Sweep(t.Context(), []string{group}); err != nil || found.Found == 0 {
				t.Errorf("the sweep has found %+v, %v", found, err)
			}
		}
		w.empty(s)
	}
}

// spoil puts n tasks of each wrong kind before all others.
func (w *world) spoil(s *server, x indexes, n int) {
	w.t.Helper()
	ctx := w.t.Context()
	rows, err := facts.NewBacklogs(w.facts).Backlog(ctx, group, uuid.Nil, 1)
	if err != nil || len(rows) != 1 {
		w.t.Fatal(rows, err)
	}
	long := rows[0].QueuedSince.Add(-time.Hour)
	var unknown []queue.Item
	for range n {
		it := rows[0]
		it.TaskID, it.QueuedSince, it.EligibleAt = uuid.New(), long, long
		unknown = append(unknown, it)
	}
	for _, id := range w.admit(1, n) { // these have ended, and no event has told
		w.exec(`UPDATE generation_task SET state = 'CANCELED', version = version + 1 WHERE task_id = $1`, id)
		w.exec(`DELETE FROM outbox_event WHERE aggregate_id = $1`, id)
		it := rows[0]
		it.TaskID, it.TenantID, it.QueuedSince, it.EligibleAt = id, w.tenants[1].ID, long, long
		unknown = append(unknown, it)
	}
	if err := x.Write(ctx, group, unknown, nil); err != nil {
		w.t.Fatal(err)
	}
	s.do(func(ctx context.Context, rdb *redis.Client) error { // and these cannot be read
		for it := rdb.Scan(ctx, 0, "*:items", 1000).Iterator(); it.Next(ctx); {
			for i := range 5 {
				bad := uuid.New()
				if err := rdb.HSet(ctx, it.Val(), string(bad[:]), []string{"", "x", "L234567890123456789012345678901234567890123456789012345678901234567890123456789"}[i%3]).Err(); err != nil {
					return err
				}
			}
		}
		for it := rdb.Scan(ctx, 0, "*:t:*", 1000).Iterator(); it.Next(ctx); {
			bad := uuid.New()
			if err := rdb.ZAdd(ctx, it.Val(), redis.Z{Score: 1, Member: string(bad[:])}, redis.Z{Score: 2, Member: "no task"}).Err(); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.db.Pool.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatal(err)
	}
}
