package access

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"fairlane/control"
)

// memory is a source that a test changes.
type memory struct {
	mu   sync.Mutex
	set  Ruleset
	fail error
}

func (m *memory) AccessVersion(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.set.Version, m.fail
}

func (m *memory) LoadAccess(context.Context) (Ruleset, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.set, m.fail
}

func (m *memory) change(fn func(*Ruleset)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set.Rules, m.set.Grants = slices.Clone(m.set.Rules), slices.Clone(m.set.Grants)
	m.set.Version++
	fn(&m.set)
}

func enforcer(t testing.TB, set Ruleset) (*Enforcer, *memory) {
	t.Helper()
	m := &memory{set: set}
	e, err := NewEnforcer(context.Background(), Config{Source: m, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return e, m
}

func TestNothingIsAllowedByDefault(t *testing.T) {
	t.Parallel()
	someone := uuid.New()
	e, _ := enforcer(t, Ruleset{Rules: Shipped(), Grants: []Grant{{Operator: someone, Role: Viewer}}})
	for _, p := range append(slices.Clone(Permissions), "", "nothing", TokenSubmit, Public) {
		if ok, err := e.Decide(uuid.New(), p, Object{}); err != nil || ok {
			t.Errorf("a stranger may %s: %v", p, err)
		}
	}
	if ok, _ := e.Decide(someone, PolicyPub, Object{}); ok {
		t.Error("a viewer may publish")
	}
	if ok, _ := e.Decide(someone, TenantRead, Object{}); !ok {
		t.Error("a viewer may not read")
	}
	if (Rights{}).May(SelfUse) || (Rights{}).MayOn(SelfUse, Object{}) {
		t.Error("zero rights allow something")
	}
}

func TestOneDenyOutweighsEveryAllow(t *testing.T) {
	t.Parallel()
	someone := uuid.New()
	rules := append(Shipped(), Rule{Viewer, PolicyPub, Deny})
	e, _ := enforcer(t, Ruleset{Rules: rules, Grants: []Grant{{Operator: someone, Role: Admin}, {Operator: someone, Role: Viewer}}})
	if ok, _ := e.Decide(someone, PolicyPub, Object{}); ok {
		t.Error("an allow of one role outweighs the deny of another")
	}
	if ok, _ := e.Decide(someone, PolicyEdit, Object{}); !ok {
		t.Error("the deny reaches further than its permission")
	}
}

// No character of a rule is a pattern, and no login is a role.
func TestTrap_D50_RulesAreNamesNotPatterns(t *testing.T) {
	t.Parallel()
	for _, permission := range []Permission{"*", "policy.*", "*.publish", "*/tenant-a", ".*", "policy.publish ", "POLICY.PUBLISH", "policy.publish\x00", "", "?", "policy.publis?"} {
		someone := uuid.New()
		e, _ := enforcer(t, Ruleset{Rules: []Rule{{Viewer, permission, Allow}}, Grants: []Grant{{Operator: someone, Role: Viewer}}})
		for _, p := range Permissions {
			if ok, err := e.Decide(someone, p, Object{}); err != nil || ok {
				t.Errorf("the rule %q allows %s (%v)", permission, p, err)
			}
		}
	}
	for _, role := range []Role{"*", "role:admin", "user:*", "", "Admin", "admin "} {
		someone := uuid.New()
		e, _ := enforcer(t, Ruleset{Rules: Shipped(), Grants: []Grant{{Operator: someone, Role: role}}})
		if rights, err := e.Rights(someone); err != nil || rights.May(SelfUse) {
			t.Errorf("the role %q allows something (%v)", role, err)
		}
	}
}

// The enforcer agrees with the shipped table, and with a naive reading of any other.
func TestDecisionsFollowFromTheTable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		roles, permissions := rapid.SampledFrom(Roles), rapid.SampledFrom(Permissions)
		rules := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Rule {
			return Rule{roles.Draw(t, "role"), permissions.Draw(t, "permission"), rapid.SampledFrom([]Effect{Allow, Allow, Deny}).Draw(t, "effect")}
		}), 0, 40).Draw(t, "rules")
		someone, tenant := uuid.UUID{1}, uuid.UUID{2}
		var grants []Grant
		for _, role := range rapid.SliceOfNDistinct(roles, 0, 3, rapid.ID).Draw(t, "granted") {
			g := Grant{Operator: someone, Role: role}
			switch rapid.IntRange(0, 2).Draw(t, "scope") {
			case 1:
				g.Lanes = []string{"A"}
			case 2:
				g.Tenants = []uuid.UUID{tenant}
			}
			grants = append(grants, g)
		}
		v, err := newView(Ruleset{Rules: rules, Grants: grants})
		if err != nil {
			t.Fatal(err)
		}
		rights, err := v.of(someone)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range Permissions {
			for _, o := range []Object{{}, {Lane: "A"}, {Lane: "B"}, {Lane: "B", Tenant: tenant}, {Lane: "A", Tenant: uuid.UUID{3}}} {
				if got, want := rights.MayOn(p, o), naive(rules, grants, p, o); got != want {
					t.Fatalf("%s on %+v: %v, want %v", p, o, got, want)
				}
			}
		}
	})
}

