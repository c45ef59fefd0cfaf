package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"fairlane/control"
	"fairlane/control/admit"
	"fairlane/control/explain"
	"fairlane/policy"
	"fairlane/policy/access"
	"fairlane/store/facts"
	"fairlane/store/storetest"
	"fairlane/web/api"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	goleak.VerifyTestMain(m)
}

// spec is the description that the handlers serve, and a router over it.
var spec = sync.OnceValues(func() (*openapi3.T, routers.Router) {
	doc, err := openapi3.NewLoader().LoadFromData(api.Spec)
	if err != nil {
		panic(err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		panic(err)
	}
	return doc, router
})

// desk is the API over real facts: two tenants, a token each.
type desk struct {
	*storetest.Database
	policy  *policy.Document
	version int64
	tenants [2]uuid.UUID
	tokens  [2]string
	engine  *gin.Engine
}

func (d *desk) Current() *policy.Version {
	return &policy.Version{Number: 3 + d.version, Document: d.policy}
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{Database: storetest.New(t), policy: document()}
	db, err := facts.Open(t.Context(), d.URL, "api", 6)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	tokens := facts.NewTokens(db, nil)
	for i, code := range []string{"acme", "other"} {
		id := uuid.Must(uuid.NewV7())
		d.tenants[i] = id
		d.do(t, `INSERT INTO tenant (tenant_id, code, name, plan_code) VALUES ($1, $2, $2, 'pro')`, id, code)
		d.do(t, `INSERT INTO tenant_scheduling_policy VALUES ($1, 'MAIN', 1, 2000, 100000, 100, 100, 0, 0, 0, 0, 0, 1000, 2, 2, 1, 3)`, id)
		if d.tokens[i], _, err = tokens.Create(t.Context(), id, code, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	a := api.New(api.Config{
		MaxBody: func() int64 { return d.policy.Limits.MaxBodyBytes },
		Tokens:  tokens, Tasks: facts.NewTasks(db), Cancel: facts.NewCancels(db),
		Explains: explain.New(facts.NewExplains(db), d, facts.NewTenants(db), nil),
		Gate:     admit.NewGate(admit.Config{Policies: d, Store: facts.NewAdmissions(db), Loads: facts.NewLoads(db, nil, time.Nanosecond)}),
	})
	d.engine = gin.New()
	d.engine.UseRawPath = true // as the product's engine does
	d.engine.Use(func(c *gin.Context) {
		c.Request = c.Request.WithContext(access.WithActor(c.Request.Context(), control.Actor{Name: "anonymous", SourceAddress: "192.0.2.1", RequestID: "request-1"}))
	})
	h := a.Handlers()
	d.engine.GET("/v1/openapi.yaml", h["api.openapi"])
	v1 := d.engine.Group("/v1/tasks", a.Authenticate())
	v1.POST("", h["api.task.create"])
	v1.GET("", h["api.task.list"])
	v1.GET("/:id", h["api.task.get"])
	v1.GET("/:id/why", h["api.task.why"])
	v1.POST("/:id/cancel", h["api.task.cancel"])
	return d
}

func document() *policy.Document {
	return &policy.Document{
		Scheduling: policy.Scheduling{
			BaseQuantumUnits: 4, BurstRounds: 20, AgingStepSeconds: 300, AgingCap: 3, FitScan: 16, MaxSkips: 4, ProviderSecondBase: 30, CostBaseMicro: 100_000, GPUSecondBase: 30,
		},
		Lanes: []policy.Lane{{
			Code: "MAIN", Weight: 1, AdmissionOpen: true, WaitTargetSeconds: 60, MaxQueuedTasks: 5_000, MaxQueuedUnits: 1_000_000,
			MaxAttempts: 3, Accounts: []policy.LaneAccount{{PoolGroup: "video", ReservedUnits: 100}},
		}},
		PoolGroups: []policy.PoolGroup{{Code: "video"}},
		Plans: []policy.Plan{{Code: "pro", Settings: policy.TenantSettings{
			Lane: "MAIN", Weight: 1, MaxRunningTasks: 100, MaxRunningUnits: 100, MaxQueuedTasks: 2_000, MaxQueuedUnits: 100_000,
			SubmitsPerMinute: 100_000, UserSubmitsPerMin: 100_000, UserMaxQueuedTasks: 1_000, Band: 2,
		}}},
		Models: []policy.Model{{
			Code: "clip", Kind: "VIDEO", ResourceClass: "NORMAL", Resolutions: []string{"720p", "1080p"}, Seconds: []int64{5, 10},
			SlotUnits: 1, MeanSeconds: 60, P95Seconds: 150, CostMicro: 400_000, PriceMicro: 500_000, Enabled: true,
		}},
		Pools:    []policy.Pool{{Key: "provider:a:clip", Kind: policy.PoolProvider, Group: "video", Model: "clip", CapacityUnits: 100}},
		Limits:   policy.Limits{MaxBodyBytes: 1 << 20, MaxQueuedTasks: 10_000, MaxQueuedUnits: 1_000_000, GuaranteedQueue: 10, SafeUtilisation: 0.75},
		Switches: policy.Switches{AdmissionOpen: true, SchedulingRunning: true},
	}
}

func (d *desk) do(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := d.Pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// written counts all rows that a submission may write.
func (d *desk) written(t *testing.T) (n int64) {
	t.Helper()
	if err := d.Pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM generation_task) + (SELECT count(*) FROM idempotency_key) + (SELECT count(*) FROM task_event)
		+ (SELECT count(*) FROM outbox_event) + (SELECT count(*) FROM tenant_user) + (SELECT count(*) FROM user_runtime)`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// ask is a request; zero fields take what makes it a good submission of the first tenant.
type ask struct {
	method, path string
	token        string
	body         string
	header       map[string]string // "" leaves a header out
	unsized      bool              // the length is not announced
}

// reply is an answer, read.
type reply struct {
	status int
	header http.Header
	text   string
	json   map[string]any
}

func (r reply) code() string { s, _ := r.json["code"].(string); return s }

func freshKey() string { return uuid.NewString() }

// send performs the request and holds the answer, whatever it is, to the description. A request that
// was taken must be one that the description allows.
func (d *desk) send(t *testing.T, a ask) reply {
	t.Helper()
	r := d.request(a)
	body := a.body
	rec := httptest.NewRecorder()
	d.engine.ServeHTTP(rec, r)
	out := reply{status: rec.Code, header: rec.Header(), text: rec.Body.String()}
	if strings.Contains(rec.Header().Get("Content-Type"), "json") {
		if err := json.Unmarshal(rec.Body.Bytes(), &out.json); err != nil {
			t.Fatalf("%s %s: answer %q: %v", r.Method, r.URL, rec.Body, err)
		}
	}
	if problem := rec.Header().Get("Content-Type") == "application/problem+json"; problem != (rec.Code >= 400) {
		t.Fatalf("%s %s: %d with %s: %.200s", r.Method, r.URL, rec.Code, rec.Header().Get("Content-Type"), rec.Body)
	}
	_, router := spec()
	route, params, err := router.FindRoute(r)
	if err != nil {
		if rec.Code < 400 {
			t.Fatalf("%s %s is not described: %v", r.Method, r.URL, err)
		}
		return out
	}
	r.Body = io.NopCloser(strings.NewReader(body))
	options := &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}
	input := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: options}
	if rec.Code < 400 {
		if err := openapi3filter.ValidateRequest(context.Background(), input); err != nil {
			t.Errorf("%s %s was taken, but the description forbids it: %v\n%.300s", r.Method, r.URL, err, body)
		}
	}
	answer := &openapi3filter.ResponseValidationInput{RequestValidationInput: input, Status: rec.Code, Header: rec.Header(), Options: options}
	answer.SetBodyBytes(rec.Body.Bytes())
	if err := openapi3filter.ValidateResponse(context.Background(), answer); err != nil {
		t.Errorf("%s %s: the answer %d is not as described: %v\n%.600s", r.Method, r.URL, rec.Code, err, rec.Body)
	}
	return out
}

func (d *desk) request(a ask) *http.Request {
	if a.method == "" {
		a.method = http.MethodPost
	}
	if a.path == "" {
		a.path = "/v1/tasks"
	}
	if a.token == "" {
		a.token = d.tokens[0]
	}
	r := httptest.NewRequest(a.method, a.path, nil)
	r.Header.Set("Authorization", "Bearer "+a.token)
	if a.method == http.MethodPost && a.path == "/v1/tasks" {
		r.Header.Set("Idempotency-Key", `"`+freshKey()+`"`)
		r.Header.Set("X-Fairlane-User", "u-1")
		r.Header.Set("Content-Type", "application/json")
	}
	if a.body != "" {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader([]byte(a.body))), int64(len(a.body))
		if a.unsized {
			r.ContentLength = -1
		}
	}
	for name, value := range a.header {
		r.Header.Del(name)
		if value != "" {
			r.Header[http.CanonicalHeaderKey(name)] = strings.Split(value, "\x1e")
		}
	}
	return r
}

const good = `{"model": "clip", "prompt": "a fox in the snow"}`

// submit makes a task and returns its id.
func (d *desk) submit(t *testing.T) string {
	t.Helper()
	out := d.send(t, ask{body: good})
	if out.status != http.StatusAccepted {
		t.Fatalf("%d %s", out.status, out.text)
	}
	return out.json["task_id"].(string)
}

// drop takes the database away from under the API.
func (d *desk) drop(t *testing.T) bool {
	t.Helper()
	u, err := url.Parse(d.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/postgres"
	conn, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), `DROP DATABASE `+d.Name+` WITH (FORCE)`); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_database WHERE datname = $1`, d.Name).Scan(&left); err != nil {
		t.Fatal(err)
	}
	return left == 0
}
