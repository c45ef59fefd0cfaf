package facts

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/policy"
	"fairlane/store/facts/sqlc"
)

// keptVersions is how many decoded documents are kept: the one in force, its base, and a page's worth
// of comparisons. Versions never change, so that none can be stale.
const keptVersions = 8

// Policies are the policy versions and everything that they say to claims and admissions.
type Policies struct {
	db *DB

	mu    sync.Mutex
	known map[int64]policy.Version
	order []int64 // oldest use first
}

// NewPolicies returns the policy versions of that database.
func NewPolicies(db *DB) *Policies { return &Policies{db: db, known: map[int64]policy.Version{}} }

// HeadNumber returns the number of the newest version; 0 before the first.
func (p *Policies) HeadNumber(ctx context.Context) (int64, error) {
	n, err := sqlc.New(p.db.pool).PolicyHead(ctx)
	return n, away(err)
}

// Head returns the newest version; CodeNotFound before the first.
func (p *Policies) Head(ctx context.Context) (policy.Version, error) {
	n, err := p.HeadNumber(ctx)
	if err != nil {
		return policy.Version{}, err
	}
	if n == 0 {
		return policy.Version{}, control.Errorf(control.CodeNotFound, "no policy version has been published yet")
	}
	return p.Version(ctx, n)
}

// Version returns one version; CodeNotFound when there is none of that number. A document that is not
// what its digest says is an error.
func (p *Policies) Version(ctx context.Context, number int64) (policy.Version, error) {
	return p.version(ctx, p.db.pool, number)
}

func (p *Policies) version(ctx context.Context, db sqlc.DBTX, number int64) (policy.Version, error) {
	if v, ok := p.recall(number); ok {
		return v, nil
	}
	row, err := sqlc.New(db).PolicyVersion(ctx, number)
	if errors.Is(err, pgx.ErrNoRows) {
		return policy.Version{}, control.Errorf(control.CodeNotFound, "no policy version %d", number)
	}
	if err != nil {
		return policy.Version{}, away(err)
	}
	digest := policy.Digest([]byte(row.Document))
	if string(digest[:]) != string(row.Digest) {
		return policy.Version{}, fmt.Errorf("policy version %d is not what was published: its digest differs", number)
	}
	doc, err := policy.Decode([]byte(row.Document))
	if err != nil {
		return policy.Version{}, fmt.Errorf("policy version %d: %w", number, err)
	}
	v := policy.Version{
		Number: row.Version, Base: row.BaseVersion, Document: doc, Digest: digest, Reason: row.Reason,
		ActorID: valueOf(row.ActorID), ActorName: row.ActorName, RestoredFrom: valueOf(row.RestoredFrom), CreatedAt: row.CreatedAt,
	}
	p.remember(v)
	return v, nil
}

func (p *Policies) recall(number int64) (policy.Version, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.known[number]
	return v, ok
}

// remember keeps a version that is committed.
func (p *Policies) remember(v policy.Version) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.known[v.Number]; ok {
		return
	}
	if len(p.order) >= keptVersions {
		delete(p.known, p.order[0])
		p.order = p.order[1:]
	}
	p.known[v.Number] = v
	p.order = append(p.order, v.Number)
}

// List returns versions, newest first: those before the number before (0: from the newest), at most limit.
func (p *Policies) List(ctx context.Context, before int64, limit int) ([]policy.Summary, error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	rows, err := sqlc.New(p.db.pool).PolicyVersions(ctx, before, int32(min(max(limit, 1), 500))) //nolint:gosec // bounded
	if err != nil {
		return nil, away(err)
	}
	out := make([]policy.Summary, len(rows))
	for i, r := range rows {
		out[i] = policy.Summary{
			Number: r.Version, Reason: r.Reason, ActorID: valueOf(r.ActorID), ActorName: r.ActorName,
			RestoredFrom: valueOf(r.RestoredFrom), CreatedAt: r.CreatedAt,
		}
		copy(out[i].Digest[:], r.Digest)
	}
	return out, nil
}

// Seen implements policy.Source.
func (p *Policies) Seen(ctx context.Context, replica string, version int64, problem string) error {
	var text *string
	if problem != "" {
		short := policy.Printable(problem, 500)
		text = &short
	}
	_, err := p.db.pool.Exec(ctx, `
		INSERT INTO policy_replica (replica, version, error) VALUES ($1, $2, $3)
		ON CONFLICT (replica) DO UPDATE SET version = excluded.version, error = excluded.error, seen_at = clock_timestamp()`,
		replica, version, text)
	return away(err)
}

// Replicas returns what every process last wrote down about itself.
func (p *Policies) Replicas(ctx context.Context) ([]policy.Replica, error) {
	rows, err := sqlc.New(p.db.pool).PolicyReplicas(ctx)
	if err != nil {
		return nil, away(err)
	}
	out := make([]policy.Replica, len(rows))
	for i, r := range rows {
		out[i] = policy.Replica{Name: r.Replica, Version: r.Version, Problem: valueOf(r.Error), SeenAt: r.SeenAt}
	}
	return out, nil
}

func idOf(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}
