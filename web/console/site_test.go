package console_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/audit"
	"fairlane/control"
	"fairlane/control/explain"
	"fairlane/control/monitor"
	"fairlane/policy"
	"fairlane/policy/access"
	"fairlane/store/facts"
	"fairlane/store/storetest"
	"fairlane/web"
	"fairlane/web/console"
	"fairlane/web/session"
	"fairlane/web/static"
)

const password = "correct horse battery"

// passwordHash is made once: hashing is slow on purpose.
var passwordHash = sync.OnceValue(func() string {
	hash, err := session.HashPassword(context.Background(), password)
	if err != nil {
		panic(err)
	}
	return hash
})

// site is the console over a real database, as a browser without scripts meets it.
type site struct {
	t        testing.TB
	handler  http.Handler
	db       *facts.DB
	database *storetest.Database
	policies *facts.Policies
	access   *facts.Access
	enforcer *access.Enforcer
	denials  *audit.Denials
	tenants  []policy.Tenant
	people   map[access.Role]uuid.UUID
	monitor  *monitor.Monitor
	waiting  map[uuid.UUID]explain.Answer // why tasks wait
}

// Explain says what the test has said.
func (s *site) Explain(_ context.Context, task uuid.UUID) (explain.Answer, error) {
	w, ok := s.waiting[task]
	if !ok {
		return w, control.Errorf(control.CodeNotFound, "not known")
	}
	return w, nil
}

const hostileName = `<img src=x onerror=alert(1)>"'&{{7*7}}`

func newSite(t testing.TB) *site {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	base := storetest.New(t)
	db, err := facts.Open(ctx, base.URL, "test", 8)
	check(t, err)
	t.Cleanup(db.Close)
	s := &site{t: t, db: db, database: base, policies: facts.NewPolicies(db), access: facts.NewAccess(db), people: map[access.Role]uuid.UUID{}}
	tenants := facts.NewTenants(db)
	publisher := policy.NewPublisher(s.policies, tenants)
	_, err = publisher.Publish(ctx, policy.Publication{Document: smallDocument(), Reason: "first", Actor: control.System})
	check(t, err)
	s.tenants, err = tenants.Onboard(ctx, []facts.NewTenant{
		{Code: "acme", Name: "Acme 工作室", Plan: "pro"}, {Code: "beta", Name: hostileName, Plan: "pro"}, {Code: "gamma", Name: "Gamma", Plan: "standard"},
	}, control.System, "test")
	check(t, err)
	_, err = s.access.EnsureRules(ctx, access.Shipped())
	check(t, err)
	var accounts []access.NewAccount
	for _, role := range access.Roles {
		accounts = append(accounts, access.NewAccount{Login: string(role), Name: "The " + string(role), PasswordHash: passwordHash(), Grants: []access.Grant{{Role: role}}})
	}
	operators := facts.NewOperators(db)
	_, err = operators.EnsureOperators(ctx, control.System, "test", accounts)
	check(t, err)
	for _, role := range access.Roles {
		account, err := operators.OperatorByLogin(ctx, string(role))
		check(t, err)
		s.people[role] = account.ID
	}
	log := slog.New(slog.DiscardHandler)
	s.enforcer, err = access.NewEnforcer(ctx, access.Config{Source: s.access, Log: log, Stale: time.Hour})
	check(t, err)
	s.denials = audit.NewDenials(facts.NewAudits(db), audit.DenialsConfig{Log: log})
	s.handler = s.build(log, publisher, operators, tenants)
	return s
}

func (s *site) build(log *slog.Logger, publisher *policy.Publisher, operators *facts.Operators, tenants *facts.Tenants) http.Handler {
	sessions, err := session.New(session.Config{Operators: operators, Store: facts.NewSessions(s.db), Rights: s.enforcer, Denials: s.denials, Log: log})
	check(s.t, err)
	reading := s.reading(log)
	past := facts.NewMonitor(s.db)
	pages, err := console.New(console.Config{
		Versions: s.policies, Publisher: publisher, Tenants: tenants, Cards: past, Audit: facts.NewAudits(s.db), Log: log,
		Past: past, Present: past, Shown: s.monitor, Active: s.active,
	})
	check(s.t, err)
	assets, err := static.New()
	check(s.t, err)
	handlers := map[string]gin.HandlerFunc{"static.file": assets.Serve, "shell.banners": web.Banners, "preference.set": web.SetPreference}
	for _, more := range []map[string]gin.HandlerFunc{sessions.Handlers(), pages.Handlers(), reading} {
		for name, h := range more {
			handlers[name] = h
		}
	}
	for _, r := range web.Routes { // pages of other rooms
		if handlers[r.Name] == nil {
			handlers[r.Name] = func(c *gin.Context) { c.String(http.StatusOK, "%s", r.Name) }
		}
	}
	h, err := web.New(web.Config{
		Log: log, Conditions: conditions{s.policies}, Denials: s.denials, Session: sessions.Load, Asset: assets.URL, Preference: operators,
		Token: func(c *gin.Context) { c.AbortWithStatus(http.StatusUnauthorized) },
	}, handlers)
	check(s.t, err)
	return h
}