func naive(rules []Rule, grants []Grant, p Permission, o Object) bool {
	allowed := false
	for _, g := range grants {
		for _, r := range rules {
			if r.Role != g.Role || r.Permission != p {
				continue
			}
			if r.Effect == Deny {
				return false
			}
			inside := len(g.Lanes)+len(g.Tenants) == 0 || slices.Contains(g.Lanes, o.Lane) && o.Lane != "" || slices.Contains(g.Tenants, o.Tenant) && o.Tenant != uuid.Nil
			allowed = allowed || inside
		}
	}
	return allowed
}

func TestTrap_D52_LostHintCostsOnePoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		someone := uuid.New()
		e, source := enforcer(t, Ruleset{Version: 1, Rules: Shipped(), Grants: []Grant{{Operator: someone, Role: Admin}}})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		if ok, _ := e.Decide(someone, PolicyPub, Object{}); !ok {
			t.Fatal("not allowed to begin with")
		}
		source.change(func(s *Ruleset) { s.Grants = nil })
		time.Sleep(time.Second + time.Millisecond)
		if ok, err := e.Decide(someone, PolicyPub, Object{}); ok || err != nil || e.Version() != 2 {
			t.Errorf("after one poll: allowed %v, version %d, %v", ok, e.Version(), err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestRulesThatCannotBeConfirmedDecideNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		someone := uuid.New()
		e, source := enforcer(t, Ruleset{Version: 1, Rules: Shipped(), Grants: []Grant{{Operator: someone, Role: Admin}}})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		source.mu.Lock()
		source.fail = errors.New("away")
		source.mu.Unlock()
		time.Sleep(4 * time.Second)
		if ok, err := e.Decide(someone, PolicyPub, Object{}); !ok || err != nil {
			t.Errorf("a short outage already denies: %v %v", ok, err)
		}
		time.Sleep(3 * time.Second)
		if ok, err := e.Decide(someone, PolicyPub, Object{}); ok || control.CodeOf(err) != control.CodeUnavailable {
			t.Errorf("after 7 s unconfirmed: %v %v", ok, err)
		}
		source.mu.Lock()
		source.fail = nil
		source.mu.Unlock()
		time.Sleep(time.Second + time.Millisecond)
		if ok, err := e.Decide(someone, PolicyPub, Object{}); !ok || err != nil {
			t.Errorf("after it came back: %v %v", ok, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestWrongSettingsAndSourcesStopTheStart(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	for name, cfg := range map[string]Config{
		"no source": {Log: log}, "no log": {Source: &memory{}}, "poll too long": {Source: &memory{}, Log: log, Poll: 3 * time.Second},
		"source away": {Source: &memory{fail: errors.New("away")}, Log: log},
	} {
		if _, err := NewEnforcer(t.Context(), cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestRulesAreNotWrittenThroughCasbin(t *testing.T) {
	t.Parallel()
	v, err := newView(Ruleset{Rules: Shipped()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.casbin.AddPolicy("role:viewer", "policy.publish", "allow"); err == nil {
		t.Error("a rule was added")
	}
	if err := v.casbin.SavePolicy(); err == nil {
		t.Error("the rules were saved")
	}
}

func TestNewAccountsAreChecked(t *testing.T) {
	t.Parallel()
	good := NewAccount{Login: "li", Name: "李", PasswordHash: "x", Grants: []Grant{{Role: Viewer}}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for field, change := range map[string]func(*NewAccount){
		"login": func(a *NewAccount) { a.Login = "a b" }, "name": func(a *NewAccount) { a.Name = "" }, "password": func(a *NewAccount) { a.PasswordHash = "" },
		"roles": func(a *NewAccount) { a.Grants = []Grant{{Role: "root"}} },
	} {
		a := good
		change(&a)
		if err := a.Check(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// Rights are computed once for an operator and version, not once for a row.
func BenchmarkRights(b *testing.B) {
	someone := uuid.New()
	e, _ := enforcer(b, Ruleset{Rules: Shipped(), Grants: []Grant{{Operator: someone, Role: Admin}}})
	for b.Loop() {
		if rights, err := e.Rights(someone); err != nil || !rights.May(PolicyPub) {
			b.Fatal(err)
		}
	}
}
