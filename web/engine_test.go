package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/policy/access"
	"fairlane/views"
	"fairlane/views/layout"
)

// fixed is a source of rights that never changes.
type fixed struct{ set access.Ruleset }

func (f fixed) AccessVersion(context.Context) (int64, error)       { return f.set.Version, nil }
func (f fixed) LoadAccess(context.Context) (access.Ruleset, error) { return f.set, nil }

// denials keeps what was denied.
type denials struct {
	mu   sync.Mutex
	list []string
}

func (d *denials) Denied(_ context.Context, actor control.Actor, permission, object string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, actor.Name+" "+actor.SourceAddress+" "+permission+" "+object)
}

type conditions struct{ k Condition }

func (c conditions) Condition(context.Context) (Condition, error) { return c.k, nil }

type rig struct {
	t       *testing.T
	handler http.Handler
	denials *denials
	logs    *bytes.Buffer
}

// newRig is the engine with handlers that say their name; X-Role signs somebody in.
func newRig(t *testing.T, change func(*Config, map[string]gin.HandlerFunc)) *rig {
	t.Helper()
	set := access.Ruleset{Version: 1, Rules: access.Shipped()}
	people := map[string]uuid.UUID{}
	for _, role := range access.Roles {
		id := uuid.New()
		people[string(role)] = id
		set.Grants = append(set.Grants, access.Grant{Operator: id, Role: role})
	}
	enforcer, err := access.NewEnforcer(t.Context(), access.Config{Source: fixed{set}, Log: slog.New(slog.DiscardHandler), Stale: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, denials: &denials{}, logs: &bytes.Buffer{}}
	cfg := Config{
		Log: slog.New(slog.NewJSONHandler(r.logs, nil)), Conditions: conditions{Condition{InForce: 3, Wanted: 3}}, Denials: r.denials,
		Session: func(c *gin.Context) {
			role := c.GetHeader("X-Role")
			if id, ok := people[role]; ok {
				rights, err := enforcer.Rights(id)
				if err != nil {
					t.Error(err)
				}
				c.Request = c.Request.WithContext(access.WithSubject(c.Request.Context(), access.Subject{Operator: id, Login: role, Name: role, Rights: rights}))
			}
		},
		Token: func(c *gin.Context) {
			if c.GetHeader("Authorization") != "Bearer right" {
				c.AbortWithStatus(http.StatusUnauthorized)
			}
		},
		Asset: func(name string) string { return "/static/x/" + name },
	}
	handlers := map[string]gin.HandlerFunc{}
	for _, route := range Routes {
		handlers[route.Name] = func(c *gin.Context) { c.String(http.StatusOK, "%s", route.Name) }
	}
	if change != nil {
		change(&cfg, handlers)
	}
	r.handler, err = New(cfg, handlers)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) do(method, target, role, body string, headers ...string) *httptest.ResponseRecorder {
	r.t.Helper()
	req := httptest.NewRequest(method, "http://console.example/", strings.NewReader(body))
	var err error
	if req.URL, err = url.ParseRequestURI(target); err != nil {
		r.t.Fatal(err)
	}
	req.RequestURI = target
	req.RemoteAddr = "192.0.2.9:1234"
	req.Header.Set("X-Role", role)
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	return w
}

func TestTableAndHandlersAreHeldToEachOther(t *testing.T) {
	t.Parallel()
	ok := func(*gin.Context) {}
	row := Route{"a.show", get, "/a", access.LaneRead, Session}
	for name, c := range map[string]struct {
		table    []Route
		handlers map[string]gin.HandlerFunc
		says     string
	}{
		"no handler":             {[]Route{row}, nil, "a.show has no handler"},
		"no row":                 {[]Route{row}, map[string]gin.HandlerFunc{"a.show": ok, "b.show": ok}, "b.show has no route"},
		"twice":                  {[]Route{row, row}, map[string]gin.HandlerFunc{"a.show": ok}, "two routes are named a.show"},
		"no permission":          {[]Route{{"a.show", get, "/a", "", Session}}, map[string]gin.HandlerFunc{"a.show": ok}, "permission"},
		"unknown permission":     {[]Route{{"a.show", get, "/a", "lane.*", Session}}, map[string]gin.HandlerFunc{"a.show": ok}, "permission"},
		"public but for session": {[]Route{{"a.show", get, "/a", access.Public, Session}}, map[string]gin.HandlerFunc{"a.show": ok}, "permission"},
		"right on a public row":  {[]Route{{"a.show", get, "/a", access.PolicyPub, Open}}, map[string]gin.HandlerFunc{"a.show": ok}, "permission"},
		"role right for a token": {[]Route{{"a.show", get, "/a", access.PolicyPub, Token}}, map[string]gin.HandlerFunc{"a.show": ok}, "permission"},
		"no way in":              {[]Route{{"a.show", get, "/a", access.LaneRead, ""}}, map[string]gin.HandlerFunc{"a.show": ok}, "permission"},
	} {
		if err := checkTable(c.table, c.handlers); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryTopicNamesAPermissionThatARoleMayHold(t *testing.T) {
	t.Parallel()
	if len(Topics) != 8 {
		t.Errorf("%d topics", len(Topics))
	}
	for topic, p := range Topics {
		if !slices.Contains(access.Permissions, p) {
			t.Errorf("%s: %q", topic, p)
		}
	}
}

func TestTrap_D51_OtherSpellingsOfAPathAreOtherPaths(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, target := range []string{"//audit", "/audit/", "//versions", "/./audit", "/x/../audit", "/audit//1", "/AUDIT", "/%61udit", "/audit%2f1", "/audit;/1", "/%61udit/..;/audit", "/v1//tasks", "//v1/tasks"} {
		for _, role := range []string{"", "viewer", "admin"} {
			w := r.do(http.MethodGet, target, role, "")
			if w.Code != http.StatusNotFound {
				t.Errorf("%q as %q: %d", target, role, w.Code)
			}
		}
	}
	if w := r.do(http.MethodGet, "/audit", "viewer", ""); w.Code != http.StatusForbidden {
		t.Errorf("/audit as viewer: %d", w.Code)
	}
	if w := r.do(http.MethodGet, "/audit", "auditor", ""); w.Code != http.StatusOK {
		t.Errorf("/audit as auditor: %d", w.Code)
	}
	if w := r.do(http.MethodPost, "/audit", "admin", ""); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST /audit: %d", w.Code)
	}
	if w := r.do(http.MethodDelete, "/tenants/acme", "admin", ""); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("DELETE: %d", w.Code)
	}
	if w := r.do(http.MethodHead, "/audit", "viewer", ""); w.Code != http.StatusForbidden {
		t.Errorf("HEAD as viewer: %d", w.Code)
	}
}

func TestRefusalsAreToldAndNoted(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.do(http.MethodPost, "/tenants/acme/publish", "viewer", "weight=9", "X-Forwarded-For", "203.0.113.1")
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "has been recorded") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if got, want := strings.Join(r.denials.list, "; "), "viewer 192.0.2.9 policy.publish POST /tenants/:tenant/publish"; got != want {
		t.Errorf("noted %q", got)
	}
	if w = r.do(http.MethodGet, "/audit?x=%22", "", "", "Accept", "text/html"); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/sign-in?next=%2Faudit%3Fx%3D%2522" {
		t.Errorf("a stranger who reads: %d %q", w.Code, w.Header().Get("Location"))
	}
	if w = r.do(http.MethodPost, "/tenants/acme", "", "a=b", "Accept", "text/html"); w.Code != http.StatusUnauthorized {
		t.Errorf("a stranger who posts: %d", w.Code)
	}
	if w = r.do(http.MethodGet, "/live", "", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("a stranger at the socket: %d", w.Code)
	}
	if w = r.do(http.MethodGet, "/v1/tasks", "admin", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("a session where a token is needed: %d", w.Code)
	}
	if w = r.do(http.MethodGet, "/v1/tasks", "", "", "Authorization", "Bearer right"); w.Code != http.StatusOK {
		t.Errorf("a right token: %d", w.Code)
	}
}

