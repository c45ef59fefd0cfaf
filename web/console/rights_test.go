package console_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlane/audit"
	"fairlane/control"
	"fairlane/policy/access"
	"fairlane/store/facts"
	"fairlane/web"
)

// example fills the parameters of a route with what exists.
var example = strings.NewReplacer(":tenant", "acme", ":lane", "STANDARD", ":pool", "platform", ":version", "1", ":sequence", "1",
	":task", "01900000-0000-7000-8000-000000000000", "*file", "x", ":provider", "p", ":attempt", "a", ":token", "t", ":id", "1")

// Every role meets every route; what must happen follows from the two tables alone.
func TestE09_E18_RolesAndRoutes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	holds := map[access.Role]map[access.Permission]bool{}
	for _, rule := range access.Shipped() {
		if holds[rule.Role] == nil {
			holds[rule.Role] = map[access.Permission]bool{}
		}
		holds[rule.Role][rule.Permission] = rule.Effect == access.Allow
	}
	checked, refused := 0, 0
	for _, role := range access.Roles {
		b := s.as(role)
		cookies := b.cookies
		for _, r := range web.Routes {
			if r.Auth != web.Session && r.Auth != web.Display || r.Name == "session.end" {
				continue
			}
			b.cookies = map[string]string{"fl_session": cookies["fl_session"], "fl_lang": "en"}
			var form url.Values
			if r.Method == http.MethodPost {
				form = url.Values{"base": {"1"}}
			}
			a := b.do(r.Method, example.Replace(r.Path), form)
			want := holds[role][r.Permission]
			if r.Name == "overview.show" && !want && a.status == http.StatusSeeOther && a.header.Get("Location") == "/wall" {
				a.status = http.StatusForbidden // led on to what the role may see instead
			}
			ledAway := r.Name == "overview.show" && a.status == http.StatusSeeOther && a.header.Get("Location") == "/wall"
			if got := a.status != http.StatusForbidden && a.status != http.StatusUnauthorized && !ledAway; got != want {
				t.Errorf("%s at %s (%s): %d, want it %v", role, r.Name, r.Permission, a.status, want)
			}
			if checked++; !want {
				refused++
			}
		}
	}
	if checked < 150 || refused < 40 {
		t.Fatalf("only %d pairs, %d of them refused", checked, refused)
	}
	t.Logf("%d pairs of role and route, %d of them refused", checked, refused)
	b := s.browser()
	for _, r := range web.Routes {
		if r.Auth == web.Session || r.Auth == web.Display {
			a := b.do(r.Method, example.Replace(r.Path), nil)
			if a.status != http.StatusUnauthorized && a.status != http.StatusSeeOther && r.Name != "shell.banners" {
				t.Errorf("a stranger at %s: %d", r.Name, a.status)
			}
		}
	}
}

// Whoever may only read sees no form that changes anything, and a direct POST is refused and recorded.
func TestE09_E18_ReadersSeeNoFormsAndTheirTriesAreRecorded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, role := range []access.Role{access.Viewer, access.Auditor, access.Approver} {
		b := s.as(role)
		for _, target := range []string{"/tenants/acme", "/lanes/STANDARD", "/pools/platform", "/switches", "/scheduling", "/versions/1", "/versions"} {
			a := b.get(target).want(t, http.StatusOK)
			for _, name := range a.inputs() {
				if !slices.Contains([]string{"return", "q", "from", "to"}, name) {
					t.Errorf("%s sees the field %s on %s", role, name, target)
				}
			}
			for _, action := range formActions(a.body) {
				if !slices.Contains([]string{"/preference", "/sign-out"}, action) {
					t.Errorf("%s can post to %s on %s", role, action, target)
				}
			}
		}
		b.post("/tenants/acme/publish", "base", "1", "weight", "9", "reason", "mine").want(t, http.StatusForbidden, "has been recorded")
	}
	if s.head() != 1 {
		t.Fatal("a reader published something")
	}
	flush(t, s)
	rows, err := facts.NewAudits(s.db).List(context.Background(), audit.Filter{Action: audit.AccessDenied, Result: audit.Denied}, 0, 100)
	check(t, err)
	for _, role := range []access.Role{access.Viewer, access.Auditor, access.Approver} {
		if !slices.ContainsFunc(rows, func(r audit.Row) bool {
			return r.Actor.Name == string(role) && r.Actor.SourceAddress == "192.0.2.7" && r.Params["permission"] == string(access.PolicyPub)
		}) {
			t.Errorf("no record of %s's try: %+v", role, rows)
		}
	}
}

