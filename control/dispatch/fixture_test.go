package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"fairlane/control"
	"fairlane/control/dispatch"
	"fairlane/control/plan"
	"fairlane/control/provider"
	"fairlane/control/provider/simulated"
	"fairlane/control/schedule"
	"fairlane/store/facts"
	"fairlane/store/storetest"
)

const (
	lane  = "PAID_SHARED"
	group = "g"
	pool  = "provider:p:a:us:m"
)

// world is a real database, a real simulated provider behind real HTTP, and a dispatch service.
type world struct {
	t         *testing.T
	sql       *pgxpool.Pool
	db        *facts.DB
	tenant    uuid.UUID
	user      uuid.UUID
	service   *dispatch.Service
	transport *dispatch.Postgres
	cfg       simulated.Config
	journal   string
	callbacks string
	registry  *provider.Registry
	stop      func() // of the service
	listener  *facts.Listener
	providers []provider.Provider
}

type setup struct {
	provider simulated.Config
	settings dispatch.Settings
	// wrap may put something between dispatch and its adapter or facts.
	adapter  func(provider.Adapter) provider.Adapter
	change   func(*provider.Capabilities)
	attempts func(dispatch.Attempts) dispatch.Attempts
	idle     bool // the service is not started
}

// usual is a provider of one pool whose jobs take 100 ms and never fail, and a brisk dispatch.
func usual() setup {
	return setup{
		provider: simulated.Config{
			Seed: 1, Speed: 50, WebhookSecret: "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", HoldSeconds: 5,
			Models: []simulated.Model{{Code: "m", P50: 5, P95: 5, CostMicro: 420_000}},
			Profiles: []simulated.Profile{{Code: "p", Lookup: true, Signed: true,
				Pools: []simulated.Pool{{Account: "a", Model: "m", Concurrency: 100_000}}}},
		},
		settings: dispatch.Settings{Speed: 50, SubmitTimeout: time.Second, SubmitMargin: 100 * time.Millisecond, ReadTimeout: 2 * time.Second, Poll: 20 * time.Millisecond},
	}
}

