package facts_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/store/facts"
)

// hands is a clock that the test moves.
type hands struct{ at atomic.Int64 }

func newHands() *hands {
	h := &hands{}
	h.at.Store(time.Now().UnixNano())
	return h
}

func (h *hands) now() time.Time       { return time.Unix(0, h.at.Load()) }
func (h *hands) move(d time.Duration) { h.at.Add(int64(d)) }

func TestTokens(t *testing.T) {
	t.Parallel()
	g := newGatehouse(t, 2)
	clock := newHands()
	tokens := facts.NewTokens(g.db, clock.now)
	ctx := t.Context()
	secret, token, err := tokens.Create(ctx, g.tenants[0], " render farm ", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(secret, "flt_") || len(secret) != 47 || token.Name != "render farm" {
		t.Errorf("secret of %d characters, name %q", len(secret), token.Name)
	}
	if kept := one[int64](t, g, `SELECT count(*) FROM api_token WHERE token_hash = sha256($1::bytea) AND token_hash <> $1::bytea`, []byte(secret)); kept != 1 {
		t.Error("the row does not hold the hash alone")
	}
	who, err := tokens.Principal(ctx, secret)
	if err != nil || who.TenantID != g.tenants[0] || who.TenantCode != "t0" || who.PlanCode != "pro" || who.TokenID != token.ID || who.TokenName != "render farm" || who.Suspended {
		t.Errorf("principal %+v: %v", who, err)
	}
	for _, bad := range []string{"", "flt_", secret + "x", secret[:46], "flt_" + strings.Repeat("A", 43), "Bearer " + secret, strings.ToUpper(secret), strings.Repeat("x", 1<<20)} {
		if _, err := tokens.Principal(ctx, bad); control.CodeOf(err) != control.CodeUnauthorized {
			t.Errorf("%.60q: %v", bad, err)
		}
	}
	// Suspension is felt within two seconds.
	g.do(t, `UPDATE tenant SET status = 'SUSPENDED' WHERE tenant_id = $1`, g.tenants[0])
	clock.move(2 * time.Second)
	if who, err = tokens.Principal(ctx, secret); err != nil || !who.Suspended {
		t.Errorf("suspended tenant: %+v %v", who, err)
	}
	// Another tenant cannot revoke it; its own can, twice; here it is felt at once, elsewhere within two seconds.
	elsewhere := facts.NewTokens(g.db, clock.now)
	if _, err := elsewhere.Principal(ctx, secret); err != nil {
		t.Fatal(err)
	}
	if err := tokens.Revoke(ctx, g.tenants[1], token.ID); control.CodeOf(err) != control.CodeNotFound {
		t.Errorf("revoked by another tenant: %v", err)
	}
	for range 2 {
		if err := tokens.Revoke(ctx, g.tenants[0], token.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tokens.Principal(ctx, secret); control.CodeOf(err) != control.CodeUnauthorized {
		t.Errorf("revoked, same process: %v", err)
	}
	if _, err := elsewhere.Principal(ctx, secret); err != nil {
		t.Errorf("the other process still remembers it: %v", err)
	}
	clock.move(2 * time.Second)
	if _, err := elsewhere.Principal(ctx, secret); control.CodeOf(err) != control.CodeUnauthorized {
		t.Errorf("revoked, other process after 2 s: %v", err)
	}
	if n := one[int64](t, g, `SELECT count(*) FROM audit_event`); n != 2 {
		t.Errorf("%d audit records of one token made and once revoked", n)
	}
	if kept := one[int64](t, g, `SELECT count(*) FROM audit_event WHERE record LIKE '%' || $1 || '%'`, secret[4:]); kept != 0 {
		t.Error("the secret is in the audit log")
	}
	list, err := tokens.List(ctx, g.tenants[0])
	if err != nil || len(list) != 1 || list[0].RevokedAt.IsZero() {
		t.Errorf("list %+v: %v", list, err)
	}
}

func TestTokenExpiryHoldsToTheInstant(t *testing.T) {
	t.Parallel()
	g := newGatehouse(t, 1)
	clock := newHands()
	tokens := facts.NewTokens(g.db, clock.now)
	secret, _, err := tokens.Create(t.Context(), g.tenants[0], "short", clock.now().Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Principal(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	clock.move(time.Second)
	if _, err := tokens.Principal(t.Context(), secret); control.CodeOf(err) != control.CodeUnauthorized {
		t.Errorf("a remembered token outlived its expiry: %v", err)
	}
}

func TestTokenCreateRefusesNonsense(t *testing.T) {
	t.Parallel()
	g := newGatehouse(t, 1)
	tokens := facts.NewTokens(g.db, nil)
	for _, tc := range []struct {
		tenant  uuid.UUID
		name    string
		expires time.Time
		code    control.Code
	}{
		{g.tenants[0], "", time.Time{}, control.CodeInvalid},
		{g.tenants[0], strings.Repeat("名", 101), time.Time{}, control.CodeInvalid},
		{g.tenants[0], "a\x00b", time.Time{}, control.CodeInvalid},
		{g.tenants[0], "late", time.Now().Add(-time.Hour), control.CodeInvalid},
		{uuid.New(), "whose", time.Time{}, control.CodeNotFound},
	} {
		if _, _, err := tokens.Create(t.Context(), tc.tenant, tc.name, tc.expires); control.CodeOf(err) != tc.code {
			t.Errorf("%.20q: %v, want %s", tc.name, err, tc.code)
		}
	}
	if n := one[int64](t, g, `SELECT count(*) FROM api_token`); n != 0 {
		t.Errorf("%d tokens were made", n)
	}
}
