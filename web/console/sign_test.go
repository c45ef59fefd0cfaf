package console_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"fairlane/audit"
	"fairlane/control"
	"fairlane/policy/access"
	"fairlane/store/facts"
	"fairlane/web/session"
)

func TestTrap_D55_SignInMakesANewSession(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser()
	b.cookies["fl_session"] = "fixed-by-somebody-else"
	b.post("/sign-in", "login", "viewer", "password", password, "next", "/tenants/acme").want(t, http.StatusSeeOther)
	first := b.cookies["fl_session"]
	if first == "fixed-by-somebody-else" || len(first) < 40 {
		t.Fatalf("session %q", first)
	}
	b.get("/tenants/acme").want(t, http.StatusOK)
	b.post("/sign-in", "login", "auditor", "password", password).want(t, http.StatusSeeOther)
	second := b.cookies["fl_session"]
	if second == first {
		t.Fatal("the session was kept at the second sign-in")
	}
	b.cookies["fl_session"] = first
	b.get("/tenants/acme").want(t, http.StatusSeeOther)
	b.cookies["fl_session"] = second
	b.post("/sign-out").want(t, http.StatusSeeOther)
	if _, kept := b.cookies["fl_session"]; kept {
		t.Error("the cookie was kept at sign-out")
	}
	b.cookies["fl_session"] = second
	a := b.get("/tenants/acme?x=1").want(t, http.StatusSeeOther)
	if to := a.header.Get("Location"); to != "/sign-in?next=%2Ftenants%2Facme%3Fx%3D1" {
		t.Errorf("led to %s", to)
	}
	rows, err := facts.NewAudits(s.db).List(context.Background(), audit.Filter{ObjectKind: audit.KindSession}, 0, 10)
	check(t, err)
	var told []string
	for _, r := range rows {
		told = append(told, string(r.Action)+" "+r.Actor.Name)
	}
	if got, want := strings.Join(told, ", "), "session.sign_out auditor, session.sign_in auditor, session.sign_out viewer, session.sign_in viewer"; got != want {
		t.Errorf("record: %s", got)
	}
}

func TestSessionCookieIsProtectedAndKeptHashed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser()
	a := b.post("/sign-in", "login", "viewer", "password", password)
	cookie := a.header.Get("Set-Cookie")
	for _, part := range []string{"HttpOnly", "SameSite=Lax", "Path=/"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("%s is missing in %s", part, cookie)
		}
	}
	var rows int
	check(t, s.database.Pool.QueryRow(t.Context(), `SELECT count(*) FROM session WHERE position($1 in token_hash) > 0 OR position(convert_to($1, 'UTF8') in data) > 0`, b.cookies["fl_session"]).Scan(&rows))
	if rows != 0 {
		t.Error("the token itself is in the table")
	}
}

func TestTrap_D54_RevokedSessionIsDeadAtOnceAndStaysDead(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(access.Viewer)
	store := facts.NewSessions(s.db)
	hash := session.Hash(b.cookies["fl_session"])
	alive, err := store.Alive(t.Context(), []string{hash, "other"})
	check(t, err)
	if !alive[hash] || alive["other"] {
		t.Fatalf("alive: %v", alive)
	}
	ended, err := store.RevokeOf(t.Context(), control.System, "test", s.people[access.Viewer])
	check(t, err)
	check(t, store.Touch(t.Context(), b.cookies["fl_session"], 1<<40, 1<<41))
	if alive, err = store.Alive(t.Context(), []string{hash}); err != nil || alive[hash] || ended != 1 {
		t.Fatalf("alive %v after %d ended: %v", alive, ended, err)
	}
	b.get("/tenants/acme").want(t, http.StatusSeeOther)
	b = s.as(access.Auditor)
	check(t, facts.NewOperators(s.db).Disable(t.Context(), control.System, "left", "auditor"))
	b.get("/tenants/acme").want(t, http.StatusSeeOther)
	b.post("/sign-in", "login", "auditor", "password", password).want(t, http.StatusUnauthorized, "wrong")
}

