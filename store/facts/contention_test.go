package facts_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"fairlane/control"
	"fairlane/control/dispatch"
	"fairlane/control/schedule"
	"fairlane/store/facts"
)

// busy is a platform in small: three lanes, six tenants with two users each, two leaves on 16 shards
// inside two cap groups, and limits that bind now and then.
func busy(t *testing.T) (*world, []job) {
	t.Helper()
	w := newWorld(t)
	w.group(t, "g", 400, 160)
	w.pool(t, "all", "", nil, slices.Repeat([]int64{10}, 16)...)
	w.pool(t, "acct", "", []string{"all"}, 60, 60)
	w.pool(t, "a", "g", []string{"acct"}, slices.Repeat([]int64{6}, 16)...)
	w.pool(t, "b", "g", []string{"all"}, slices.Repeat([]int64{5}, 16)...)
	var jobs []job
	for i, lane := range []string{"ENTERPRISE_RESERVED", "PAID_SHARED", "STANDARD"} {
		w.lane(t, lane, "g", int64(120-60*i))
		for range 2 {
			tenant := w.tenant(t, lane, caps{tasks: 30, units: 50, userTasks: 18, userVideo: 14, userImage: 10})
			for range 2 {
				user := w.user(t, tenant)
				for _, kind := range []control.Kind{control.KindImage, control.KindVideo} {
					jobs = append(jobs, job{tenant: tenant, user: user, lane: lane, kind: kind, maxAttempts: 2})
				}
			}
		}
	}
	return w, jobs
}

// some returns n tasks of random sizes.
func some(r *rand.Rand, jobs []job, n int) []job {
	out := make([]job, n)
	for i := range out {
		out[i] = jobs[r.IntN(len(jobs))]
		out[i].slots = 1 + r.Int64N(3)
	}
	return out
}

// waiting asks for up to n random queued tasks, in pools and accounts at random.
func (w *world) waiting(ctx context.Context, r *rand.Rand, n int) (schedule.Claim, error) {
	rows, err := w.sql.Query(ctx, `SELECT task_id, version, tenant_id, user_id, kind, queue_class, pool_group, provider_slot_units, fairness_units
		FROM generation_task WHERE state = 'QUEUED' ORDER BY random() LIMIT $1`, n)
	if err != nil {
		return schedule.Claim{}, err
	}
	req := schedule.Claim{PoolGroup: "g", PolicyVersion: 1}
	s := schedule.ClaimStart{Provider: "prov", ProviderAccount: "acct", AttemptTimeout: time.Minute}
	_, err = pgx.ForEachRow(rows, []any{&s.TaskID, &s.TaskVersion, &s.TenantID, &s.UserID, &s.Kind, &s.Lane, &s.Group, &s.SlotUnits, &s.CostMilli}, func() error {
		s.Pool, s.CapGroups, s.Account = "a", []string{"acct", "all"}, control.AccountCommon
		if r.IntN(2) == 0 {
			s.Pool, s.CapGroups = "b", []string{"all"}
		}
		if r.IntN(2) == 0 {
			s.Account = control.AccountOwn
		}
		req.Starts = append(req.Starts, s)
		return nil
	})
	return req, err
}

// finish ends up to n random live attempts, some of them twice, some under a stale fence.
func (w *world) finish(ctx context.Context, r *rand.Rand, n int) (applied int, err error) {
	rows, err := w.sql.Query(ctx, `SELECT attempt_id, fencing_token, state FROM task_attempt
		WHERE state IN ('CREATED', 'ACCEPTED') OR random() < 0.02 ORDER BY random() LIMIT $1`, n)
	if err != nil {
		return 0, err
	}
	var endings []dispatch.Ending
	var e dispatch.Ending
	var state control.AttemptState
	_, err = pgx.ForEachRow(rows, []any{&e.AttemptID, &e.FencingToken, &state}, func() error {
		e.State, e.Retry, e.ActualCost = control.AttemptRejected, r.IntN(2) == 0, 5
		if state == control.AttemptAccepted {
			e.State = []control.AttemptState{control.AttemptSucceeded, control.AttemptFailed, control.AttemptCanceled}[r.IntN(3)]
		}
		endings = append(endings, e)
		if r.IntN(8) == 0 {
			stale := e
			stale.FencingToken--
			endings = append(endings, stale, e)
		}
		return nil
	})
	if err != nil || len(endings) == 0 {
		return 0, err
	}
	out, err := facts.NewEndings(w.db).End(ctx, endings)
	for _, x := range out {
		if x.Applied {
			applied++
		}
	}
	return applied, err
}

