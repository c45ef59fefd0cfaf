package facts_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/admit"
	"fairlane/control/estimate"
	"fairlane/store/facts"
	"fairlane/store/storetest"
)

// gatehouse is a database with tenants whose queue caps are 10 tasks, 40 fairness units and 6 tasks a user.
type gatehouse struct {
	*storetest.Database
	db      *facts.DB
	admit   *facts.Admissions
	tenants []uuid.UUID
}

func newGatehouse(t *testing.T, tenants int) *gatehouse {
	t.Helper()
	g := &gatehouse{Database: storetest.New(t)}
	db, err := facts.Open(t.Context(), g.URL, "admit", 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	g.db, g.admit = db, facts.NewAdmissions(db)
	for i := range tenants {
		id := uuid.MustParse(fmt.Sprintf("00000000-0000-7000-8000-%012d", i+1))
		g.tenants = append(g.tenants, id)
		g.do(t, `INSERT INTO tenant (tenant_id, code, name, plan_code) VALUES ($1, $2, $2, 'pro')`, id, fmt.Sprint("t", i))
		g.do(t, `INSERT INTO tenant_scheduling_policy VALUES ($1, 'MAIN', 2, 10, 40, 100, 100, 0, 0, 0, 0, 0, 6, 2, 2, 1, 1)`, id)
	}
	return g
}

func (g *gatehouse) do(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := g.Pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// one reads a single value.
func one[T any](t *testing.T, g *gatehouse, sql string, args ...any) T {
	t.Helper()
	var x T
	if err := g.Pool.QueryRow(t.Context(), sql, args...).Scan(&x); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return x
}

// newTask is a task of two fairness units.
func (g *gatehouse) newTask(tenant int, user, key string) admit.NewTask {
	return admit.NewTask{
		TaskID: uuid.Must(uuid.NewV7()), TenantID: g.tenants[tenant], User: user, Key: key,
		RequestHash: []byte(key), Answer: json.RawMessage(`{"queue_class": "MAIN"}`),
		Kind: control.KindVideo, Lane: "MAIN", Group: "video", Band: 2, ResourceClass: "NORMAL", Model: "clip", Route: "clip|720p",
		SlotUnits: 1, FairnessMilli: 2_000, CostMicro: 200_000, PriceMicro: 300_000, MeanSeconds: 60, P95Seconds: 150,
		BaseMilli: 1_500, GPUSeconds: 12, Bases: estimate.Bases{Seconds: 40, CostMicro: 90_000, GPUSeconds: 50},
		MaxAttempts: 3, PolicyVersion: 1, EstimateVersion: 1, Parameters: json.RawMessage(`{"prompt": "a fox"}`), Actor: "token:main",
	}
}

func (g *gatehouse) insert(t *testing.T, tasks ...admit.NewTask) []admit.Inserted {
	t.Helper()
	out, err := g.admit.InsertTasks(t.Context(), tasks)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// census counts everything that an admission may write, and holds the counters to the rows (I02).
func (g *gatehouse) census(t *testing.T) map[string]int64 {
	t.Helper()
	n := map[string]int64{}
	for _, table := range []string{"generation_task", "task_event", "outbox_event", "idempotency_key", "tenant_user"} {
		n[table] = one[int64](t, g, `SELECT count(*) FROM `+table)
	}
	for name, sql := range map[string]string{
		"tenant": `SELECT count(*) FROM tenant_runtime r FULL JOIN (SELECT tenant_id, count(*) n, sum(fairness_units) u FROM generation_task WHERE state = 'QUEUED' GROUP BY 1) t
			USING (tenant_id) WHERE coalesce(r.queued_tasks, 0) <> coalesce(t.n, 0) OR coalesce(r.queued_units, 0) <> coalesce(t.u, 0)`,
		"lane": `SELECT count(*) FROM tenant_lane_runtime r FULL JOIN (SELECT tenant_id, queue_class AS lane, count(*) n, sum(fairness_units) u FROM generation_task WHERE state = 'QUEUED' GROUP BY 1, 2) t
			USING (tenant_id, lane) WHERE coalesce(r.queued_tasks, 0) <> coalesce(t.n, 0) OR coalesce(r.queued_units, 0) <> coalesce(t.u, 0)`,
		"user": `SELECT count(*) FROM user_runtime r FULL JOIN (SELECT tenant_id, user_id, count(*) n FROM generation_task WHERE state = 'QUEUED' GROUP BY 1, 2) t
			USING (tenant_id, user_id) WHERE coalesce(r.queued_tasks, 0) <> coalesce(t.n, 0)`,
	} {
		if off := one[int64](t, g, sql); off != 0 {
			t.Errorf("I02: %d %s counters differ from the sums over queued tasks", off, name)
		}
	}
	return n
}

func TestAdmissionWritesAllOfATask(t *testing.T) {
	t.Parallel()
	g := newGatehouse(t, 1)
	ear, err := pgx.Connect(t.Context(), g.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ear.Close(context.Background()) }()
	if _, err := ear.Exec(t.Context(), "LISTEN "+control.NotifyQueue); err != nil {
		t.Fatal(err)
	}
	n := g.newTask(0, "小明", "k-1")
	n.DeadlineSeconds, n.Project, n.TraceParent = 600, "film", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	if out := g.insert(t, n); out[0].Err != nil || out[0].Stored != nil {
		t.Fatalf("%+v", out[0])
	}
	hint, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if note, err := ear.WaitForNotification(hint); err != nil || note.Payload != "video" {
		t.Errorf("hint: %+v %v", note, err)
	}
	got, err := facts.NewTasks(g.db).Task(t.Context(), n.TenantID, n.TaskID)
	if err != nil {
		t.Fatal(err)
	}
	if got.State != control.TaskQueued || got.User != "小明" || got.Lane != "MAIN" || got.Band != 2 || got.CostMilli != 2_000 || got.PriceMicro != 300_000 ||
		got.CostMicro != 200_000 || got.ActualMicro != -1 || got.MaxAttempts != 3 || got.Expected != time.Minute || got.Progress != -1 || got.Version != 0 || got.Project != "film" {
		t.Errorf("task: %+v", got)
	}
	if d := got.DeadlineAt.Sub(got.CreatedAt); d != 10*time.Minute || !got.QueuedSince.Equal(got.CreatedAt) || !got.EligibleAt.Equal(got.CreatedAt) {
		t.Errorf("deadline after %v, queued since %v of %v", d, got.QueuedSince, got.CreatedAt)
	}
	for what, sql := range map[string]string{
		"outbox":   `SELECT count(*) FROM outbox_event WHERE topic = 'queue' AND group_key = 'video' AND event_type = 'TaskQueued' AND aggregate_id = $1 AND payload = '{"version": 0}'`,
		"event":    `SELECT count(*) FROM task_event WHERE task_id = $1 AND type = 'TaskQueued' AND to_state = 'QUEUED' AND from_state IS NULL AND actor = 'token:main'`,
		"key":      `SELECT count(*) FROM idempotency_key WHERE task_id = $1 AND key = 'k-1'`,
		"bases":    `SELECT count(*) FROM generation_task WHERE task_id = $1 AND (base_units, expected_gpu_seconds, second_base, cost_base_micro, gpu_second_base) = (1500, 12, 40, 90000, 50)`,
		"the rest": `SELECT count(*) FROM generation_task WHERE task_id = $1 AND route = 'clip|720p' AND pool_group = 'video' AND trace_context LIKE '00-4bf%' AND idempotency_key = 'k-1' AND resource_class = 'NORMAL'`,
	} {
		if one[int64](t, g, sql, n.TaskID) != 1 {
			t.Errorf("%s is missing or wrong", what)
		}
	}
	plain := g.newTask(0, "u", "k-2") // an estimate without a factor and under the shipped bases says no more
	plain.BaseMilli, plain.GPUSeconds, plain.Bases = 0, 0, estimate.Bases{}
	g.insert(t, plain)
	if one[int64](t, g, `SELECT count(*) FROM generation_task WHERE task_id = $1 AND base_units IS NULL AND (expected_gpu_seconds, second_base, cost_base_micro, gpu_second_base) = (0, 30, 100000, 30)`, plain.TaskID) != 1 {
		t.Error("the shipped bases are not those of the row")
	}
	g.census(t)
}

func TestAdmissionRefusalsAreExactAndLeaveNothing(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		arrange func(t *testing.T, g *gatehouse, n *admit.NewTask)
		want    string // decision or code
		have    int64
	}{
		{"user full", func(t *testing.T, g *gatehouse, _ *admit.NewTask) { g.fill(t, 6, "u") }, string(admit.UserQueueFull), 6},
		{"tenant full of tasks", func(t *testing.T, g *gatehouse, _ *admit.NewTask) { g.fill(t, 10, "") }, string(admit.TenantQueueFull), 10},
		{"tenant full of units", func(t *testing.T, g *gatehouse, n *admit.NewTask) { g.fill(t, 8, ""); n.FairnessMilli = 24_001 }, string(admit.TenantQueueFull), 16_000},
		{"crowded lane, guaranteed room used", func(t *testing.T, g *gatehouse, n *admit.NewTask) {
			g.fill(t, 2, "")
			n.Guaranteed, n.Crowded = 2, admit.QueueFull(admit.LaneQueueFull, "lane", "MAIN", admit.UnitTasks, 100, 100, 1)
		}, string(admit.LaneQueueFull), 100},
		{"suspended", func(t *testing.T, g *gatehouse, _ *admit.NewTask) { g.do(t, `UPDATE tenant SET status = 'SUSPENDED'`) }, string(control.CodeForbidden), 0},
		{"blocked user", func(t *testing.T, g *gatehouse, _ *admit.NewTask) {
			g.fill(t, 1, "u")
			g.do(t, `UPDATE tenant_user SET status = 'BLOCKED'`)
		}, string(control.CodeForbidden), 0},
		{"blocked before his first task", func(t *testing.T, g *gatehouse, _ *admit.NewTask) {
			g.do(t, `INSERT INTO tenant_user (tenant_id, user_id, external_id, status) VALUES ($1, $1, 'u', 'BLOCKED')`, g.tenants[0])
		}, string(control.CodeForbidden), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := newGatehouse(t, 1)
			n := g.newTask(0, "u", "key")
			tc.arrange(t, g, &n)
			before := g.census(t)
			out := g.insert(t, n)
			var no *admit.Refusal
			got := string(control.CodeOf(out[0].Err))
			if errors.As(out[0].Err, &no) {
				got = string(no.Decision)
				if no.Have != tc.have {
					t.Errorf("have %d, want %d", no.Have, tc.have)
				}
			}
			if got != tc.want {
				t.Errorf("got %v, want %s", out[0].Err, tc.want)
			}
			if after := g.census(t); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("before %v after %v", before, after)
			}
		})
	}
}

