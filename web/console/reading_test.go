package console_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/audit"
	"fairlane/control/monitor"
	"fairlane/policy"
	"fairlane/policy/access"
	"fairlane/store/facts"
	"fairlane/web/console"
)

// reading are the handlers of the reading pages over a monitor that runs as long as the test.
func (s *site) reading(log *slog.Logger) map[string]gin.HandlerFunc {
	lists := facts.NewMonitor(s.db)
	s.monitor = monitor.New(monitor.Config{Log: log, Details: lists, MinGap: 10 * time.Millisecond, TenantGap: 10 * time.Millisecond}, lists, s.active)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.monitor.Run(ctx) })
	s.t.Cleanup(func() { cancel(); running.Wait() })
	pages, err := console.NewReading(console.ReadingConfig{Shown: s.monitor, Lists: lists, Canceler: facts.NewCancels(s.db), Present: lists, Explains: s, Active: s.active, Log: log})
	check(s.t, err)
	return pages.Handlers()
}

// active is the head at once, in place of a process that follows it.
func (s *site) active() (*policy.Document, int64) {
	head, err := s.policies.Head(context.Background())
	if err != nil {
		return nil, 0
	}
	return head.Document, head.Number
}

// shown waits until the monitor has read something that is.
func (s *site) shown(is func(*monitor.State) bool) {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !is(s.monitor.State()) {
		s.monitor.Look()
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatalf("the monitor never shows it: %+v", s.monitor.State().Overview)
		}
	}
}

func (s *site) run(sql string, args ...any) {
	s.t.Helper()
	_, err := s.database.Pool.Exec(context.Background(), sql, args...)
	check(s.t, err)
}

func taskID(i int) uuid.UUID {
	return uuid.MustParse(fmt.Sprintf("01900000-0000-7000-8000-%012x", i))
}

// queueTasks gives a tenant queued tasks with consecutive ids.
func (s *site) queueTasks(tenant uuid.UUID, lane string, from, n int) {
	s.t.Helper()
	s.run(`INSERT INTO tenant_user (tenant_id, user_id, external_id) VALUES ($1, $1, 'ann') ON CONFLICT DO NOTHING`, tenant)
	s.run(`INSERT INTO generation_task (task_id, tenant_id, user_id, kind, queue_class, pool_group, priority_band, resource_class, state, model_code, route,
			fairness_units, provider_slot_units, estimated_cost_units, expected_seconds, expected_p95_seconds, enqueue_at, queued_since, next_eligible_at,
			policy_version, estimate_version, idempotency_key, parameters)
		SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, $1, $1, 'VIDEO', $2, 'default', 3, 'STANDARD', 'QUEUED', 'clip', 'r',
			2000, 1, 500000, 30, 60, now(), now() - interval '72 seconds', now(), 1, 1, i::text, '{"prompt": "a <b>kite</b> 风筝"}'
		FROM generate_series($3::int, $3::int + $4::int - 1) i`, tenant, lane, from, n)
	s.run(`INSERT INTO tenant_runtime (tenant_id, queued_tasks, queued_units) VALUES ($1, $2, $2::bigint * 2000)
		ON CONFLICT (tenant_id) DO UPDATE SET queued_tasks = tenant_runtime.queued_tasks + $2, queued_units = tenant_runtime.queued_units + $2::bigint * 2000`, tenant, n)
	s.run(`INSERT INTO tenant_lane_runtime (tenant_id, lane, queued_tasks, queued_units) VALUES ($1, $2, $3, $3::bigint * 2000)
		ON CONFLICT (tenant_id, lane) DO UPDATE SET queued_tasks = tenant_lane_runtime.queued_tasks + $3, queued_units = tenant_lane_runtime.queued_units + $3::bigint * 2000`, tenant, lane, n)
	s.run(`INSERT INTO user_runtime (tenant_id, user_id, queued_tasks) VALUES ($1, $1, $2)
		ON CONFLICT (tenant_id, user_id) DO UPDATE SET queued_tasks = user_runtime.queued_tasks + $2`, tenant, n)
}

var readingPages = []string{"/", "/lanes", "/pools", "/tenants", "/tasks", "/health", "/wall", "/tasks/" + taskID(1).String()}

func TestE11_Trap_D56_ReadingPagesInBothLanguagesWithHostileNames(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.queueTasks(s.tenants[1].ID, "PAID_SHARED", 1, 3)
	s.shown(func(m *monitor.State) bool {
		return m.Overview.QueuedTasks == 3 && len(m.Tenants) == 1 && len(m.Health) > 0
	})
	b := s.as(access.Operator)
	for lang, words := range map[string][]string{"en": {"Overview", "Oldest wait", "Nothing to show yet"}, "zh": {"总览", "最长等待", "暂无内容"}} {
		b.cookies["fl_lang"] = lang
		all := ""
		for _, target := range readingPages {
			a := b.get(target).want(t, http.StatusOK)
			if strings.Contains(a.body, "<img src=x") {
				t.Errorf("%s shows a name as markup", target)
			}
			if strings.Contains(a.body, " style=") || regexp.MustCompile(`\son[a-z]+=`).MatchString(strings.ReplaceAll(a.body, "onerror=alert(1)", "")) {
				t.Errorf("%s has something inline, which the policy of the page forbids (E24)", target)
			}
			all += a.body
		}
		for _, w := range words {
			if !strings.Contains(all, w) {
				t.Errorf("%s: no page says %q", lang, w)
			}
		}
	}
	b.cookies["fl_lang"] = "en"
	// Rendered first: the numbers are there without any script.
	b.get("/").want(t, http.StatusOK, `data-topic="lanes" data-key="PAID_SHARED"`, `<span data-field="queued_tasks" data-as="int">3</span>`,
		`data-live="overview lanes pools tenants"`, "&lt;img src=x", "1 m 1")
	b.get("/pools").want(t, http.StatusOK, "clip · north acct-1", "/pools/provider:south:a%2F1:eu:clip")
}

