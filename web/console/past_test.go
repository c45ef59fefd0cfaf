package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/explain"
	"fairlane/control/monitor"
	"fairlane/control/plan"
	"fairlane/policy/access"
	"fairlane/store/facts"
)

// borrowed makes a queued task run on units of a lender, due in that time; below 0: it is late.
func (s *site) borrowed(task uuid.UUID, lender string, due time.Duration, state control.AttemptState) {
	s.t.Helper()
	attempt := uuid.New()
	s.run(`INSERT INTO task_attempt (attempt_id, task_id, attempt_no, provider, provider_account, resource_key, provider_request_key, callback_token, state, fencing_token, lane, policy_version, deadline_at)
		VALUES ($1::uuid, $2, 1, 'north', 'acct-1', $4, $1::uuid::text, 'tok', $3, 7, 'STANDARD', 1, now() + interval '1 hour')`, attempt, task, state, northPool)
	s.run(`INSERT INTO resource_reservation (reservation_id, task_id, attempt_id, resource_key, shard_no, reserved_units, state, tenant_id, user_id, kind, lane, pool_group,
			account, lender_lane, policy_version, lease_until, fencing_token, borrowed_at, borrowed_from, borrow_due_at)
		SELECT gen_random_uuid(), task_id, $2, $5, 0, 2, 'ACTIVE', tenant_id, user_id, 'VIDEO', queue_class, 'default', 'BORROWED', $3, 1, now(), 7,
			now() - interval '10 minutes', $3, now() + make_interval(secs => $4) FROM generation_task WHERE task_id = $1`, task, attempt, lender, due.Seconds(), northPool)
}

const northPool = "provider:north:acct-1:eu:clip"

// only limits the operator's rights to one tenant.
func (s *site) only(role access.Role, tenant uuid.UUID) *browser {
	s.t.Helper()
	s.run(`UPDATE access_grant SET tenants = ARRAY[$1::uuid] WHERE operator_id = $2`, tenant, s.people[role])
	s.run(`UPDATE access_head SET version = version + 1`)
	check(s.t, s.enforcer.Refresh(s.t.Context()))
	return s.as(role)
}

func TestI13_LanePageShowsLoansByTenantWithinReachAndOthersInSums(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	acme, beta := s.tenants[0].ID, s.tenants[1].ID
	s.queueTasks(acme, "STANDARD", 1, 2)
	s.queueTasks(beta, "STANDARD", 10, 2)
	s.borrowed(taskID(1), "PAID_SHARED", 4*time.Minute, control.AttemptAccepted)
	s.borrowed(taskID(10), "PAID_SHARED", 3*time.Minute, control.AttemptAccepted)
	s.borrowed(taskID(11), "PAID_SHARED", -2*time.Minute, control.AttemptUnknown)
	for _, target := range []string{"/lanes/PAID_SHARED", "/lanes/PAID_SHARED/past"} {
		s.as(access.Viewer).get(target).want(t, http.StatusOK, "Acme 工作室", "&lt;img src=x", taskID(11).String(), "submission unknown")
	}
	b := s.only(access.Operator, acme)
	for _, target := range []string{"/lanes/PAID_SHARED", "/lanes/PAID_SHARED/past?span=3h", "/lanes/STANDARD/past"} {
		a := b.get(target).want(t, http.StatusOK, "Acme 工作室", "other tenants")
		for _, foreign := range []string{"img src=x", "beta", taskID(11).String(), taskID(10).String()} {
			if strings.Contains(a.body, foreign) {
				t.Errorf("%s shows %s to who may see acme alone", target, foreign)
			}
		}
	}
	a := b.get("/lanes/STANDARD/past").want(t, http.StatusOK, "Borrowed from")
	if strings.Contains(a.body, "<html") {
		t.Error("a part is a whole page")
	}
	b.get("/lanes/NONE/past").want(t, http.StatusNotFound)
	if got := b.get("/tenants/beta/past").status; got != http.StatusForbidden {
		t.Errorf("the past of a foreign tenant: %d", got)
	}
	b.get("/tenants/acme/past?span=6h").want(t, http.StatusOK, `href="/tenants/acme?span=2d"`)
	b.get("/tenants/nobody/past").want(t, http.StatusNotFound)
	b.get("/tasks/"+taskID(10).String()+"/now").want(t, http.StatusNotFound)
}

