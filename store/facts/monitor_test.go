package facts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/monitor"
	"fairlane/policy/access"
	"fairlane/store/facts"
	"fairlane/store/storetest"
)

var everywhere = access.Reach{All: true}

// monitored is a database with two lanes, two pools and n tenants t00001…, each with counters in its
// home lane: odd ones STANDARD, even ones PAID_SHARED.
func monitored(t *testing.T, n int) (*storetest.Database, *facts.Monitor) {
	t.Helper()
	d := storetest.New(t)
	db, err := facts.Open(t.Context(), d.URL, "monitor", 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	run(t, d, `
		INSERT INTO pool_group_account (pool_group, capacity_units, common_units, common_used, policy_version) VALUES ('main', 100, 40, 7, 1);
		INSERT INTO lane_account (lane, pool_group, reserved_units, own_used, common_used, policy_version) VALUES
			('STANDARD', 'main', 20, 20, 7, 1), ('PAID_SHARED', 'main', 40, 11, 0, 1);
		INSERT INTO resource_pool (resource_key, kind, pool_group, parents, provider, model_code, capacity_units, policy_version) VALUES
			('group:all', 'CAP_GROUP', 'main', '{}', '', '', 100, 1),
			('provider:a', 'PROVIDER', 'main', '{group:all}', 'a', 'gen4', 30, 1),
			('provider:b', 'PROVIDER', 'main', '{group:all}', 'b', 'veo', 70, 1);
		INSERT INTO resource_pool_shard (resource_key, shard_no, capacity_units, used_units) VALUES
			('group:all', 0, 100, 38), ('provider:a', 0, 15, 15), ('provider:a', 1, 15, 18), ('provider:b', 0, 70, 5);
		UPDATE policy_head SET version = 3;`)
	run(t, d, fmt.Sprintf(`
		INSERT INTO tenant (tenant_id, code, name, plan_code)
			SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 't' || lpad(i::text, 5, '0'), 'Tenant ' || lpad(i::text, 5, '0'), 'basic' FROM generate_series(1, %d) i;
		INSERT INTO tenant_user (tenant_id, user_id, external_id) SELECT tenant_id, tenant_id, 'u' FROM tenant;
		INSERT INTO tenant_scheduling_policy SELECT tenant_id, CASE WHEN right(code, 1) IN ('1','3','5','7','9') THEN 'STANDARD' ELSE 'PAID_SHARED' END, 2,
			100, 100, 100, 100, 0, 0, 0, 0, 0, 10, 10, 10, 10, 1 FROM tenant;
		INSERT INTO tenant_runtime (tenant_id) SELECT tenant_id FROM tenant;
		INSERT INTO tenant_lane_runtime (tenant_id, lane) SELECT tenant_id, service_class FROM tenant_scheduling_policy;`, n))
	return d, facts.NewMonitor(db)
}

func run(t *testing.T, d *storetest.Database, sql string, args ...any) {
	t.Helper()
	if _, err := d.Pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// queue inserts tasks queued one second apart, the oldest first, over all tenants, and their counters.
func queue(t *testing.T, d *storetest.Database, n int, oldest time.Time) {
	t.Helper()
	run(t, d, `
		INSERT INTO generation_task (task_id, tenant_id, user_id, kind, queue_class, pool_group, priority_band, resource_class, state, model_code, route,
			fairness_units, provider_slot_units, estimated_cost_units, expected_seconds, expected_p95_seconds, enqueue_at, queued_since, next_eligible_at,
			policy_version, estimate_version, idempotency_key)
		SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, p.tenant_id, p.tenant_id, 'VIDEO', p.service_class, 'main', 3, 'STANDARD', 'QUEUED', 'gen4', 'r',
			2000, 1, 5, 30, 60, at, at, at, 1, 1, i::text
		FROM (SELECT i, i % (SELECT count(*) FROM tenant) AS no, $2::timestamptz + i * interval '1 millisecond' AS at FROM generate_series(0, $1 - 1) i) s
		JOIN (SELECT tenant_id, service_class, row_number() OVER (ORDER BY tenant_id) - 1 AS no FROM tenant_scheduling_policy) p USING (no)`, n, oldest)
	run(t, d, `
		UPDATE tenant_lane_runtime r SET queued_tasks = q.n, queued_units = q.n * 2000, updated_at = clock_timestamp()
		FROM (SELECT tenant_id, queue_class, count(*) AS n FROM generation_task WHERE state = 'QUEUED' GROUP BY 1, 2) q
		WHERE r.tenant_id = q.tenant_id AND r.lane = q.queue_class`)
	run(t, d, `
		UPDATE tenant_runtime r SET queued_tasks = l.queued_tasks, queued_units = l.queued_units FROM tenant_lane_runtime l WHERE l.tenant_id = r.tenant_id`)
	run(t, d, `ANALYZE`)
}

func tenantID(i int) uuid.UUID {
	return uuid.MustParse(fmt.Sprintf("00000000-0000-7000-8000-%012x", i))
}

func TestMonitorReadsCapacityAtOneInstant(t *testing.T) {
	t.Parallel()
	d, m := monitored(t, 4)
	oldest := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	queue(t, d, 6, oldest)
	attempt(t, d, 0, "provider:b", "UNKNOWN", 3)
	attempt(t, d, 1, "provider:b", "ACCEPTED", 2)

	c, err := m.Capacity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.PolicyWanted != 3 || len(c.Groups) != 1 || c.Groups[0].Common != 40 || c.Groups[0].CommonUse != 7 || len(c.Accounts) != 2 {
		t.Errorf("groups and accounts: %+v", c)
	}
	pools := map[string]monitor.PoolRow{}
	for _, p := range c.Pools {
		pools[p.Key] = p
	}
	if a := pools["provider:a"]; a.Capacity != 30 || a.Used != 33 || a.Limit != -1 || a.Unknown != 0 {
		t.Errorf("pool a: %+v", a)
	}
	if b := pools["provider:b"]; b.Used != 5 || b.Unknown != 1 || b.UnknownUnits != 3 || !slices.Equal(b.Parents, []string{"group:all"}) {
		t.Errorf("pool b: %+v", b)
	}
	if c.Pools[len(c.Pools)-1].Kind != "CAP_GROUP" {
		t.Errorf("cap groups come last: %+v", c.Pools)
	}
	for _, q := range c.Queues {
		want := monitor.QueueUse{Lane: "STANDARD", QueuedTasks: 3, QueuedMilli: 6000, OldestAt: oldest}
		if q.Lane == "PAID_SHARED" {
			want = monitor.QueueUse{Lane: "PAID_SHARED", QueuedTasks: 3, QueuedMilli: 6000, OldestAt: oldest.Add(time.Millisecond)}
		}
		if q.OldestAt = q.OldestAt.UTC(); q != want {
			t.Errorf("got %+v, want %+v", q, want)
		}
	}
}

// attempt gives the i-th queued task an attempt that holds units of a pool.
func attempt(t *testing.T, d *storetest.Database, i int, pool, state string, units int) {
	t.Helper()
	task := uuid.MustParse(fmt.Sprintf("01900000-0000-7000-8000-%012x", i))
	id := uuid.New()
	run(t, d, `INSERT INTO task_attempt (attempt_id, task_id, attempt_no, provider, provider_account, resource_key, provider_request_key, callback_token, state, fencing_token, lane, policy_version, deadline_at)
		VALUES ($1::uuid, $2, 1, 'b', 'acct', $3, $1::uuid::text, 'tok', $4, 7, 'STANDARD', 1, now() + interval '1 hour')`, id, task, pool, state)
	run(t, d, `INSERT INTO resource_reservation (reservation_id, task_id, attempt_id, resource_key, shard_no, reserved_units, state, tenant_id, user_id, kind, lane, pool_group, account, policy_version, lease_until, fencing_token)
		SELECT gen_random_uuid(), task_id, $2, $3, 0, $4, 'ACTIVE', tenant_id, user_id, 'VIDEO', queue_class, 'main', 'OWN', 1, now(), 7 FROM generation_task WHERE task_id = $1`, task, id, pool, units)
}

func TestMonitorDemandAndFaces(t *testing.T) {
	t.Parallel()
	d, m := monitored(t, 6)
	oldest := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	queue(t, d, 2, oldest)
	run(t, d, `UPDATE tenant_lane_runtime SET served_milli = 5000, updated_at = now() - interval '1 hour' WHERE tenant_id = $1`, tenantID(3))
	run(t, d, `UPDATE tenant_lane_runtime SET served_milli = 6000, updated_at = now() WHERE tenant_id = $1`, tenantID(4))
	ids := func(since time.Time) []uuid.UUID {
		uses, err := m.Demand(t.Context(), since)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]uuid.UUID, 0, len(uses))
		for _, u := range uses {
			out = append(out, u.TenantID)
		}
		slices.SortFunc(out, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
		return out
	}
	if got := ids(time.Now().Add(-time.Minute)); !slices.Equal(got, []uuid.UUID{tenantID(1), tenantID(2), tenantID(4)}) {
		t.Errorf("with work or served of late: %v", got)
	}
	if got := ids(time.Time{}); !slices.Equal(got, []uuid.UUID{tenantID(1), tenantID(2), tenantID(3), tenantID(4)}) {
		t.Errorf("ever served: %v", got)
	}
	faces, err := m.Identify(t.Context(), []uuid.UUID{tenantID(1), tenantID(5), uuid.New()})
	if err != nil || len(faces) != 2 {
		t.Fatalf("%v %v", faces, err)
	}
	for _, f := range faces {
		if want := f.TenantID == tenantID(1); f.OldestAt.IsZero() == want {
			t.Errorf("oldest of %s: %v", f.Code, f.OldestAt)
		}
	}
}

func TestMonitorFlowCountsBySecond(t *testing.T) {
	t.Parallel()
	d, m := monitored(t, 1)
	now := time.Now().Truncate(time.Second)
	for i := range 40 {
		at := now.Add(-time.Duration(i) * time.Second)
		id, err := uuid.NewV7()
		if err != nil {
			t.Fatal(err)
		}
		ms := at.UnixMilli()
		for b := range 6 {
			id[b] = byte(ms >> (8 * (5 - b)))
		}
		state := []control.TaskState{control.TaskDispatching, control.TaskSucceeded, control.TaskRunning, control.TaskFailed}[i%4]
		run(t, d, `INSERT INTO task_event (event_id, task_id, type, to_state, at) VALUES ($1, gen_random_uuid(), 'X', $2, $3)`, id, state, at)
		id[15]++ // beside each move an event that moves nothing, and one without states
		run(t, d, `INSERT INTO task_event (event_id, task_id, type, from_state, to_state, at) VALUES ($1, gen_random_uuid(), 'X', $2, $2, $3)`, id, state, at)
		id[15]++
		run(t, d, `INSERT INTO task_event (event_id, task_id, type, at) VALUES ($1, gen_random_uuid(), 'X', $2)`, id, at)
	}
	counts, err := m.Flow(t.Context(), now.Add(-19*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	sum := map[string]int64{}
	for _, c := range counts {
		sum[c.State] += c.Tasks
	}
	if sum["DISPATCHING"] != 5 || sum["SUCCEEDED"] != 5 || sum["FAILED"] != 5 || sum["RUNNING"] != 5 || len(sum) != 4 {
		t.Errorf("20 seconds hold 5 moves into each of four states, got %v", sum)
	}
}

func TestMonitorMachine(t *testing.T) {
	t.Parallel()
	d, m := monitored(t, 1)
	run(t, d, `INSERT INTO lease VALUES ('scheduler:main', 'a', 4, now() + interval '1 minute'), ('reconcile', 'b', 1, '-infinity')`)
	run(t, d, `INSERT INTO outbox_event (event_id, topic, event_type, aggregate_id, available_at) SELECT gen_random_uuid(), 'dispatch', 'X', gen_random_uuid(), now() - i * interval '1 second' FROM generate_series(1, 12000) i`)
	run(t, d, `INSERT INTO policy_replica VALUES ('r1', 3, NULL, now()), ('r2', 2, 'broken', now() - interval '1 minute'), ('r3', 1, NULL, now() - interval '2 hours')`)
	x, err := m.Machine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Leases) != 2 || x.Leases[0].Live || !x.Leases[1].Live || x.Leases[1].Term != 4 {
		t.Errorf("leases: %+v", x.Leases)
	}
	if len(x.Outbox) != 2 || x.Outbox[0].Rows != 0 || x.Outbox[1].Rows != monitor.MaxOutboxRows || x.Outbox[1].OldestAt.IsZero() {
		t.Errorf("outbox: %+v", x.Outbox)
	}
	if len(x.Replicas) != 2 || !x.Replicas[0].Fresh || x.Replicas[1].Fresh || x.Replicas[1].Error != "broken" {
		t.Errorf("replicas: %+v", x.Replicas)
	}
}

func TestTenantPagesShowEveryTenantOnceAndKeepToTheReach(t *testing.T) {
	t.Parallel()
	d, m := monitored(t, 120)
	run(t, d, `UPDATE tenant SET name = 'same' WHERE tenant_id <= $1`, tenantID(70)) // ties in the sort key (D62)
	walk := func(q monitor.TenantQuery) (codes []string) {
		q.Limit = monitor.PageRows
		for {
			page, err := m.Tenants(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page {
				codes = append(codes, e.Code)
			}
			if len(page) < q.Limit {
				return codes
			}
			q.AfterName, q.AfterID = page[len(page)-1].SortName, page[len(page)-1].ID
		}
	}
	unique := func(codes []string) int {
		slices.Sort(codes)
		return len(slices.Compact(codes))
	}
	all := walk(monitor.TenantQuery{Reach: everywhere})
	if n := len(all); n != 120 || unique(all) != 120 {
		t.Errorf("%d rows, %d tenants", n, unique(all))
	}
	if got := walk(monitor.TenantQuery{Reach: everywhere, Lane: "STANDARD"}); len(got) != 60 {
		t.Errorf("%d tenants of STANDARD, want 60", len(got))
	}
	if got := walk(monitor.TenantQuery{Reach: access.Reach{Lanes: []string{"STANDARD"}, Tenants: []uuid.UUID{tenantID(2)}}}); len(got) != 61 {
		t.Errorf("%d tenants within reach, want 61", len(got))
	}
	if got := walk(monitor.TenantQuery{Reach: access.Reach{}}); len(got) != 0 {
		t.Errorf("a reach of nowhere shows %d tenants", len(got))
	}
	run(t, d, `UPDATE tenant SET name = '50%_Kite\北辰' WHERE tenant_id = $1`, tenantID(7))
	for text, want := range map[string]int{"%": 1, "_": 1, `\`: 1, "北辰": 1, "KITE": 1, "t0011": 10, "nobody": 0} {
		if got := walk(monitor.TenantQuery{Reach: everywhere, Text: text}); len(got) != want {
			t.Errorf("search %q: %d tenants, want %d", text, len(got), want)
		}
	}
	if f, err := m.FindTenant(t.Context(), "t00007"); err != nil || f.TenantID != tenantID(7) {
		t.Errorf("%+v %v", f, err)
	}
	if _, err := m.FindTenant(t.Context(), "nobody"); control.CodeOf(err) != control.CodeNotFound {
		t.Errorf("got %v", err)
	}
}

func TestTaskPagesAndDetail(t *testing.T) {
	t.Parallel()
	d, m := monitored(t, 4)
	queue(t, d, 130, time.Now().Add(-time.Hour))
	run(t, d, `UPDATE generation_task SET state = 'RUNNING', model_code = 'veo' WHERE task_id IN (SELECT task_id FROM generation_task ORDER BY task_id LIMIT 30)`)
	walk := func(q monitor.TaskQuery) (n int) {
		last := uuid.Max
		for range 10 {
			page, err := m.Tasks(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Tasks {
				if strings.Compare(e.ID.String(), last.String()) >= 0 {
					t.Errorf("%s after %s", e.ID, last)
				}
				last = e.ID
				n++
			}
			if page.Next == uuid.Nil {
				return n
			}
			q.Before = page.Next
		}
		t.Fatal("the list has no end")
		return n
	}
	for _, c := range []struct {
		q    monitor.TaskQuery
		want int
	}{
		{monitor.TaskQuery{Reach: everywhere, Limit: 50}, 130},
		{monitor.TaskQuery{Reach: everywhere, Limit: 50, State: control.TaskQueued}, 100},
		{monitor.TaskQuery{Reach: everywhere, Limit: 50, Model: "veo"}, 30},
		{monitor.TaskQuery{Reach: everywhere, Limit: 7, Tenant: tenantID(1)}, 33},
		{monitor.TaskQuery{Reach: everywhere, Limit: 50, Lane: "STANDARD"}, 65},
		{monitor.TaskQuery{Reach: access.Reach{Tenants: []uuid.UUID{tenantID(2)}}, Limit: 50}, 33},
		{monitor.TaskQuery{Limit: 50}, 0},
	} {
		if got := walk(c.q); got != c.want {
			t.Errorf("%+v: %d tasks, want %d", c.q, got, c.want)
		}
	}

	attempt(t, d, 3, "provider:b", "ACCEPTED", 2)
	id := uuid.MustParse("01900000-0000-7000-8000-000000000003")
	run(t, d, `INSERT INTO task_event (event_id, task_id, type, from_state, to_state, detail) VALUES (gen_random_uuid(), $1, 'TaskClaimed', 'QUEUED', 'DISPATCHING', '{"pool":"provider:b"}')`, id)
	task, err := m.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if len(task.Tries) != 1 || task.Tries[0].HeldUnits != 2 || task.Tries[0].Holds != "OWN" || task.ActualCost != -1 || task.User != "u" {
		t.Errorf("%+v", task)
	}
	var detail map[string]string
	if len(task.Events) != 1 || json.Unmarshal(task.Events[0].Detail, &detail) != nil || detail["pool"] != "provider:b" {
		t.Errorf("%+v", task.Events)
	}
	if _, err := m.Task(t.Context(), uuid.New()); control.CodeOf(err) != control.CodeNotFound {
		t.Errorf("got %v", err)
	}
}

// Rows are counted, not time: no read may walk the queue.
func TestTrap_D64_ReadsStayBoundedAt187000QueuedTasks(t *testing.T) {
	t.Parallel()
	const tasks = 187_000
	d, m := monitored(t, 10_000)
	queue(t, d, tasks, time.Now().Add(-time.Hour))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ids := make([]uuid.UUID, monitor.MaxTenantRows)
	for i := range ids {
		ids[i] = tenantID(i + 1)
	}
	type step struct {
		name string
		read func(*facts.Monitor) error
	}
	list := func(q monitor.TaskQuery) func(*facts.Monitor) error {
		q.Reach, q.Limit = everywhere, monitor.PageRows
		return func(m *facts.Monitor) error { _, err := m.Tasks(ctx, q); return err }
	}
	// Each measure has connections of its own: what they read is counted when they are closed.
	measure := func(most int64, steps ...step) {
		before := touched(t, d, "generation_task")
		db, err := facts.Open(ctx, d.URL, "measure", 1)
		if err != nil {
			t.Fatal(err)
		}
		m := facts.NewMonitor(db)
		for _, s := range steps {
			began := time.Now()
			if err := s.read(m); err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			t.Logf("%-24s %7.1f ms", s.name, time.Since(began).Seconds()*1000)
		}
		db.Close()
		if n := touched(t, d, "generation_task") - before; n > most || n == 0 {
			t.Errorf("%d of %d tasks were looked at, at most %d are allowed", n, tasks, most)
		} else {
			t.Logf("%d of %d tasks were looked at", n, tasks)
		}
	}
	measure(2_000,
		step{"capacity", func(m *facts.Monitor) error { _, err := m.Capacity(ctx); return err }},
		step{"identify", func(m *facts.Monitor) error { _, err := m.Identify(ctx, ids); return err }},
		step{"machine", func(m *facts.Monitor) error { _, err := m.Machine(ctx); return err }},
		step{"tenants now", func(m *facts.Monitor) error { _, err := m.TenantsNow(ctx, ids); return err }},
		step{"tasks now", func(m *facts.Monitor) error { _, err := m.TasksNow(ctx, ids); return err }},
		step{"starved", func(m *facts.Monitor) error {
			_, err := m.Starved(ctx, monitor.StarvedQuery{Reach: everywhere})
			return err
		}},
		step{"flow", func(m *facts.Monitor) error { _, err := m.Flow(ctx, time.Now().Add(-5*time.Minute)); return err }},
		step{"tenants", func(m *facts.Monitor) error {
			_, err := m.Tenants(ctx, monitor.TenantQuery{Reach: everywhere, Text: "9999", Limit: monitor.PageRows})
			return err
		}},
		step{"tasks", list(monitor.TaskQuery{})},
		step{"tasks of a lane", list(monitor.TaskQuery{Lane: "STANDARD"})},
		step{"tasks of a state", list(monitor.TaskQuery{State: control.TaskQueued})},
		step{"tasks of a tenant", list(monitor.TaskQuery{Tenant: tenantID(5), State: control.TaskQueued})},
	)
	// A filter without an index that nothing matches looks at one window, and once more for its end.
	measure(2*20_000+100, step{"tasks that nobody has", list(monitor.TaskQuery{Lane: "NONE"})})
	uses, err := m.Demand(ctx, time.Time{})
	if err != nil || len(uses) != 10_000 {
		t.Errorf("%d tenants with demand, %v", len(uses), err)
	}
}

// touched is how many rows of a table were read so far by connections that are closed.
func touched(t *testing.T, d *storetest.Database, table string) (n int64) {
	t.Helper()
	last, since := int64(-1), time.Now()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if err := d.Pool.QueryRow(t.Context(), `SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = $1`, table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != last {
			last, since = n, time.Now()
		} else if time.Since(since) > time.Second {
			return n
		}
		run(t, d, `SELECT pg_sleep(0.1)`)
	}
	t.Fatal("the statistics do not come to rest")
	return n
}
