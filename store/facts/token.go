package facts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/audit"
	"fairlane/control"
	"fairlane/control/admit"
	"fairlane/policy/access"
)

const (
	tokenPrefix = "flt_"
	tokenBytes  = 32
	// tokenAge bounds how long a revoked token, or a suspended tenant, is still let in.
	tokenAge  = 2 * time.Second
	tokenMost = 10_000 // remembered look-ups
)

// Token is an API token of a tenant as it can be shown: the secret is not kept.
type Token struct {
	ID        uuid.UUID
	TenantID  uuid.UUID
	Name      string
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	RevokedAt time.Time // zero: not revoked
}

// Tokens are the API tokens. Only the SHA-256 of a secret is stored: it is 32 random bytes, which no
// dictionary holds, so a slow hash would add nothing.
type Tokens struct {
	db  *DB
	now func() time.Time

	mu    sync.Mutex
	known map[[sha256.Size]byte]knownToken
}

type knownToken struct {
	who     admit.Principal
	err     error // not found, revoked or expired
	expires time.Time
	at      time.Time
}

// NewTokens works on db; now is time.Now where nil.
func NewTokens(db *DB, now func() time.Time) *Tokens {
	if now == nil {
		now = time.Now
	}
	return &Tokens{db: db, now: now, known: make(map[[sha256.Size]byte]knownToken)}
}

// Create makes a token, with its audit record, and returns its secret, which cannot be had again. A zero
// expires is never.
func (t *Tokens) Create(ctx context.Context, tenant uuid.UUID, name string, expires time.Time) (string, Token, error) {
	if name = strings.TrimSpace(name); name == "" || len([]rune(name)) > 100 || !admit.Printable(name, false) {
		return "", Token{}, control.Invalid([]control.FieldError{{Field: "name", Key: "length", Args: map[string]any{"min": 1, "max": 100}}})
	}
	if !expires.IsZero() && !expires.After(t.now()) {
		return "", Token{}, control.Invalid([]control.FieldError{{Field: "expires_at", Key: "future"}})
	}
	raw := make([]byte, tokenBytes)
	if _, err := rand.Read(raw); err != nil {
		return "", Token{}, err
	}
	secret := tokenPrefix + base64.RawURLEncoding.EncodeToString(raw)
	sum := sha256.Sum256([]byte(secret))
	token := Token{ID: uuid.Must(uuid.NewV7()), TenantID: tenant, Name: name, ExpiresAt: expires}
	err := t.db.Tx(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			INSERT INTO api_token (token_id, tenant_id, name, token_hash, expires_at)
			SELECT $1, tenant_id, $3, $4, $5 FROM tenant WHERE tenant_id = $2 RETURNING created_at`,
			token.ID, tenant, name, sum[:], orNull(expires)).Scan(&token.CreatedAt)
		if errors.Is(err, pgx.ErrNoRows) {
			return control.Errorf(control.CodeNotFound, "there is no tenant %s", tenant)
		} else if err != nil {
			return err
		}
		return auditToken(ctx, tx, audit.TokenAdd, tenant, token.ID, name)
	})
	if err != nil {
		return "", Token{}, err
	}
	return secret, token, nil
}

// auditToken records what was done to a token, by whoever the context names, else by the system.
func auditToken(ctx context.Context, tx pgx.Tx, action audit.Action, tenant, token uuid.UUID, name string) error {
	actor := access.ActorOf(ctx)
	if actor.Name == "" {
		actor = control.System
	}
	_, err := appendAudit(ctx, tx, audit.Event{
		Actor: actor, Action: action, ObjectKind: audit.KindToken, ObjectID: token.String(), Result: audit.OK,
		Params: map[string]any{"name": name}, Touched: []audit.Touch{{Kind: audit.KindTenant, ID: tenant.String(), Field: "tokens"}},
	})
	return err
}

// List returns the tokens of a tenant, newest first, at most 1,000.
func (t *Tokens) List(ctx context.Context, tenant uuid.UUID) ([]Token, error) {
	rows, err := t.db.pool.Query(ctx, `
		SELECT token_id, tenant_id, name, created_at, expires_at, revoked_at FROM api_token
		WHERE tenant_id = $1 ORDER BY token_id DESC LIMIT 1000`, tenant)
	if err != nil {
		return nil, away(err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Token, error) {
		var k Token
		var expires, revoked *time.Time
		err := row.Scan(&k.ID, &k.TenantID, &k.Name, &k.CreatedAt, &expires, &revoked)
		k.ExpiresAt, k.RevokedAt = orZero(expires), orZero(revoked)
		return k, err
	})
}

// Revoke ends a token of the tenant; doing it again changes nothing. It is felt everywhere within 2 s.
func (t *Tokens) Revoke(ctx context.Context, tenant, id uuid.UUID) error {
	var hash []byte
	err := t.db.Tx(ctx, func(tx pgx.Tx) error {
		var name string
		var before *time.Time
		err := tx.QueryRow(ctx, `SELECT token_hash, name, revoked_at FROM api_token WHERE tenant_id = $1 AND token_id = $2 FOR UPDATE`, tenant, id).
			Scan(&hash, &name, &before)
		if errors.Is(err, pgx.ErrNoRows) {
			return control.Errorf(control.CodeNotFound, "this tenant has no token %s", id)
		} else if err != nil || before != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE api_token SET revoked_at = clock_timestamp() WHERE token_id = $1`, id); err != nil {
			return err
		}
		return auditToken(ctx, tx, audit.TokenRevoke, tenant, id, name)
	})
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, [sha256.Size]byte(hash))
	return nil
}

