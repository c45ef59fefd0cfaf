package facts

import (
	"context"
	"fmt"
)

// Installation names this installation among others that may share a Redis: the first digits of its first
// audit record's hash, which holds the time of its first policy. It never changes. There must be a record.
func (a *Audits) Installation(ctx context.Context) (string, error) {
	var name string
	if err := a.db.pool.QueryRow(ctx, `SELECT left(encode(hash, 'hex'), 16) FROM audit_event ORDER BY sequence LIMIT 1`).Scan(&name); err != nil {
		return "", fmt.Errorf("installation: %w", err)
	}
	return name, nil
}