// acceptSome lets the provider accept random attempts, in the lock order.
func (w *world) acceptSome(ctx context.Context, n int) error {
	return w.db.Tx(ctx, func(tx pgx.Tx) error {
		for _, sql := range []string{
			`CREATE TEMP TABLE chosen ON COMMIT DROP AS SELECT attempt_id, task_id FROM task_attempt WHERE state = 'CREATED' ORDER BY random() LIMIT ` + strconv.Itoa(n),
			`SELECT 1 FROM generation_task WHERE task_id IN (SELECT task_id FROM chosen) ORDER BY task_id FOR NO KEY UPDATE`,
			`SELECT 1 FROM task_attempt WHERE attempt_id IN (SELECT attempt_id FROM chosen) ORDER BY attempt_id FOR NO KEY UPDATE`,
			`UPDATE generation_task SET state = 'RUNNING', version = version + 1 WHERE state = 'DISPATCHING' AND current_attempt_id IN (SELECT attempt_id FROM chosen)`,
			`UPDATE task_attempt SET state = 'ACCEPTED' WHERE state = 'CREATED' AND attempt_id IN (SELECT attempt_id FROM chosen)`,
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
}

// Eight workers claim, end, cancel and admit at once, a publish changes limits and capacities in between, a
// rebuilder and checks run beside them: no deadlock that reaches a caller, no invariant broken, at any time.
func TestTrap_D37_I01_I02_I03_I05_HoldUnderContention(t *testing.T) {
	t.Parallel()
	w, jobs := busy(t)
	w.queue(t, some(rand.New(rand.NewPCG(1, 1)), jobs, 400)...)
	rounds := 12
	var mu sync.Mutex
	claimed, refused, ended, canceled := 0, 0, 0, 0
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(worker)))
			for round := range rounds {
				req, err := w.waiting(w.ctx, r, 100)
				if err != nil {
					t.Error(err)
					return
				}
				out, err := facts.NewClaims(w.db).Claim(w.ctx, req)
				if err != nil {
					t.Errorf("claim: %v", err)
					return
				}
				if err := w.acceptSome(w.ctx, 20); err != nil {
					t.Errorf("accept: %v", err)
					return
				}
				n, err := w.finish(w.ctx, r, 40)
				if err != nil {
					t.Errorf("end: %v", err)
					return
				}
				mu.Lock()
				for _, c := range out {
					if c.Refused == "" {
						claimed++
					} else {
						refused++
					}
				}
				ended += n
				mu.Unlock()
				for range 3 {
					if len(req.Starts) == 0 {
						break
					}
					s := req.Starts[r.IntN(len(req.Starts))]
					state, _, err := facts.NewCancels(w.db).Cancel(w.ctx, s.TenantID, s.TaskID, control.System)
					if err != nil {
						t.Errorf("cancel: %v", err)
						return
					}
					if state == control.TaskCanceled {
						mu.Lock()
						canceled++
						mu.Unlock()
					}
				}
				if worker%4 == 0 && round%3 == 0 {
					if found, err := facts.NewCheck(w.db).Run(w.ctx); err != nil || len(found) > 0 {
						t.Errorf("in the middle: %v %+v", err, found[:min(3, len(found))])
						return
					}
				}
			}
		})
	}
	stop := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { w.publishes(t, stop) })
	beside.Go(func() {
		r := rand.New(rand.NewPCG(3, 3))
		for {
			select {
			case <-stop:
				return
			default:
			}
			w.queue(t, some(r, jobs, 20)...)
			found, err := facts.NewRebuild(w.db).RebuildCounters(w.ctx, control.System)
			if err != nil || len(found) > 0 {
				t.Errorf("the rebuilder found drift where there is none: %v %v", err, found)
				return
			}
		}
	})
	wg.Wait()
	close(stop)
	beside.Wait()
	w.clean(t)
	if claimed < 200 || refused < 50 || ended < 200 || canceled < 5 {
		t.Errorf("too quiet to show anything: %d claimed, %d refused, %d ended, %d canceled", claimed, refused, ended, canceled)
	}
	t.Logf("%d claimed, %d refused, %d ended, %d canceled", claimed, refused, ended, canceled)
}

