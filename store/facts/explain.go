package facts

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/explain"
	"fairlane/control/queue"
)

// Explains implements explain.Store.
type Explains struct {
	*Snapshots
	db *DB
}

// NewExplains reads through db.
func NewExplains(db *DB) *Explains { return &Explains{NewSnapshots(db), db} }

const (
	maxExplained = 2_000  // tasks of the tenant that are read: the first of them by band and time
	maxAhead     = 10_000 // tasks before it that are counted
)

// Waits reads a waiting task with what an explanation needs beside it; control.CodeNotFound when no such
// task waits. At most 2,000 tasks of its tenant are read, and at most 10,000 before it counted.
func (e *Explains) Waits(ctx context.Context, task uuid.UUID) (explain.Facts, error) {
	var f explain.Facts
	found := false
	first := &pgx.Batch{}
	first.Queue(pointPlans).Exec(ignoreTag)
	first.Queue(`SELECT `+itemColumns+` FROM generation_task WHERE task_id = $1 AND state = 'QUEUED'`, task).
		Query(scanAll(func(r pgx.Rows) (err error) {
			f.Item, _, err = scanItem(r)
			found = true
			return err
		}))
	if err := e.db.pipeline(ctx, first); err != nil {
		return f, fmt.Errorf("explain: %w", away(err))
	}
	if !found {
		return f, control.Errorf(control.CodeNotFound, "no task %s waits", task)
	}
	f.Waiting = []queue.Item{f.Item}
	it, b := &f.Item, &pgx.Batch{}
	b.Queue(pointPlans).Exec(ignoreTag)
	b.Queue(`SELECT tenant_id, code, name, plan_code, status FROM tenant WHERE tenant_id = $1`, it.TenantID).
		QueryRow(func(r pgx.Row) error {
			return r.Scan(&f.Tenant.ID, &f.Tenant.Code, &f.Tenant.Name, &f.Tenant.PlanCode, &f.Tenant.Status)
		})
	b.Queue(`
		SELECT `+itemColumns+` FROM generation_task
		WHERE state = 'QUEUED' AND queue_class = $1 AND tenant_id = $2 AND task_id <> $3
		ORDER BY priority_band, next_eligible_at, enqueue_at LIMIT $4`, it.Lane, it.TenantID, task, maxExplained).
		Query(scanAll(func(r pgx.Rows) error {
			item, _, err := scanItem(r)
			f.Waiting = append(f.Waiting, item)
			return err
		}))
	b.Queue(`
		SELECT count(*) FROM (SELECT FROM generation_task
		    WHERE state = 'QUEUED' AND queue_class = $1 AND tenant_id = $2 AND (priority_band, queued_since, task_id) < ($3, $4, $5) LIMIT $6) t`,
		it.Lane, it.TenantID, it.Band, it.QueuedSince, task, maxAhead).
		QueryRow(func(r pgx.Row) error { return r.Scan(&f.Ahead) })
	b.Queue(`
		SELECT coalesce(sum(queued_tasks), 0)::bigint, coalesce(sum(queued_units), 0)::bigint, count(*) FILTER (WHERE queued_tasks > 0 AND tenant_id <> $2)
		FROM tenant_lane_runtime WHERE lane = $1`, it.Lane, it.TenantID).
		QueryRow(func(r pgx.Row) error { return r.Scan(&f.Lane.Tasks, &f.Lane.Milli, &f.Lane.Others) })
	b.Queue(`SELECT pool_group, status FROM scheduler_status WHERE pool_group = $1`, it.Group).
		Query(func(rows pgx.Rows) error {
			all, err := collectStatuses(rows)
			f.Status = all[it.Group]
			return err
		})
	if err := e.db.pipeline(ctx, b); err != nil {
		return f, fmt.Errorf("explain: %w", away(err))
	}
	return f, nil
}