func TestPastOfTenantsShowsSharesWaitsAndPlace(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	acme := s.tenants[0].ID
	s.queueTasks(acme, "PAID_SHARED", 1, 3)
	lane := "PAID_SHARED"
	check(t, s.database.Pool.QueryRow(t.Context(), `SELECT service_class FROM tenant_scheduling_policy WHERE tenant_id = $1`, acme).Scan(&lane))
	waits := make([]int64, len(monitor.WaitBounds)+1)
	waits[3] = 4
	s.run(`INSERT INTO tenant_sample SELECT $1, $2, 60, date_bin('1 minute', now(), 'epoch') - i * interval '1 minute', 3000, 12000, 6000, 1500, 2, 3, 4, $3 FROM generate_series(1, 5) i`, acme, lane, waits)
	s.run(`INSERT INTO tenant_lane_runtime (tenant_id, lane, queued_tasks, debt_milli) VALUES ($1, $2, 3, 1500) ON CONFLICT (tenant_id, lane) DO UPDATE SET debt_milli = 1500, queued_tasks = 3`, acme, lane)
	check(t, facts.NewStatuses(s.db).PutStatus(t.Context(), "default", 1, plan.Status{At: time.Now(),
		Tenants:  []plan.TenantStatus{{Tenant: acme, Lane: lane, DeficitMilli: 2250}},
		Earmarks: []plan.Earmark{{Pool: northPool, Task: taskID(2), Tenant: acme, Lane: lane, Units: 2, Until: time.Now().Add(time.Minute)}}}))
	s.run(`INSERT INTO starvation VALUES ($1, $2, $3, now() - interval '5 minutes', 60, 7, false, now() - interval '4 minutes')`, lane, acme, taskID(1))
	b := s.as(access.Viewer)
	b.get("/tenants/acme").want(t, http.StatusOK, "25.0 %", "50.0 %", "1.5", "2.25", "pays back", "Served within turns", `class="chart"`, `data-topic="tenant:`+acme.String())
	s.shown(func(m *monitor.State) bool { return len(m.Schedulers) > 0 })
	target := "/pools/" + url.PathEscape(northPool)
	b.get(target).want(t, http.StatusOK, "Earmark", taskID(2).String(), "Shards", "platform")
	b.get(target+"/now").want(t, http.StatusOK, taskID(2).String())
	if a := s.only(access.Operator, s.tenants[1].ID).get(target+"/now").want(t, http.StatusOK, "Earmark"); strings.Contains(a.body, taskID(2).String()) {
		t.Error("I13: an earmark names a task out of reach")
	}
	b.get("/pools/none/now").want(t, http.StatusNotFound)
}