// publishes changes limits and capacities over and over, in the lock order, until stop is closed.
func (w *world) publishes(t *testing.T, stop <-chan struct{}) {
	for version := 2; ; version++ {
		select {
		case <-stop:
			return
		default:
		}
		down := version%2 == 0
		err := w.db.Tx(w.ctx, func(tx pgx.Tx) error {
			for _, sql := range []string{
				`SELECT 1 FROM policy_head FOR UPDATE`,
				`SELECT 1 FROM tenant_scheduling_policy ORDER BY tenant_id FOR NO KEY UPDATE`,
				`UPDATE tenant_scheduling_policy SET max_running_tasks = CASE WHEN $1 THEN 12 ELSE 30 END, policy_version = $2`,
				`SELECT 1 FROM pool_group_account ORDER BY pool_group FOR NO KEY UPDATE`,
				`UPDATE pool_group_account SET common_units = CASE WHEN $1 THEN 60 ELSE 160 END, policy_version = $2`,
				`SELECT 1 FROM lane_account ORDER BY lane, pool_group FOR NO KEY UPDATE`,
				`UPDATE lane_account SET reserved_units = reserved_units + CASE WHEN $1 THEN -20 ELSE 20 END, policy_version = $2 WHERE reserved_units >= 20 OR NOT $1`,
				`UPDATE resource_pool SET policy_version = $2 WHERE $1 OR NOT $1`,
				`SELECT 1 FROM resource_pool_shard ORDER BY resource_key, shard_no FOR NO KEY UPDATE`,
				`UPDATE resource_pool_shard SET capacity_units = capacity_units + CASE WHEN $1 THEN -2 ELSE 2 END WHERE $2 > 0`,
			} {
				var args []any
				if sql[0] == 'U' {
					args = []any{down, version}
				}
				if _, err := tx.Exec(w.ctx, sql, args...); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("publish: %v", err)
			return
		}
	}
}

// Random sequences of everything, one after the other, beside a model that holds nothing but sums.
func TestI01_I02_I10_RandomSequencesKeepTheSums(t *testing.T) {
	t.Parallel()
	w, jobs := busy(t)
	terminal := map[uuid.UUID]string{}
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		w.queue(t, some(r, jobs, rapid.IntRange(1, 25).Draw(rt, "queued"))...)
		for _, step := range rapid.SliceOfN(rapid.SampledFrom([]string{"claim", "accept", "end", "cancel", "expire"}), 1, 6).Draw(rt, "steps") {
			var err error
			switch step {
			case "claim":
				var req schedule.Claim
				if req, err = w.waiting(w.ctx, r, 30); err == nil {
					_, err = facts.NewClaims(w.db).Claim(w.ctx, req)
				}
			case "accept":
				err = w.acceptSome(w.ctx, 15)
			case "end":
				_, err = w.finish(w.ctx, r, 20)
			case "cancel":
				var req schedule.Claim
				if req, err = w.waiting(w.ctx, r, 2); err == nil {
					for _, s := range req.Starts {
						_, _, err = facts.NewCancels(w.db).Cancel(w.ctx, s.TenantID, s.TaskID, control.System)
					}
				}
			case "expire":
				w.exec(t, `UPDATE generation_task SET deadline_at = now() - interval '1 s' WHERE task_id IN (SELECT task_id FROM generation_task WHERE state = 'QUEUED' LIMIT 2)`)
				_, err = facts.NewCancels(w.db).ExpireDeadlines(w.ctx, 1)
			}
			if err != nil {
				rt.Fatalf("%s: %v", step, err)
			}
		}
		found, err := facts.NewCheck(w.db).Run(w.ctx)
		if err != nil || len(found) > 0 {
			rt.Fatalf("%v %+v", err, found[:min(3, len(found))])
		}
		rows, err := w.sql.Query(w.ctx, `SELECT task_id, state FROM generation_task WHERE finished_at IS NOT NULL`)
		w.must(err)
		var id uuid.UUID
		var state string
		_, err = pgx.ForEachRow(rows, []any{&id, &state}, func() error {
			if was, seen := terminal[id]; seen && was != state {
				rt.Errorf("I10: task %s was %s and is %s", id, was, state)
			}
			terminal[id] = state
			return nil
		})
		w.must(err)
	})
	if len(terminal) == 0 {
		t.Error("no task ever ended")
	}
}