// Principal tells whose secret this is; control.CodeUnauthorized when it is nobody's, revoked or
// expired. The answer may be 2 s old; an expiry holds to the instant.
func (t *Tokens) Principal(ctx context.Context, secret string) (admit.Principal, error) {
	if !strings.HasPrefix(secret, tokenPrefix) || len(secret) != len(tokenPrefix)+base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return admit.Principal{}, unknownToken()
	}
	sum := sha256.Sum256([]byte(secret))
	now := t.now()
	t.mu.Lock()
	k, ok := t.known[sum]
	t.mu.Unlock()
	if !ok || now.Sub(k.at) >= tokenAge {
		var err error
		if k, err = t.lookup(ctx, sum); err != nil {
			return admit.Principal{}, err
		}
		k.at = now
		t.remember(sum, k)
	}
	if k.err == nil && !k.expires.IsZero() && !now.Before(k.expires) {
		return admit.Principal{}, unknownToken()
	}
	return k.who, k.err
}

func (t *Tokens) lookup(ctx context.Context, sum [sha256.Size]byte) (knownToken, error) {
	var k knownToken
	var hash []byte
	var expires *time.Time
	var dead bool
	err := t.db.pool.QueryRow(ctx, `
		SELECT k.token_hash, k.token_id, k.name, k.expires_at, k.revoked_at IS NOT NULL OR coalesce(k.expires_at <= clock_timestamp(), false),
			t.tenant_id, t.code, t.plan_code, t.status = 'SUSPENDED'
		FROM api_token k JOIN tenant t USING (tenant_id) WHERE k.token_hash = $1`, sum[:]).
		Scan(&hash, &k.who.TokenID, &k.who.TokenName, &expires, &dead, &k.who.TenantID, &k.who.TenantCode, &k.who.PlanCode, &k.who.Suspended)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return knownToken{err: unknownToken()}, nil
	case err != nil:
		return k, away(err)
	case dead || subtle.ConstantTimeCompare(hash, sum[:]) != 1:
		return knownToken{err: unknownToken()}, nil
	}
	k.expires = orZero(expires)
	return k, nil
}

// remember keeps a look-up, also of secrets that do not exist: random ones never come to exist later.
func (t *Tokens) remember(sum [sha256.Size]byte, k knownToken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= tokenMost {
		for other, old := range t.known {
			if k.at.Sub(old.at) >= tokenAge {
				delete(t.known, other)
			}
		}
		if len(t.known) >= tokenMost {
			clear(t.known)
		}
	}
	t.known[sum] = k
}

func unknownToken() error {
	return control.Errorf(control.CodeUnauthorized, "the API token is missing, unknown, revoked or expired")
}

func orNull(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

func orZero(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}