func TestWrongSignInsAreAnsweredAlike(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser()
	for name, form := range map[string][2]string{
		"wrong password": {"viewer", "wrong password"}, "unknown login": {"nobody", password}, "other case": {"VIEWER", password},
		"over-long login": {strings.Repeat("a", 500), password}, "over-long password": {"viewer", strings.Repeat("a", 5000)},
		"NUL": {"vie\x00wer", password}, "markup": {`<b>"'`, password}, "SQL": {"viewer' --", password},
	} {
		b.headers["Host"] = name
		a := b.post("/sign-in", "login", form[0], "password", form[1]).want(t, http.StatusUnauthorized, "Login or password is wrong.")
		if strings.Contains(a.body, form[1]) || strings.Contains(a.body, "<b>&#34;") {
			t.Errorf("%s: the password or markup is shown again", name)
		}
	}
	b.post("/sign-in", "login", "", "password", "").want(t, http.StatusUnprocessableEntity, "Please type your login.", "Please type your password.")
	a := b.post("/sign-in", "login", "kept", "password", "never shown", "set_lang", "zh").want(t, http.StatusOK, `value="kept"`, "登录控制台")
	if strings.Contains(a.body, "never shown") {
		t.Error("the password is shown again")
	}
}

func TestTrap_D68_TriesAreCountedByPeerWhateverHeadersSay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser()
	refused := 0
	for i := range 100 {
		b.headers["X-Forwarded-For"] = "203.0.113." + strconv.Itoa(i)
		b.headers["X-Real-Ip"] = "203.0.113." + strconv.Itoa(i)
		b.headers["Forwarded"] = "for=203.0.113." + strconv.Itoa(i)
		a := b.post("/sign-in", "login", "login-"+strconv.Itoa(i), "password", "wrong password")
		if a.status == http.StatusTooManyRequests {
			if refused++; a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "Too many failed tries") {
				t.Fatalf("no word of how long to wait: %v", a.header)
			}
		}
	}
	if refused != 90 {
		t.Errorf("%d of 100 were refused, want 90", refused)
	}
	flush(t, s)
	rows, err := facts.NewAudits(s.db).List(t.Context(), audit.Filter{Action: audit.AccessDenied}, 0, 100)
	check(t, err)
	if len(rows) == 0 {
		t.Fatal("failed sign-ins are not recorded")
	}
	for _, r := range rows {
		if r.Actor.SourceAddress != "192.0.2.7" {
			t.Errorf("recorded from %q", r.Actor.SourceAddress)
		}
	}
}

func TestE11_LanguageSwitchKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(access.Operator)
	b.post("/tenants/acme", "base", "1", "at", "edit", "weight", "12abc", "set_lang", "zh").want(t, http.StatusOK, `value="12abc"`, "权重", `lang="zh-CN"`)
	b.post("/tenants/acme", "base", "1", "at", "preview", "weight", "12", "reason", "打了一半", "set_theme", "dark").
		want(t, http.StatusOK, "打了一半", `data-theme="dark"`, "1 处变更", `name="weight" value="12"`)
	back := b.post("/preference", "set_lang", "en", "return", "/tenants/acme?x=1")
	if back.status != http.StatusSeeOther || back.header.Get("Location") != "/tenants/acme?x=1" {
		t.Errorf("%d to %s", back.status, back.header.Get("Location"))
	}
	if to := b.post("/preference", "set_lang", "en", "return", "//evil.example").header.Get("Location"); to != "/" {
		t.Errorf("led to %s", to)
	}
	account, err := facts.NewOperators(s.db).OperatorByLogin(t.Context(), "operator")
	check(t, err)
	if account.Language != "en" || account.Theme != "dark" {
		t.Errorf("stored %q %q", account.Language, account.Theme)
	}
}
