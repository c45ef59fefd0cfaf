package facts_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"fairlane/control"
	"fairlane/control/dispatch"
	"fairlane/control/plan"
	"fairlane/control/schedule"
	"fairlane/store/facts"
	"fairlane/store/storetest"
)

const waitLimit = 60 * time.Second

// world is a database with what claims need, made by SQL.
type world struct {
	db   *facts.DB
	sql  *pgxpool.Pool
	url  string
	ctx  context.Context
	must func(error)
}

func newWorld(t testing.TB) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*waitLimit)
	t.Cleanup(cancel)
	base := storetest.New(t)
	db, err := facts.Open(ctx, base.URL, "test", 24)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return &world{db: db, sql: base.Pool, url: base.URL, ctx: ctx, must: func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}}
}

func (w *world) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := w.sql.Exec(w.ctx, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// number reads one bigint.
func (w *world) number(t testing.TB, sql string, args ...any) int64 {
	t.Helper()
	var n int64
	if err := w.sql.QueryRow(w.ctx, sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (w *world) text(t testing.TB, sql string, args ...any) string {
	t.Helper()
	var s string
	if err := w.sql.QueryRow(w.ctx, sql, args...).Scan(&s); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return s
}

// caps are a tenant's limits; zero fields stand for "more than any test needs".
type caps struct{ tasks, units, userTasks, userImage, userVideo int64 }

func (w *world) tenant(t testing.TB, lane string, c caps) uuid.UUID {
	t.Helper()
	for _, p := range []*int64{&c.tasks, &c.units, &c.userTasks, &c.userImage, &c.userVideo} {
		if *p == 0 {
			*p = 1_000_000
		}
	}
	id := uuid.Must(uuid.NewV7())
	w.exec(t, `INSERT INTO tenant (tenant_id, code, name, plan_code) VALUES ($1, $2, 'Tenant', 'pro')`, id, id.String())
	w.exec(t, `
		INSERT INTO tenant_scheduling_policy (tenant_id, service_class, weight, max_queued_tasks, max_queued_units, max_running_tasks,
		    max_running_units, max_cost_per_minute, max_cost_per_day, reserved_units, burst_units, max_wait_seconds,
		    user_max_queued_tasks, user_max_running_tasks, user_max_running_image, user_max_running_video, policy_version)
		VALUES ($1, $2, 1, 1000000, 1000000000, $3, $4, 0, 0, 0, 0, 0, 1000000, $5, $6, $7, 1)`,
		id, lane, c.tasks, c.units, c.userTasks, c.userImage, c.userVideo)
	w.exec(t, `INSERT INTO tenant_runtime (tenant_id) VALUES ($1)`, id)
	return id
}

func (w *world) user(t testing.TB, tenant uuid.UUID) uuid.UUID {
	t.Helper()
	id := uuid.Must(uuid.NewV7())
	w.exec(t, `INSERT INTO tenant_user (tenant_id, user_id, external_id) VALUES ($1, $2, $3)`, tenant, id, id.String())
	w.exec(t, `INSERT INTO user_runtime (tenant_id, user_id) VALUES ($1, $2)`, tenant, id)
	return id
}

func (w *world) group(t testing.TB, group string, capacity, common int64) {
	t.Helper()
	w.exec(t, `INSERT INTO pool_group_account (pool_group, capacity_units, common_units, policy_version) VALUES ($1, $2, $3, 1)`, group, capacity, common)
}

func (w *world) lane(t testing.TB, lane, group string, reserved int64) {
	t.Helper()
	w.exec(t, `INSERT INTO lane_account (lane, pool_group, reserved_units, policy_version) VALUES ($1, $2, $3, 1)`, lane, group, reserved)
}

// pool makes a leaf, or a cap group when group is "", with one shard for each capacity.
func (w *world) pool(t testing.TB, key, group string, parents []string, shards ...int64) {
	t.Helper()
	kind, total := "PROVIDER", int64(0)
	if group == "" {
		kind = "CAP_GROUP"
	}
	for _, c := range shards {
		total += c
	}
	if parents == nil {
		parents = []string{}
	}
	w.exec(t, `INSERT INTO resource_pool (resource_key, kind, pool_group, parents, provider, provider_account, capacity_units, policy_version)
		VALUES ($1, $2, $3, $4, 'prov', 'acct', $5, 1)`, key, kind, group, parents, total)
	w.exec(t, `INSERT INTO resource_pool_shard (resource_key, shard_no, capacity_units) SELECT $1, n - 1, c FROM unnest($2::bigint[]) WITH ORDINALITY k(c, n)`, key, shards)
}

// job is a task to queue; zero fields have the defaults of queue.
type job struct {
	tenant, user uuid.UUID
	lane, group  string
	kind         control.Kind
	slots        int64
	maxAttempts  int
	delay        time.Duration // not eligible before
	deadline     time.Duration // 0: none
}

// queue puts tasks into the queue in one transaction, in the lock order, as an admission does.
func (w *world) queue(t testing.TB, jobs ...job) []uuid.UUID {
	t.Helper()
	n := len(jobs)
	ids, tenants, users := make([]uuid.UUID, n), make([]uuid.UUID, n), make([]uuid.UUID, n)
	lanes, groups, kinds := make([]string, n), make([]string, n), make([]string, n)
	slots, attempts, delays, deadlines := make([]int64, n), make([]int64, n), make([]float64, n), make([]float64, n)
	for i, j := range jobs {
		ids[i], tenants[i], users[i] = uuid.Must(uuid.NewV7()), j.tenant, j.user
		lanes[i], groups[i], kinds[i] = or(j.lane, "PAID_SHARED"), or(j.group, "g"), string(or(j.kind, control.KindVideo))
		slots[i], attempts[i], delays[i], deadlines[i] = or(j.slots, 1), int64(or(j.maxAttempts, 3)), j.delay.Seconds(), j.deadline.Seconds()
	}
	w.must(w.db.Tx(w.ctx, func(tx pgx.Tx) error {
		for _, step := range []struct {
			sql  string
			args []any
		}{
			{`SELECT 1 FROM tenant_runtime WHERE tenant_id = ANY($1) ORDER BY tenant_id FOR NO KEY UPDATE`, []any{tenants}},
			{`UPDATE tenant_runtime r SET queued_tasks = queued_tasks + k.n, queued_units = queued_units + k.u
				FROM (SELECT t, count(*) n, sum(s * 1000) u FROM unnest($1::uuid[], $2::bigint[]) x(t, s) GROUP BY t) k WHERE r.tenant_id = k.t`, []any{tenants, slots}},
			{`INSERT INTO tenant_lane_runtime AS r (tenant_id, lane, queued_tasks, queued_units)
				SELECT t, l, count(*), sum(s * 1000) FROM unnest($1::uuid[], $2::text[], $3::bigint[]) x(t, l, s) GROUP BY t, l ORDER BY t, l
				ON CONFLICT (tenant_id, lane) DO UPDATE SET queued_tasks = r.queued_tasks + EXCLUDED.queued_tasks, queued_units = r.queued_units + EXCLUDED.queued_units`,
				[]any{tenants, lanes, slots}},
			{`INSERT INTO user_runtime AS r (tenant_id, user_id, queued_tasks)
				SELECT t, u, count(*) FROM unnest($1::uuid[], $2::uuid[]) x(t, u) GROUP BY t, u ORDER BY t, u
				ON CONFLICT (tenant_id, user_id) DO UPDATE SET queued_tasks = r.queued_tasks + EXCLUDED.queued_tasks`, []any{tenants, users}},
			{`INSERT INTO generation_task (task_id, tenant_id, user_id, kind, queue_class, pool_group, priority_band, resource_class, state, model_code,
				route, fairness_units, provider_slot_units, estimated_cost_units, expected_seconds, expected_p95_seconds, enqueue_at, queued_since,
				next_eligible_at, deadline_at, max_attempts, policy_version, estimate_version, idempotency_key)
				SELECT id, t, u, kind, lane, grp, 2, 'video', 'QUEUED', 'm', 'route', s * 1000, s, 500000, 60, 120, clock_timestamp(), clock_timestamp(),
				clock_timestamp() + d * interval '1 second', CASE WHEN dl <> 0 THEN clock_timestamp() + dl * interval '1 second' END, a, 1, 1, id::text
				FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::float8[], $10::float8[])
				x(id, t, u, kind, lane, grp, s, a, d, dl)`,
				[]any{ids, tenants, users, kinds, lanes, groups, slots, attempts, delays, deadlines}},
		} {
			if _, err := tx.Exec(w.ctx, step.sql, step.args...); err != nil {
				return err
			}
		}
		return nil
	}))
	return ids
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// starts asks for the tasks as their rows are now.
func (w *world) starts(t testing.TB, ids []uuid.UUID, pool string, capGroups []string, account control.Account) []schedule.ClaimStart {
	t.Helper()
	rows, err := w.sql.Query(w.ctx, `SELECT task_id, version, tenant_id, user_id, kind, queue_class, pool_group, provider_slot_units, fairness_units
		FROM generation_task WHERE task_id = ANY($1)`, ids)
	w.must(err)
	out := make([]schedule.ClaimStart, 0, len(ids))
	s := schedule.ClaimStart{Start: plan.Start{Pool: pool, CapGroups: capGroups, Account: account}, Provider: "prov", ProviderAccount: "acct", AttemptTimeout: 10 * time.Minute}
	_, err = pgx.ForEachRow(rows, []any{&s.TaskID, &s.TaskVersion, &s.TenantID, &s.UserID, &s.Kind, &s.Lane, &s.Group, &s.SlotUnits, &s.CostMilli}, func() error {
		out = append(out, s)
		return nil
	})
	w.must(err)
	order := make(map[uuid.UUID]int, len(ids))
	for i, id := range ids {
		order[id] = i
	}
	slices.SortFunc(out, func(a, b schedule.ClaimStart) int { return order[a.TaskID] - order[b.TaskID] })
	return out
}

func (w *world) claim(t testing.TB, starts ...schedule.ClaimStart) []schedule.Claimed {
	t.Helper()
	out, err := facts.NewClaims(w.db).Claim(w.ctx, schedule.Claim{PoolGroup: starts[0].Group, PolicyVersion: 1, Starts: starts})
	w.must(err)
	return out
}

// accept moves claimed attempts to ACCEPTED and their tasks to RUNNING, as a dispatch worker does.
func (w *world) accept(t testing.TB, claimed ...schedule.Claimed) {
	t.Helper()
	var ids []uuid.UUID
	for _, c := range claimed {
		if c.Refused == "" {
			ids = append(ids, c.AttemptID)
		}
	}
	w.must(w.db.Tx(w.ctx, func(tx pgx.Tx) error {
		for _, sql := range []string{
			`SELECT 1 FROM generation_task WHERE task_id IN (SELECT task_id FROM task_attempt WHERE attempt_id = ANY($1)) ORDER BY task_id FOR NO KEY UPDATE`,
			`SELECT 1 FROM task_attempt WHERE attempt_id = ANY($1) ORDER BY attempt_id FOR NO KEY UPDATE`,
			`UPDATE generation_task SET state = 'RUNNING', version = version + 1 WHERE current_attempt_id = ANY($1) AND state = 'DISPATCHING'`,
			`UPDATE task_attempt SET state = 'ACCEPTED' WHERE attempt_id = ANY($1) AND state = 'CREATED'`,
		} {
			if _, err := tx.Exec(w.ctx, sql, ids); err != nil {
				return err
			}
		}
		return nil
	}))
}

func (w *world) end(t testing.TB, endings ...dispatch.Ending) []dispatch.Ended {
	t.Helper()
	out, err := facts.NewEndings(w.db).End(w.ctx, endings)
	w.must(err)
	return out
}

func ending(c schedule.Claimed, state control.AttemptState) dispatch.Ending {
	return dispatch.Ending{Ref: dispatch.Ref{AttemptID: c.AttemptID, FencingToken: c.FencingToken}, State: state, ActualCost: -1}
}

func (w *world) state(t testing.TB, task uuid.UUID) string {
	t.Helper()
	return w.text(t, `SELECT state FROM generation_task WHERE task_id = $1`, task)
}

// clean fails when any invariant that a database can show is broken.
func (w *world) clean(t testing.TB) {
	t.Helper()
	found, err := facts.NewCheck(w.db).Run(w.ctx)
	w.must(err)
	for i, f := range found {
		t.Errorf("%s %s: %s", f.Invariant, f.Object, f.Detail)
		if i == 20 {
			t.Fatalf("and %d more", len(found)-i)
		}
	}
}

// blocked waits until n connections of the database wait for a lock.
func (w *world) blocked(t testing.TB, n int64) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(waitLimit)
	for {
		if w.number(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) >= n {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("no %d connections came to wait for a lock", n)
		case <-tick.C:
		}
	}
}

// figure shows measured figures as one line of JSON.
func figure(t testing.TB, name string, values map[string]any) {
	t.Helper()
	values["name"] = name
	line, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Figure(t, "%s", line)
}