// Figures of claims and endings in batches of 100, by 8 workers on 16 shards, all in one lane and of the
// same tenants: the worst case for locks.
func TestFiguresOfClaimAndEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const batch, batches = 100, 40
	w.group(t, "g", 1_000_000, 1_000_000)
	w.lane(t, "PAID_SHARED", "g", 0)
	w.pool(t, "all", "", nil, 1_000_000)
	w.pool(t, "leaf", "g", []string{"all"}, slices.Repeat([]int64{10_000}, 16)...)
	var jobs []job
	for range 20 {
		tenant := w.tenant(t, "PAID_SHARED", caps{})
		jobs = append(jobs, job{tenant: tenant, user: w.user(t, tenant)})
	}
	requests := make([]schedule.Claim, batches)
	for i := range requests {
		queued := make([]job, batch)
		for j := range queued {
			queued[j] = jobs[j%len(jobs)]
		}
		requests[i] = schedule.Claim{PoolGroup: "g", PolicyVersion: 1, Starts: w.starts(t, w.queue(t, queued...), "leaf", []string{"all"}, control.AccountCommon)}
	}
	var mu sync.Mutex
	var all []schedule.Claimed
	claims := inParallel(t, requests, func(req schedule.Claim) error {
		out, err := facts.NewClaims(w.db).Claim(w.ctx, req)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, out...)
		return err
	})
	if len(all) != batch*batches || slices.ContainsFunc(all, func(c schedule.Claimed) bool { return c.Refused != "" }) {
		t.Fatalf("%d claimed", len(all))
	}
	w.accept(t, all...)
	var endings [][]dispatch.Ending
	for part := range slices.Chunk(all, batch) {
		es := make([]dispatch.Ending, len(part))
		for i, c := range part {
			es[i] = ending(c, control.AttemptSucceeded)
		}
		endings = append(endings, es)
	}
	ends := inParallel(t, endings, func(es []dispatch.Ending) error {
		_, err := facts.NewEndings(w.db).End(w.ctx, es)
		return err
	})
	w.clean(t)
	if n := w.number(t, `SELECT count(*) FROM generation_task WHERE state = 'SUCCEEDED'`); n != int64(len(all)) {
		t.Errorf("%d of %d succeeded", n, len(all))
	}
	figure(t, "facts claim", claims)
	figure(t, "facts end", ends)
}

const figureWorkers = 8

// inParallel lets 8 workers do all batches of 100 and returns the figures of those after each worker's first,
// which prepares its connection's statements.
func inParallel[B any](t *testing.T, batches []B, do func(B) error) map[string]any {
	t.Helper()
	var took []time.Duration
	run := func(part []B) time.Duration {
		next := make(chan B, len(part))
		for _, b := range part {
			next <- b
		}
		close(next)
		var mu sync.Mutex
		var wg sync.WaitGroup
		took = nil
		began := time.Now()
		for range figureWorkers {
			wg.Go(func() {
				for b := range next {
					from := time.Now()
					if err := do(b); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					took = append(took, time.Since(from))
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		return time.Since(began)
	}
	run(batches[:figureWorkers])
	all := run(batches[figureWorkers:])
	slices.Sort(took)
	return map[string]any{
		"tasks_per_second": int(float64(100*len(took)) / all.Seconds()), "batch": 100, "workers": figureWorkers, "shards": 16,
		"batch_p99_ms": float64(took[(len(took)-1)*99/100].Microseconds()) / 1000,
	}
}