// fill queues n tasks, of one user or each of another.
func (g *gatehouse) fill(t *testing.T, n int, user string) {
	t.Helper()
	var tasks []admit.NewTask
	for i := range n {
		name := user
		if name == "" {
			name = fmt.Sprint("filler-", i)
		}
		tasks = append(tasks, g.newTask(0, name, fmt.Sprint("fill-", i)))
	}
	for _, out := range g.insert(t, tasks...) {
		if out.Err != nil {
			t.Fatal(out.Err)
		}
	}
}

// A batch is decided on in its order: what fits goes in, the rest is told why, nobody else is touched.
func TestAdmissionOfABatchDropsOnlyWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	g := newGatehouse(t, 2)
	var tasks []admit.NewTask
	for i := range 14 {
		tasks = append(tasks, g.newTask(0, fmt.Sprint("u", i/4), fmt.Sprint("a", i)))
	}
	tasks = append(tasks, g.newTask(1, "other", "b"), g.newTask(1, "other", "b"))
	out := g.insert(t, tasks...)
	for i := range 14 {
		if full := i >= 10; (out[i].Err != nil) != full {
			t.Errorf("task %d: %v", i, out[i].Err)
		}
	}
	if out[14].Err != nil || control.CodeOf(out[15].Err) != control.CodeIdemBusy {
		t.Errorf("other tenant: %v; the same key twice in a batch: %v", out[14].Err, out[15].Err)
	}
	if n := g.census(t); n["generation_task"] != 11 || n["tenant_user"] != 4 {
		t.Errorf("census %v", n)
	}
	// A guaranteed room lets the second tenant in though the lane is crowded.
	n := g.newTask(1, "other", "c")
	n.Guaranteed, n.Crowded = 2, admit.QueueFull(admit.LaneQueueFull, "lane", "MAIN", admit.UnitTasks, 11, 11, 1)
	if out := g.insert(t, n); out[0].Err != nil {
		t.Errorf("below its guaranteed room: %v", out[0].Err)
	}
}