func TestErrorsAreMappedAndInternalOnesAreHidden(t *testing.T) {
	t.Parallel()
	var fail error
	r := newRig(t, func(_ *Config, h map[string]gin.HandlerFunc) {
		h["lane.list"] = func(c *gin.Context) { _ = c.Error(fail) }
		h["api.task.list"] = h["lane.list"]
	})
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{control.Errorf(control.CodeInvalid, "x"), 422, "INVALID"}, {control.Errorf(control.CodeNotFound, "x"), 404, "NOT_FOUND"},
		{control.Errorf(control.CodeConflict, "x"), 409, "CONFLICT"}, {control.Errorf(control.CodeUnavailable, "x"), 503, "UNAVAILABLE"},
		{control.Errorf(control.CodeTooLarge, "x"), 413, "TOO_LARGE"}, {control.Errorf(control.CodeRateLimited, "x"), 429, "RATE_LIMITED"},
		{context.DeadlineExceeded, 503, "UNAVAILABLE"}, {errors.New("password=hunter2"), 500, "INTERNAL"},
	} {
		fail = c.err
		page := r.do(http.MethodGet, "/lanes", "viewer", "")
		problem := r.do(http.MethodGet, "/v1/tasks", "", "", "Authorization", "Bearer right")
		if page.Code != c.status || problem.Code != c.status {
			t.Errorf("%v: %d and %d", c.err, page.Code, problem.Code)
		}
		var told map[string]any
		if err := json.Unmarshal(problem.Body.Bytes(), &told); err != nil || told["code"] != c.code || told["status"] != float64(c.status) || problem.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%v: %s", c.err, problem.Body)
		}
		for _, w := range []*httptest.ResponseRecorder{page, problem} {
			if strings.Contains(w.Body.String(), "hunter2") || !strings.Contains(w.Body.String(), w.Header().Get("X-Request-Id")) {
				t.Errorf("%v: %s", c.err, w.Body)
			}
		}
	}
	if !strings.Contains(r.logs.String(), "hunter2") {
		t.Error("the internal error is not in the log")
	}
	fail = control.Invalid([]control.FieldError{{Field: "weight", Key: "not_whole", Args: map[string]any{"value": "1.5"}}, {Field: "x", Key: "of_another_room"}})
	page := r.do(http.MethodGet, "/lanes", "viewer", "").Body.String()
	problem := r.do(http.MethodGet, "/v1/tasks", "", "", "Authorization", "Bearer right", "Accept-Language", "zh").Body.String()
	for _, want := range []string{"“1.5” is not a whole number.", "of_another_room"} {
		if !strings.Contains(page, want) || !strings.Contains(problem, want) || strings.Contains(page, "⟦") {
			t.Errorf("%q is not in both\n%s\n%s", want, page, problem)
		}
	}
}