// conditions reads the head at once, in place of a process that follows it.
type conditions struct{ policies *facts.Policies }

func (k conditions) Condition(ctx context.Context) (web.Condition, error) {
	head, err := k.policies.Head(ctx)
	if err != nil {
		return web.Condition{}, err
	}
	return web.PolicyConditions{
		Current: func() *policy.Version { return &head }, Wanted: func() int64 { return head.Number },
	}.Condition(ctx)
}

func smallDocument() *policy.Document {
	d := policy.Default()
	d.Models = []policy.Model{{
		Code: "clip", Kind: "VIDEO", ResourceClass: "STANDARD", Resolutions: []string{"720p"}, Seconds: []int64{5}, SlotUnits: 2,
		MeanSeconds: 60, P95Seconds: 120, CostMicro: 500_000, PriceMicro: 700_000, PriceAsOf: "2026-11-01", Enabled: true,
	}}
	d.Pools = []policy.Pool{
		{Key: "platform", Kind: policy.PoolCapGroup, CapacityUnits: 300},
		{Key: "provider:north:acct-1:eu:clip", Kind: policy.PoolProvider, Group: policy.DefaultGroup, Parents: []string{"platform"},
			Provider: "north", Account: "acct-1", Region: "eu", Model: "clip", CapacityUnits: 100},
		{Key: "provider:south:a/1:eu:clip", Kind: policy.PoolProvider, Group: policy.DefaultGroup, Parents: []string{"platform"},
			Provider: "south", Account: "a/1", Region: "eu", Model: "clip", CapacityUnits: 60},
	}
	for i := range d.Lanes {
		if d.Lanes[i].Code == control.LanePaid {
			d.Lanes[i].Accounts[0].ReservedUnits = 80
		}
	}
	return d
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// browser keeps cookies and follows nothing by itself.
type browser struct {
	*site
	cookies map[string]string
	headers map[string]string
}

func (s *site) browser() *browser {
	return &browser{site: s, cookies: map[string]string{"fl_lang": "en"}, headers: map[string]string{}}
}

// as returns a browser in which somebody of that role is signed in.
func (s *site) as(role access.Role) *browser {
	s.t.Helper()
	b := s.browser()
	a := b.post("/sign-in", "login", string(role), "password", password)
	if a.status != http.StatusSeeOther {
		s.t.Fatalf("sign-in of %s: %d\n%s", role, a.status, a.body)
	}
	return b
}

// answer is a response with its body as text.
type answer struct {
	status int
	header http.Header
	body   string
}

func (b *browser) do(method, target string, form url.Values) answer {
	b.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequestWithContext(b.t.Context(), method, target, body)
	r.RemoteAddr = "192.0.2.7:4711"
	r.Header.Set("Accept", "text/html")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range b.headers {
		r.Header.Set(name, value)
	}
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	res := w.Result()
	for _, c := range res.Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c.Value
		}
	}
	return answer{res.StatusCode, res.Header, w.Body.String()}
}

func (b *browser) get(target string) answer { return b.do(http.MethodGet, target, nil) }

func (b *browser) post(target string, pairs ...string) answer {
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return b.do(http.MethodPost, target, form)
}

// head is the number of the newest version.
func (s *site) head() int64 {
	s.t.Helper()
	v, err := s.policies.Head(context.Background())
	check(s.t, err)
	return v.Number
}

// weight is what the newest version grants a tenant.
func (s *site) weight(code string) int64 {
	s.t.Helper()
	v, err := s.policies.Head(context.Background())
	check(s.t, err)
	for _, t := range s.tenants {
		if t.Code == code {
			settings, _ := v.Document.Effective(t.PlanCode, t.ID)
			return settings.Weight
		}
	}
	s.t.Fatalf("no tenant %s", code)
	return 0
}

var (
	inputOf    = regexp.MustCompile(`<(?:input|textarea)[^>]*\bname="([^"]+)"[^>]*>`)
	hasNoValue = regexp.MustCompile(`⟦[^⟧]*⟧`)
)

// untranslated finds keys that the catalogue does not have.
func (a answer) untranslated() []string { return hasNoValue.FindAllString(a.body, -1) }

// inputs are the names of all fields of a page.
func (a answer) inputs() []string {
	var names []string
	for _, m := range inputOf.FindAllStringSubmatch(a.body, -1) {
		names = append(names, m[1])
	}
	return names
}

func (a answer) want(t testing.TB, status int, parts ...string) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d\n%s", a.status, status, a.body)
	}
	for _, part := range parts {
		if !strings.Contains(a.body, part) {
			t.Errorf("the page lacks %q\n%s", part, a.body)
		}
	}
	if keys := a.untranslated(); len(keys) > 0 {
		t.Errorf("untranslated: %v", keys)
	}
	return a
}