func TestTenantPagesGoOnBehindTheLastRowWhateverTheFilter(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for i := range 120 {
		s.run(`INSERT INTO tenant (tenant_id, code, name, plan_code) VALUES ($1, $2, 'Same & 名', 'pro')`, uuid.New(), fmt.Sprintf("z%03d", i))
	}
	b := s.as(access.Viewer)
	next := regexp.MustCompile(`href="([^"]*after=[^"]*)" rel="next"`)
	row := regexp.MustCompile(`<div class="muted small code">(z\d+)</div>`)
	seen, target := map[string]bool{}, "/tenants?q=%26+%E5%90%8D"
	for range 5 {
		a := b.get(target).want(t, http.StatusOK)
		for _, m := range row.FindAllStringSubmatch(a.body, -1) {
			if seen[m[1]] {
				t.Errorf("%s twice", m[1])
			}
			seen[m[1]] = true
		}
		m := next.FindStringSubmatch(a.body)
		if m == nil {
			break
		}
		target = strings.ReplaceAll(m[1], "&amp;", "&")
	}
	if len(seen) != 120 {
		t.Errorf("%d tenants on all pages, want 120", len(seen))
	}
	for _, bad := range []string{"/tenants?after=x", "/tenants?after=%00", "/tenants?after=AAAA", "/tasks?before=1"} {
		b.get(bad).want(t, http.StatusUnprocessableEntity)
	}
	for _, odd := range []string{"/tenants?q=%25_%5C", "/tenants?q=%00%01", "/tenants?lane=nope", "/tenants?q=" + strings.Repeat("x", 3000), "/tasks?state=nope&lane=%27&model=%22", "/tasks?tenant=nobody"} {
		b.get(odd).want(t, http.StatusOK)
	}
}

func TestI13_WhoMaySeeOneLaneSeesNoOthersTenants(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.run(`UPDATE access_grant SET tenants = $2 WHERE operator_id = $1`, s.people[access.Viewer], []uuid.UUID{s.tenants[0].ID})
	s.run(`UPDATE access_head SET version = version + 1`)
	check(t, s.enforcer.Refresh(t.Context()))
	s.queueTasks(s.tenants[0].ID, "PAID_SHARED", 1, 1)
	s.queueTasks(s.tenants[2].ID, "STANDARD", 2, 1)
	s.shown(func(m *monitor.State) bool { return len(m.Tenants) == 2 })
	b := s.as(access.Viewer)
	for _, target := range []string{"/", "/lanes", "/pools", "/tenants", "/tasks", "/health", "/wall"} {
		a := b.get(target).want(t, http.StatusOK)
		if strings.Contains(a.body, "Gamma") || strings.Contains(a.body, s.tenants[2].ID.String()) || strings.Contains(a.body, taskID(2).String()) {
			t.Errorf("%s shows a tenant out of reach", target)
		}
		if strings.Contains(a.body, `data-live="overview lanes pools tenants"`) || strings.Contains(a.body, `data-live="tenants"`) {
			t.Errorf("%s asks for live rows of all tenants", target)
		}
	}
	b.get("/tenants").want(t, http.StatusOK, "Acme 工作室")
	b.get("/tasks").want(t, http.StatusOK, taskID(1).String())
	b.get("/tasks/"+taskID(1).String()).want(t, http.StatusOK)
	b.get("/tasks/"+taskID(2).String()).want(t, http.StatusNotFound)
	b.get("/tasks/nonsense").want(t, http.StatusNotFound)
}

func TestCancelOfATaskAsksForAReasonAndIsAudited(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.queueTasks(s.tenants[0].ID, "PAID_SHARED", 1, 2)
	at := "/tasks/" + taskID(1).String()
	if a := s.as(access.Viewer).get(at).want(t, http.StatusOK); strings.Contains(a.body, "/cancel") {
		t.Error("a viewer is offered to cancel")
	}
	s.as(access.Viewer).post(at+"/cancel", "reason", "x").want(t, http.StatusForbidden)
	b := s.as(access.Operator)
	b.get(at).want(t, http.StatusOK, "Cancel the task", "a &lt;b&gt;kite", "风筝")
	b.post(at+"/cancel", "reason", " \n ").want(t, http.StatusUnprocessableEntity, `aria-invalid="true"`)
	b.post(at+"/cancel", "reason", strings.Repeat("x", 5000)).want(t, http.StatusUnprocessableEntity, "xxxx")
	if a := b.post(at+"/cancel", "reason", "客户要求"); a.status != http.StatusSeeOther {
		t.Fatalf("%d\n%s", a.status, a.body)
	}
	b.get(at+"?canceled=yes").want(t, http.StatusOK, "The cancel was requested", "canceled", "operator")
	if a := b.post(at+"/cancel", "reason", "again"); a.status != http.StatusSeeOther || !strings.Contains(a.header.Get("Location"), "canceled=over") {
		t.Errorf("again: %d %s", a.status, a.header.Get("Location"))
	}
	rows, err := facts.NewAudits(s.db).List(t.Context(), audit.Filter{Action: audit.TaskCancel}, 0, 10)
	check(t, err)
	if len(rows) != 1 || rows[0].Reason != "客户要求" || rows[0].ObjectID != taskID(1).String() || rows[0].Actor.SourceAddress != "192.0.2.7" {
		t.Errorf("audit: %+v", rows)
	}
	b.post("/tasks/"+uuid.NewString()+"/cancel", "reason", "x").want(t, http.StatusNotFound)
}