func TestPanicsAreLoggedAndAnsweredAsInternal(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(_ *Config, h map[string]gin.HandlerFunc) {
		h["lane.list"] = func(*gin.Context) { panic("boom") }
	})
	w := r.do(http.MethodGet, "/lanes", "viewer", "")
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "boom") || !strings.Contains(w.Body.String(), w.Header().Get("X-Request-Id")) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(r.logs.String(), `"panic":"boom"`) || !strings.Contains(r.logs.String(), `"status":500`) {
		t.Error(r.logs.String())
	}
}

func TestTraceKeepsSecretsAndForgedIdsOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for asked, kept := range map[string]bool{"0123456789abcdef": true, "short": false, "with space 1": false, strings.Repeat("a", 65): false, "line\nbreak-1": false, "<script>--": false} {
		w := r.do(http.MethodGet, "/livez", "", "", "X-Request-Id", asked)
		if got := w.Header().Get("X-Request-Id"); (got == asked) != kept || len(got) < 8 {
			t.Errorf("%q became %q", asked, got)
		}
	}
	r.do(http.MethodPost, "/callbacks/north/attempt-1/secret-token-1", "", "")
	r.do(http.MethodGet, "/search?q=private-name", "viewer", "")
	if log := r.logs.String(); strings.Contains(log, "secret-token-1") || strings.Contains(log, "private-name") || !strings.Contains(log, `"route":"/callbacks/:provider/:attempt/:token"`) || !strings.Contains(log, `"peer":"192.0.2.9"`) {
		t.Error(log)
	}
}

func TestE24_AnswersAreProtected(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	seen := map[string]bool{}
	for _, target := range []string{"/", "/sign-in", "/nowhere", "/v1/tasks", "/static/x", "/livez"} {
		h := r.do(http.MethodGet, target, "viewer", "").Header()
		csp := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self' 'nonce-", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: no %q in %q", target, part, csp)
			}
		}
		if strings.Contains(csp, "unsafe") || seen[csp] {
			t.Errorf("%s: unsafe or a nonce used twice: %q", target, csp)
		}
		seen[csp] = true
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") == "" || h.Get("Permissions-Policy") == "" {
			t.Errorf("%s: %v", target, h)
		}
	}
}

func TestRequestsOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for name, c := range map[string]struct {
		headers []string
		status  int
	}{
		"own origin":    {[]string{"Origin", "http://console.example", "Sec-Fetch-Site", "same-origin"}, 200},
		"cross site":    {[]string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, 403},
		"same site":     {[]string{"Origin", "https://other.console.example", "Sec-Fetch-Site", "same-site"}, 403},
		"old browser":   {[]string{"Origin", "https://evil.example"}, 403},
		"null origin":   {[]string{"Origin", "null"}, 403},
		"no browser":    {nil, 200},
		"typed address": {[]string{"Sec-Fetch-Site", "none"}, 200},
	} {
		if w := r.do(http.MethodPost, "/tenants/acme/publish", "operator", "a=b", c.headers...); w.Code != c.status {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
}

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	large := "a=" + strings.Repeat("x", defaultMaxBody)
	if w := r.do(http.MethodPost, "/tenants/acme", "operator", large); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("said to be large: %d", w.Code)
	}
	req := httptest.NewRequest(http.MethodPost, "/tenants/acme", struct{ *strings.Reader }{strings.NewReader(large)})
	req.ContentLength = -1 // chunked: nothing is said
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-Role", "operator")
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("found to be large: %d", w.Code)
	}
	for _, broken := range []string{"a=%", "a=%zz", "%=1", "a;b=1"} {
		if w := r.do(http.MethodPost, "/tenants/acme", "operator", broken); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%q: %d", broken, w.Code)
		}
	}
}

func TestE08_BannersFollowTheConditionAndAreEmptyWhenUnchanged(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(cfg *Config, h map[string]gin.HandlerFunc) {
		cfg.Conditions = conditions{Condition{InForce: 7, Wanted: 8, AdmissionClosed: true, SchedulingStopped: true, PausedLanes: []string{"<b>LANE"}, PausedPools: []string{"p"}, ClosedLanes: []string{"c"}}}
		h["shell.banners"] = Banners
		h["lane.list"] = func(c *gin.Context) {
			if err := views.Render(c.Writer, c.Request, http.StatusOK, layout.Page(layout.Head{Title: "x"})); err != nil {
				t.Error(err)
			}
		}
	})
	page := r.do(http.MethodGet, "/lanes", "viewer", "").Body.String()
	for _, part := range []string{"Admission is closed", "Scheduling is stopped", "Lane &lt;b&gt;LANE is paused", "Policy v7 in force", "v8 published", "Lane c accepts no new tasks", "Pool p is paused"} {
		if !strings.Contains(page, part) {
			t.Errorf("no %q", part)
		}
	}
	_, rest, _ := strings.Cut(page, `/banners?seen=`)
	seen, _, _ := strings.Cut(rest, `"`)
	if w := r.do(http.MethodGet, "/banners?seen="+seen, "viewer", ""); w.Code != http.StatusNoContent || w.Body.Len() > 0 {
		t.Errorf("unchanged: %d %s", w.Code, w.Body)
	}
	if w := r.do(http.MethodGet, "/banners?seen=other", "", "", "HX-Request", "true"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "session has ended") || strings.Contains(w.Body.String(), "hx-get") || strings.Contains(w.Body.String(), "Admission") {
		t.Errorf("signed out: %d %s", w.Code, w.Body)
	}
	if w := r.do(http.MethodGet, "/banners?seen=other", "viewer", ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Admission is closed") || !strings.Contains(w.Body.String(), `hx-swap-oob`) {
		t.Errorf("changed: %d %s", w.Code, w.Body)
	}
}

func TestReaderIsFoundByCookieThenByTheBrowser(t *testing.T) {
	t.Parallel()
	var got views.Reader
	r := newRig(t, func(_ *Config, h map[string]gin.HandlerFunc) {
		h["lane.list"] = func(c *gin.Context) { got = views.Of(c.Request.Context()) }
	})
	for _, c := range []struct{ accept, cookie, lang, theme, zone string }{
		{"", "", "en", "", ""}, {"zh-CN,zh;q=0.9,en;q=0.8", "", "zh", "", ""}, {"zh-TW", "", "zh", "", ""}, {"fr", "", "en", "", ""},
		{"zh", "fl_lang=en; fl_theme=dark; fl_zone=Asia%2FKolkata", "en", "dark", "Asia/Kolkata"},
		{"en", "fl_lang=xx; fl_theme=<b>; fl_zone=..%2F..%2Fetc%2Fpasswd", "en", "", ""}, {"en", "fl_zone=Local", "en", "", ""}, {strings.Repeat("zh,", 500), "", "en", "", ""},
	} {
		r.do(http.MethodGet, "/lanes", "viewer", "", "Accept-Language", c.accept, "Cookie", c.cookie)
		zone := ""
		if got.Zone != nil {
			zone = got.Zone.String()
		}
		if string(got.Lang) != c.lang || got.Theme != c.theme || zone != c.zone {
			t.Errorf("%+v: %s %s %s", c, got.Lang, got.Theme, zone)
		}
	}
}
