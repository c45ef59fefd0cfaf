package facts

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Leases implements lead.Leases on the lease table. Terms only rise, also over releases.
type Leases struct{ db *DB }

// NewLeases returns the leases of that database.
func NewLeases(db *DB) *Leases { return &Leases{db: db} }

// Acquire takes a free or run-out lease with the next term; held is false while another's is good.
func (l *Leases) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (int64, bool, error) {
	var term int64
	err := l.db.pool.QueryRow(ctx, `
		INSERT INTO lease AS l (name, holder, term, expires_at)
		VALUES ($1, $2, 1, clock_timestamp() + $3::interval)
		ON CONFLICT (name) DO UPDATE
		SET holder = EXCLUDED.holder, term = l.term + 1, expires_at = EXCLUDED.expires_at
		WHERE l.expires_at <= clock_timestamp()
		RETURNING term`, name, holder, ttl).Scan(&term)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return term, err == nil, err
}

// Renew prolongs the lease of that term; false when it ran out of holders' hands.
func (l *Leases) Renew(ctx context.Context, name, holder string, term int64, ttl time.Duration) (bool, error) {
	tag, err := l.db.pool.Exec(ctx, `
		UPDATE lease SET expires_at = clock_timestamp() + $4::interval
		WHERE name = $1 AND holder = $2 AND term = $3`, name, holder, term, ttl)
	return tag.RowsAffected() == 1, err
}

// Release ends the lease of that term; the row stays, so that the next term is higher.
func (l *Leases) Release(ctx context.Context, name, holder string, term int64) error {
	_, err := l.db.pool.Exec(ctx, `
		UPDATE lease SET expires_at = '-infinity' WHERE name = $1 AND holder = $2 AND term = $3`, name, holder, term)
	return err
}

// Lease is one row of the table, for the health page.
type Lease struct {
	Name    string
	Holder  string
	Term    int64
	Expires time.Time
	Held    bool
}

// List returns all leases by name.
func (l *Leases) List(ctx context.Context) ([]Lease, error) {
	rows, err := l.db.pool.Query(ctx, `
		SELECT name, holder, term, greatest(expires_at, 'epoch'), expires_at > clock_timestamp() FROM lease ORDER BY name`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Lease])
}