// D26: at no moment is there an event without its task. I02: caps hold exactly under eight writers.
func TestTrap_D26_I02_ConcurrentAdmissionsStopExactlyAtTheCap(t *testing.T) {
	t.Parallel()
	g := newGatehouse(t, 2)
	stop, watched := make(chan struct{}), make(chan int64)
	go func() {
		var orphans int64
		for {
			var n int64
			if err := g.Pool.QueryRow(context.Background(), `SELECT count(*) FROM outbox_event o WHERE NOT EXISTS (SELECT FROM generation_task t WHERE t.task_id = o.aggregate_id)`).Scan(&n); err != nil {
				n = -1 << 30
			}
			orphans += n
			select {
			case <-stop:
				watched <- orphans
				return
			default:
			}
		}
	}()
	var mu sync.Mutex
	accepted, refused := map[uuid.UUID]int{}, 0
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 6 {
				batch := []admit.NewTask{g.newTask(i%2, fmt.Sprint("u", (w+i)%4), fmt.Sprint(w, "-", i)), g.newTask((i+1)%2, fmt.Sprint("u", w%4), fmt.Sprint(w, "+", i))}
				out, err := g.admit.InsertTasks(context.Background(), batch)
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				mu.Lock()
				for k, o := range out {
					if o.Err == nil {
						accepted[batch[k].TenantID]++
					} else {
						refused++
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	close(stop)
	if orphans := <-watched; orphans != 0 {
		t.Errorf("D26: %d events were seen before their tasks", orphans)
	}
	for _, id := range g.tenants {
		if accepted[id] != 10 {
			t.Errorf("tenant %s: %d accepted, its cap is 10", id, accepted[id])
		}
	}
	if refused != 96-20 {
		t.Errorf("%d refused of 96", refused)
	}
	if n := g.census(t); n["generation_task"] != 20 || n["idempotency_key"] != 20 || n["outbox_event"] != 20 || n["tenant_user"] > 8 {
		t.Errorf("census %v", n)
	}
}

func TestAdmissionKeysUnderRace(t *testing.T) {
	t.Parallel()
	g := newGatehouse(t, 1)
	var mu sync.Mutex
	won, busy, replayed := 0, 0, 0
	var wg sync.WaitGroup
	for range 12 {
		n := g.newTask(0, "u", "one")
		wg.Go(func() {
			out, err := g.admit.InsertTasks(context.Background(), []admit.NewTask{n})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case control.CodeOf(out[0].Err) == control.CodeIdemBusy:
				busy++
			case out[0].Stored != nil && string(out[0].Stored.RequestHash) == "one":
				replayed++
			case out[0].Err == nil && out[0].Stored == nil:
				won++
			default:
				t.Errorf("%+v", out[0])
			}
		})
	}
	wg.Wait()
	if won != 1 || won+busy+replayed != 12 {
		t.Errorf("%d won, %d busy, %d replayed", won, busy, replayed)
	}
	if n := g.census(t); n["generation_task"] != 1 {
		t.Errorf("census %v", n)
	}
	stored, err := g.admit.StoredAnswer(t.Context(), g.tenants[0], "one")
	if err != nil || string(stored.RequestHash) != "one" {
		t.Errorf("%+v %v", stored, err)
	}
}

func TestAdmissionKeyInProgressIsBusy(t *testing.T) {
	t.Parallel()
	g := newGatehouse(t, 2)
	tx, err := g.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock(hashtextextended($1::text || ':k', 7206))`, g.tenants[0]); err != nil {
		t.Fatal(err)
	}
	out := g.insert(t, g.newTask(0, "u", "k"), g.newTask(1, "u", "k"))
	if control.CodeOf(out[0].Err) != control.CodeIdemBusy {
		t.Errorf("somebody else is deciding on this key: %+v", out[0])
	}
	if out[1].Err != nil {
		t.Errorf("the same key of another tenant: %v", out[1].Err)
	}
}

func TestTrap_D06_AdmissionRefusesAmountsThatAreNone(t *testing.T) {
	t.Parallel()
	g := newGatehouse(t, 1)
	for name, spoil := range map[string]func(*admit.NewTask){
		"negative fairness": func(n *admit.NewTask) { n.FairnessMilli = -5_000 },
		"zero fairness":     func(n *admit.NewTask) { n.FairnessMilli = 0 },
		"negative cost":     func(n *admit.NewTask) { n.CostMicro = -5 },
		"negative price":    func(n *admit.NewTask) { n.PriceMicro = -5 },
		"no slots":          func(n *admit.NewTask) { n.SlotUnits = 0 },
		"zero seconds":      func(n *admit.NewTask) { n.MeanSeconds = 0 },
		"NaN seconds":       func(n *admit.NewTask) { n.P95Seconds = n.P95Seconds - n.P95Seconds; n.P95Seconds /= n.P95Seconds },
	} {
		n := g.newTask(0, "u", name)
		spoil(&n)
		if _, err := g.admit.InsertTasks(t.Context(), []admit.NewTask{n}); err == nil {
			t.Errorf("%s was let in", name)
		}
	}
	if n := g.census(t); n["generation_task"] != 0 {
		t.Errorf("census %v", n)
	}
}

func TestPurgeKeysIsBoundedAndSparesTheYoung(t *testing.T) {
	t.Parallel()
	g := newGatehouse(t, 1)
	g.fill(t, 6, "")
	g.do(t, `UPDATE idempotency_key SET created_at = created_at - interval '8 days' WHERE key <> 'fill-0'`)
	for _, want := range []int64{3, 2, 0} {
		if got, err := g.admit.PurgeKeys(t.Context(), admit.KeyLifetime, 3); err != nil || got != want {
			t.Errorf("purged %d, want %d: %v", got, want, err)
		}
	}
	if left := one[string](t, g, `SELECT string_agg(key, ',') FROM idempotency_key`); left != "fill-0" {
		t.Errorf("left: %s", left)
	}
}