// flush runs the denials once to their end.
func flush(t *testing.T, s *site) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	check(t, s.denials.Run(ctx))
}

func formActions(body string) []string {
	var actions []string
	for _, part := range strings.Split(body, "<form")[1:] {
		tag, _, _ := strings.Cut(part, ">")
		if !strings.Contains(tag, `method="post"`) {
			continue
		}
		_, rest, _ := strings.Cut(tag, `action="`)
		action, _, _ := strings.Cut(rest, `"`)
		actions = append(actions, action)
	}
	return actions
}

// A second instance denies what was revoked, although no hint reached it.
func TestTrap_D52_RevokedRoleIsDeniedOnASecondInstance(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ctx, stop := context.WithCancel(t.Context())
	second, err := access.NewEnforcer(ctx, access.Config{Source: facts.NewAccess(s.db), Log: slog.New(slog.DiscardHandler)})
	check(t, err)
	ended := make(chan error, 1)
	go func() { ended <- second.Run(ctx) }()
	defer func() { stop(); check(t, <-ended) }()
	operator := s.people[access.Operator]
	if ok, err := second.Decide(operator, access.PolicyPub, access.Object{}); err != nil || !ok {
		t.Fatalf("before: %v %v", ok, err)
	}
	began := time.Now()
	check(t, s.access.Revoke(ctx, control.System, "left", operator, access.Operator))
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := second.Decide(operator, access.PolicyPub, access.Object{})
		check(t, err)
		if !ok {
			break
		}
		if time.Since(began) > 2*time.Second {
			t.Fatal("still allowed after 2 s")
		}
		<-tick.C
	}
	t.Logf("denied after %v", time.Since(began).Round(time.Millisecond))
}

// A grant that is limited to a lane or tenant reaches no further (D50: nothing in it is a pattern).
func TestTrap_D50_ScopedOperatorChangesOnlyWhatIsHis(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, err := s.database.Pool.Exec(t.Context(), `UPDATE access_grant SET tenants = ARRAY[$1::uuid], lanes = ARRAY['*', 'STANDARD'] WHERE operator_id = $2`,
		s.tenants[0].ID, s.people[access.Operator])
	check(t, err)
	_, err = s.database.Pool.Exec(t.Context(), `UPDATE access_head SET version = version + 1`)
	check(t, err)
	check(t, s.enforcer.Refresh(t.Context()))
	b := s.as(access.Operator)
	for target, want := range map[string]int{
		"/tenants/acme": 200, "/tenants/beta": 403, "/tenants/gamma": 200, "/lanes/STANDARD": 200, "/lanes/PAID_SHARED": 403, "/lanes/BEST_EFFORT": 403,
		"/pools/platform": 403, "/switches": 403,
	} {
		form := []string{"base", "1", "weight", "7"}
		switch {
		case strings.HasPrefix(target, "/pools"):
			form = []string{"base", "1", "capacity_units", "299"}
		case target == "/switches":
			form = []string{"base", "1", "admission_open.shown", "1"}
		}
		if a := b.post(target, form...); a.status != want {
			t.Errorf("%s: %d, want %d\n%s", target, a.status, want, a.body)
		}
		if want == http.StatusForbidden {
			if a := b.post(target+"/publish", append(form, "reason", "mine")...); a.status != want {
				t.Errorf("publish of %s: %d", target, a.status)
			}
		}
	}
	if s.head() != 1 {
		t.Fatal("something was published")
	}
}