func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	base := storetest.New(t)
	db, err := facts.Open(t.Context(), base.URL, "test", 16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := &world{t: t, sql: base.Pool, db: db, tenant: uuid.Must(uuid.NewV7()), user: uuid.Must(uuid.NewV7()), cfg: s.provider}
	w.seed()

	dir := t.TempDir()
	w.journal = simulated.JournalPath(dir)
	server, err := simulated.NewServer(s.provider, dir, quiet, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	running(t, func(ctx context.Context) error { return server.Run(ctx, l, nil) })
	client := provider.NewClient(provider.ClientConfig{Allow: provider.Loopback()})
	t.Cleanup(client.Close)
	for _, profile := range s.provider.Profiles {
		adapter, err := simulated.NewAdapter("http://"+l.Addr().String(), s.provider, profile, client)
		if err != nil {
			t.Fatal(err)
		}
		p := provider.Provider{Code: profile.Code, Capabilities: s.provider.Capabilities(profile), Adapter: adapter}
		if s.adapter != nil {
			p.Adapter = s.adapter(adapter)
		}
		if s.change != nil {
			s.change(&p.Capabilities)
		}
		w.providers = append(w.providers, p)
	}
	if w.registry, err = provider.NewRegistry(w.providers...); err != nil {
		t.Fatal(err)
	}

	w.listener = facts.NewListener(base.URL, quiet, control.NotifyDispatch)
	w.transport = dispatch.NewPostgres(facts.NewOutbox(db), w.listener.Subscribe(control.NotifyDispatch), 5*time.Second)
	running(t, w.listener.Run)
	w.serveCallbacks()
	w.service = w.newService(s)
	if !s.idle {
		w.start()
	}
	return w
}

func (w *world) start() { w.t.Helper(); w.stop = running(w.t, w.service.Run) }

var quiet = slog.New(slog.DiscardHandler)

func (w *world) newService(s setup) *dispatch.Service {
	w.t.Helper()
	attempts := facts.NewAttempts(w.db)
	cfg := dispatch.Config{
		Attempts: attempts, Checks: attempts, Callbacks: facts.NewCallbacks(w.db), Ender: facts.NewEndings(w.db),
		Transport: w.transport, Providers: w.registry, Lanes: func() []string { return []string{lane} },
		CallbackURL: func(code string, attempt uuid.UUID, token string) string {
			return fmt.Sprintf("%s/%s/%s/%s", w.callbacks, code, attempt, token)
		},
		Log: quiet, Settings: s.settings,
	}
	if s.attempts != nil {
		cfg.Attempts = s.attempts(attempts)
	}
	service, err := dispatch.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return service
}

func (w *world) serveCallbacks() {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{provider}/{attempt}/{token}", func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, dispatch.MaxCallback+1))
		id, idErr := uuid.Parse(r.PathValue("attempt"))
		if err != nil || idErr != nil {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		switch err := w.service.Receive(r.Context(), r.PathValue("provider"), id, r.PathValue("token"), r.Header, body); control.CodeOf(err) {
		case "":
			if err != nil {
				rw.WriteHeader(http.StatusInternalServerError)
			}
		case control.CodeUnauthorized:
			rw.WriteHeader(http.StatusUnauthorized)
		case control.CodeNotFound:
			rw.WriteHeader(http.StatusNotFound)
		default:
			rw.WriteHeader(http.StatusBadRequest)
		}
	})
	s := httptest.NewServer(mux)
	w.t.Cleanup(s.Close)
	w.callbacks = s.URL
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.sql.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) number(sql string, args ...any) (n int64) {
	w.t.Helper()
	if err := w.sql.QueryRow(w.t.Context(), sql, args...).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (w *world) text(sql string, args ...any) (s string) {
	w.t.Helper()
	if err := w.sql.QueryRow(w.t.Context(), sql, args...).Scan(&s); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return s
}

func (w *world) seed() {
	w.t.Helper()
	const plenty = 1_000_000
	w.exec(`INSERT INTO tenant (tenant_id, code, name, plan_code) VALUES ($1, 't', 'Tenant', 'pro')`, w.tenant)
	w.exec(`INSERT INTO tenant_user (tenant_id, user_id, external_id) VALUES ($1, $2, 'u')`, w.tenant, w.user)
	w.exec(`INSERT INTO tenant_scheduling_policy (tenant_id, service_class, weight, max_queued_tasks, max_queued_units, max_running_tasks,
		max_running_units, max_cost_per_minute, max_cost_per_day, reserved_units, burst_units, max_wait_seconds,
		user_max_queued_tasks, user_max_running_tasks, user_max_running_image, user_max_running_video, policy_version)
		VALUES ($1, $2, 1, 1000000, 1000000, 1000000, 1000000, 0, 0, 0, 0, 0, 1000000, 1000000, 1000000, 1000000, 1)`, w.tenant, lane)
	w.exec(`INSERT INTO tenant_runtime (tenant_id) VALUES ($1)`, w.tenant)
	w.exec(`INSERT INTO user_runtime (tenant_id, user_id) VALUES ($1, $2)`, w.tenant, w.user)
	w.exec(`INSERT INTO pool_group_account (pool_group, capacity_units, common_units, policy_version) VALUES ($1, $2, $2, 1)`, group, plenty)
	w.exec(`INSERT INTO lane_account (lane, pool_group, reserved_units, policy_version) VALUES ($1, $2, 0, 1)`, lane, group)
	w.exec(`INSERT INTO resource_pool (resource_key, kind, pool_group, provider, provider_account, model_code, capacity_units, policy_version)
		VALUES ($1, 'PROVIDER', $2, 'p', 'a', 'm', $3, 1)`, pool, group, plenty)
	w.exec(`INSERT INTO resource_pool_shard (resource_key, shard_no, capacity_units) VALUES ($1, 0, $2)`, pool, plenty)
}

// queue puts n tasks into the queue as an admission does.
func (w *world) queue(n int, maxAttempts int) []uuid.UUID {
	w.t.Helper()
	ids := make([]uuid.UUID, n)
	for i := range ids {
		ids[i] = uuid.Must(uuid.NewV7())
	}
	err := w.db.Tx(w.t.Context(), func(tx pgx.Tx) error {
		for _, step := range []struct {
			sql  string
			args []any
		}{
			{`UPDATE tenant_runtime SET queued_tasks = queued_tasks + $2::bigint, queued_units = queued_units + 1000 * $2::bigint WHERE tenant_id = $1`, []any{w.tenant, n}},
			{`INSERT INTO tenant_lane_runtime AS r (tenant_id, lane, queued_tasks, queued_units) VALUES ($1, $2, $3::bigint, 1000 * $3::bigint)
				ON CONFLICT (tenant_id, lane) DO UPDATE SET queued_tasks = r.queued_tasks + $3::bigint, queued_units = r.queued_units + 1000 * $3::bigint`, []any{w.tenant, lane, n}},
			{`UPDATE user_runtime SET queued_tasks = queued_tasks + $3 WHERE tenant_id = $1 AND user_id = $2`, []any{w.tenant, w.user, n}},
			{`INSERT INTO generation_task (task_id, tenant_id, user_id, kind, queue_class, pool_group, priority_band, resource_class, state, model_code,
				route, fairness_units, provider_slot_units, estimated_cost_units, expected_seconds, expected_p95_seconds, enqueue_at, queued_since,
				next_eligible_at, max_attempts, policy_version, estimate_version, idempotency_key)
				SELECT id, $2, $3, 'VIDEO', $4, $5, 2, 'video', 'QUEUED', 'm', 'route', 1000, 1, 500000, 0.1, 0.2, clock_timestamp(), clock_timestamp(),
				clock_timestamp(), $6, 1, 1, id::text FROM unnest($1::uuid[]) id`, []any{ids, w.tenant, w.user, lane, group, maxAttempts}},
		} {
			if _, err := tx.Exec(w.t.Context(), step.sql, step.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return ids
}

// claim claims every task that is queued and eligible; timeout is the deadline of the attempts.
func (w *world) claim(timeout time.Duration) []schedule.Claimed {
	w.t.Helper()
	rows, err := w.sql.Query(w.t.Context(), `SELECT task_id, version, tenant_id, user_id, kind, queue_class, pool_group, provider_slot_units, fairness_units
		FROM generation_task WHERE state = 'QUEUED' AND next_eligible_at <= clock_timestamp() LIMIT 200`)
	if err != nil {
		w.t.Fatal(err)
	}
	var starts []schedule.ClaimStart
	s := schedule.ClaimStart{Start: plan.Start{Pool: pool, Account: control.AccountCommon}, Provider: "p", ProviderAccount: "a", AttemptTimeout: timeout}
	if _, err := pgx.ForEachRow(rows, []any{&s.TaskID, &s.TaskVersion, &s.TenantID, &s.UserID, &s.Kind, &s.Lane, &s.Group, &s.SlotUnits, &s.CostMilli}, func() error {
		starts = append(starts, s)
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	if len(starts) == 0 {
		return nil
	}
	out, err := facts.NewClaims(w.db).Claim(w.t.Context(), schedule.Claim{PoolGroup: group, PolicyVersion: 1, Starts: starts})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// one queues and claims one task.
func (w *world) one() (task uuid.UUID, ref dispatch.Ref) {
	w.t.Helper()
	w.queue(1, 3)
	got := w.claim(time.Hour)
	if len(got) != 1 || got[0].Refused != "" {
		w.t.Fatalf("claimed %+v", got)
	}
	return got[0].TaskID, dispatch.Ref{AttemptID: got[0].AttemptID, FencingToken: got[0].FencingToken}
}

func (w *world) attemptState(ref dispatch.Ref) control.AttemptState {
	w.t.Helper()
	return control.AttemptState(w.text(`SELECT state FROM task_attempt WHERE attempt_id = $1`, ref.AttemptID))
}

func (w *world) taskState(task uuid.UUID) control.TaskState {
	w.t.Helper()
	return control.TaskState(w.text(`SELECT state FROM generation_task WHERE task_id = $1`, task))
}

// eventually asks until ask is content.
func (w *world) eventually(what string, ask func() bool) {
	w.t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	bound := time.After(60 * time.Second)
	for !ask() {
		select {
		case <-ticker.C:
		case <-bound:
			w.t.Fatalf("not within 60 s: %s; %+v", what, w.service.Counts())
		}
	}
}

func (w *world) becomes(task uuid.UUID, state control.TaskState) {
	w.t.Helper()
	w.eventually(string("task "+state), func() bool { return w.taskState(task) == state })
}

// submits is the provider's word on how often each attempt was submitted.
func (w *world) submits() map[string]int {
	w.t.Helper()
	counts, err := simulated.SubmitsByAttempt(w.journal)
	if err != nil {
		w.t.Fatal(err)
	}
	return counts
}

// once fails when any attempt was taken on more than once.
func (w *world) once() {
	w.t.Helper()
	for attempt, n := range w.submits() {
		if n != 1 {
			w.t.Errorf("attempt %s was submitted %d times", attempt, n)
		}
	}
}

// held is how many slot units the pool counts.
func (w *world) held() int64 {
	w.t.Helper()
	return w.number(`SELECT sum(used_units) FROM resource_pool_shard`)
}

// clean fails when a rule that a database can show is broken.
func (w *world) clean() {
	w.t.Helper()
	found, err := facts.NewCheck(w.db).Run(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range found {
		w.t.Errorf("%s %s: %s", f.Invariant, f.Object, f.Detail)
	}
}

// scripted is an adapter whose answers a test decides; what it does not decide goes to the real one.
type scripted struct {
	provider.Adapter
	mu      sync.Mutex
	submit  func(context.Context, provider.Submission) (provider.Answer, bool)
	status  func(context.Context, provider.Job) (provider.Status, error, bool)
	lookup  func(context.Context, provider.Job) (provider.Status, error, bool)
	submits int
	cancels int
	polls   int
}

var errSilent = errors.New("no answer")

func (s *scripted) Submit(ctx context.Context, sub provider.Submission) provider.Answer {
	s.mu.Lock()
	s.submits++
	f := s.submit
	s.mu.Unlock()
	if f != nil {
		if a, ok := f(ctx, sub); ok {
			return a
		}
	}
	return s.Adapter.Submit(ctx, sub)
}

func (s *scripted) Status(ctx context.Context, job provider.Job) (provider.Status, error) {
	s.mu.Lock()
	s.polls++
	f := s.status
	s.mu.Unlock()
	if f != nil {
		if st, err, ok := f(ctx, job); ok {
			return st, err
		}
	}
	return s.Adapter.Status(ctx, job)
}

func (s *scripted) Lookup(ctx context.Context, job provider.Job) (provider.Status, error) {
	s.mu.Lock()
	f := s.lookup
	s.mu.Unlock()
	if f != nil {
		if st, err, ok := f(ctx, job); ok {
			return st, err
		}
	}
	return s.Adapter.Lookup(ctx, job)
}

func (s *scripted) Cancel(ctx context.Context, job provider.Job) error {
	s.mu.Lock()
	s.cancels++
	s.mu.Unlock()
	return s.Adapter.Cancel(ctx, job)
}

func (s *scripted) seen() (submits, polls, cancels int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.submits, s.polls, s.cancels
}

// script puts a scripted adapter into a setup.
func script(s *setup) *scripted {
	made := &scripted{}
	s.adapter = func(real provider.Adapter) provider.Adapter { made.Adapter = real; return made }
	return made
}