func TestE25_WhyItWaitsIsSaidGateByGateInBothLanguages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.queueTasks(s.tenants[0].ID, "STANDARD", 1, 12)
	holding := []plan.Gate{plan.GateNotEligible, plan.GateNeverFits, plan.GateLane, plan.GateTenant, plan.GateUser, plan.GateAccount, plan.GatePool, plan.GateTurn}
	s.waiting = map[uuid.UUID]explain.Answer{}
	for i, g := range holding {
		w := explain.Answer{PlaceFrom: 3, PlaceTo: 1200, Explanation: plan.Explanation{At: time.Now(), Holds: g, Changes: []plan.Change{
			{What: plan.RaiseBorrow, Object: "STANDARD", From: 3, To: 5}, {What: plan.WaitUntil, To: time.Now().Unix()},
		}}}
		for _, before := range holding[:i] {
			w.Gates = append(w.Gates, plan.GateReport{Gate: before})
		}
		w.Gates = append(w.Gates, plan.GateReport{Gate: g, Holds: true, Numbers: []plan.Number{
			{Name: "wanted", Value: 2}, {Name: "debt", Value: -1500, Unit: plan.Milli}, {Name: "expected", Value: 75, Unit: plan.Seconds},
		}, Options: []plan.Option{
			{Account: control.AccountBorrowed, Lender: "PAID_SHARED", Reason: plan.LenderStopped}, {Account: control.AccountOwn},
			{Pool: "provider:south:a/1:eu:clip", Reason: plan.KeptForTask},
		}})
		s.waiting[taskID(i+1)] = w
	}
	b := s.as(access.Viewer)
	for i, g := range holding {
		for lang, words := range map[string][]string{
			"en": {"place 3 to 1,200", "Smallest change", "borrowing limit of lane STANDARD: 3 → 5 units", "the lender needs its units itself", "earmarked for another task", "1 m 15 s", "−1.5"},
			"zh": {"排位 3 至 1,200", "最小变更", "车道 STANDARD 的借用上限：3 → 5 个单位", "出借方自身需要", "已被其他任务预占", "1 分 15 秒"},
		} {
			b.cookies["fl_lang"] = lang
			for _, target := range []string{"/tasks/" + taskID(i+1).String(), "/tasks/" + taskID(i+1).String() + "/now"} {
				a := b.get(target).want(t, http.StatusOK, append(words, `href="/lanes/STANDARD"`, `href="/lanes/PAID_SHARED"`, `href="/pools/provider:south:a%2F1:eu:clip"`, "2")...)
				if n := strings.Count(a.body, `class="holds"`); n != 1 {
					t.Errorf("%s: %d gates hold", g, n)
				}
				if n := strings.Count(a.body, `class="open"`); n < i || strings.Count(a.body, `class="later"`) != len(holding)-i-1 {
					t.Errorf("%s in %s: %d gates before it are passed", g, lang, n)
				}
				if missing := a.untranslated(); len(missing) > 0 {
					t.Errorf("%v", missing)
				}
			}
		}
	}
	b.cookies["fl_lang"] = "en"
	b.get("/tasks/"+taskID(12).String()).want(t, http.StatusOK, "The scheduler has not looked at it yet.")
	s.run(`UPDATE generation_task SET state = 'RUNNING' WHERE task_id = $1`, taskID(1))
	b.get("/tasks/"+taskID(1).String()).want(t, http.StatusOK, "It does not wait: it is running.")
}

func TestStarvedTenantsOutOfReachAreCounted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.queueTasks(s.tenants[0].ID, "STANDARD", 1, 1)
	s.queueTasks(s.tenants[1].ID, "STANDARD", 2, 1)
	s.queueTasks(s.tenants[2].ID, "STANDARD", 3, 1)
	for i := range 3 {
		s.run(`INSERT INTO starvation VALUES ('STANDARD', $1, $2, now() - interval '5 minutes', 60, 7, false, now() - interval '4 minutes')`, s.tenants[i].ID, taskID(i+1))
	}
	s.run(`INSERT INTO starvation_lane VALUES ('STANDARD', '', 60, now() - interval '5 minutes', 3, 0, now()), ('BEST_EFFORT', 'WEIGHT_ZERO', 0, NULL, 0, 0, now())`)
	s.shown(func(m *monitor.State) bool { return len(m.Starvation) == 2 })
	s.as(access.Viewer).get("/health").want(t, http.StatusOK, "Acme 工作室", "Gamma", "tenants starve", "no bound: weight 0, leftovers only")
	b := s.only(access.Operator, s.tenants[0].ID)
	for _, target := range []string{"/health", "/health/starving", "/lanes/STANDARD"} {
		a := b.get(target).want(t, http.StatusOK, "Acme 工作室", "2 more tenants that you may not see")
		if strings.Contains(a.body, "Gamma") {
			t.Errorf("%s names a tenant out of reach", target)
		}
	}
	text := fmt.Sprint(s.monitor.State().Health)
	if strings.Contains(text, s.tenants[1].ID.String()) {
		t.Error("I13: the topic of the health page names tenants")
	}
}
