package facts

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control/monitor"
	"fairlane/control/plan"
)

// Statuses keeps what the schedulers remember from cycle to cycle, for pages.
type Statuses struct{ db *DB }

// NewStatuses keeps them over the connections of db.
func NewStatuses(db *DB) *Statuses { return &Statuses{db: db} }

// An older term never overwrites, nor does an older cycle of the same term.
const sqlPutStatus = `
	INSERT INTO scheduler_status (pool_group, term, at, status) VALUES ($1, $2, $3, $4)
	ON CONFLICT (pool_group) DO UPDATE SET term = excluded.term, at = excluded.at, status = excluded.status
	WHERE (scheduler_status.term, scheduler_status.at) <= (excluded.term, excluded.at)`

// PutStatus keeps what the scheduler of a pool group holds in that term of its lease. What comes late
// from an earlier holder changes nothing.
func (s *Statuses) PutStatus(ctx context.Context, group string, term int64, status plan.Status) error {
	raw, err := json.Marshal(status)
	if err != nil {
		return err
	}
	_, err = s.db.pool.Exec(ctx, sqlPutStatus, group, term, status.At, raw)
	return err
}

// Statuses reads the latest of every pool group.
func (s *Statuses) Statuses(ctx context.Context) (map[string]plan.Status, error) {
	rows, err := s.db.pool.Query(ctx, `SELECT pool_group, status FROM scheduler_status ORDER BY pool_group`)
	if err != nil {
		return nil, err
	}
	return collectStatuses(rows)
}

const sqlPlaces = `
	SELECT t.tenant->>'lane', s.pool_group, (t.tenant->>'deficit_milli')::bigint, (t.tenant->>'debt_milli')::bigint, s.at
	FROM scheduler_status s CROSS JOIN LATERAL jsonb_array_elements(coalesce(nullif(s.status->'tenants', 'null'), '[]')) t(tenant)
	WHERE t.tenant->>'tenant' = $1::text
	ORDER BY 1, 2`

// Places reads where a tenant stands in its rings; none where nothing of it waits.
func (m *Monitor) Places(ctx context.Context, tenant uuid.UUID) ([]monitor.PlaceRow, error) {
	rows, err := m.db.pool.Query(ctx, sqlPlaces, tenant.String())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[monitor.PlaceRow])
}
