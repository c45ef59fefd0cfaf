package facts

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/monitor"
	"fairlane/control/plan"
	"fairlane/policy/access"
)

// machine collects what Machine reads.
type machine struct{ monitor.Machine }

const (
	sqlMachineStarvation = `SELECT lane, exempt, bound_seconds, oldest_at, tenants, capped, checked_at FROM starvation_lane ORDER BY lane`
	sqlMachineSchedulers = `SELECT pool_group, status - 'tenants' FROM scheduler_status ORDER BY pool_group`
	sqlMachineSampled    = `SELECT max(at) FROM account_sample WHERE step = 10`
)

func (x *machine) queuePast(b *pgx.Batch) {
	b.Queue(sqlMachineStarvation).Query(func(rows pgx.Rows) (err error) {
		x.Starvation, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (l monitor.LaneStarvation, err error) {
			var oldest *time.Time
			err = row.Scan(&l.Lane, &l.Exempt, &l.BoundSeconds, &oldest, &l.Tenants, &l.Capped, &l.CheckedAt)
			l.OldestAt = instant(oldest)
			return l, err
		})
		return err
	})
	b.Queue(sqlMachineSchedulers).Query(func(rows pgx.Rows) (err error) {
		x.Schedulers, err = collectStatuses(rows)
		return err
	})
	b.Queue(sqlMachineSampled).QueryRow(func(row pgx.Row) error {
		var at *time.Time
		err := row.Scan(&at)
		x.SampledAt = instant(at)
		return err
	})
}

func collectStatuses(rows pgx.Rows) (map[string]plan.Status, error) {
	out := map[string]plan.Status{}
	_, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (_ struct{}, err error) {
		var group string
		var status plan.Status
		if err = row.Scan(&group, &status); err == nil {
			out[group] = status
		}
		return struct{}{}, err
	})
	return out, err
}

const (
	sqlTasksNow = `SELECT task_id, state, version, attempts_made::bigint FROM generation_task WHERE task_id = ANY($1)`

	sqlTenantsNow = `
		SELECT r.tenant_id, r.lane, r.queued_tasks, r.queued_units, r.running_tasks, r.running_units, r.debt_milli, o.queued_since
		FROM tenant_lane_runtime r
		LEFT JOIN LATERAL (SELECT queued_since FROM generation_task g WHERE r.queued_tasks > 0
		      AND g.state = 'QUEUED' AND g.tenant_id = r.tenant_id AND g.queue_class = r.lane ORDER BY queued_since LIMIT 1) o ON true
		WHERE r.tenant_id = ANY($1) ORDER BY r.tenant_id, r.lane`
)

// TasksNow reads what moves in a few tasks.
func (m *Monitor) TasksNow(ctx context.Context, ids []uuid.UUID) ([]monitor.TaskNow, error) {
	rows, err := m.db.pool.Query(ctx, sqlTasksNow, ids)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[monitor.TaskNow])
}

// TenantsNow reads what a few tenants have in each of their lanes.
func (m *Monitor) TenantsNow(ctx context.Context, ids []uuid.UUID) ([]monitor.TenantNow, error) {
	rows, err := m.db.pool.Query(ctx, sqlTenantsNow, ids)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t monitor.TenantNow, err error) {
		var oldest *time.Time
		err = row.Scan(&t.ID, &t.Lane, &t.QueuedTasks, &t.QueuedMilli, &t.RunningTasks, &t.RunningUnits, &t.DebtMilli, &oldest)
		t.OldestAt = instant(oldest)
		return t, err
	})
}

// sqlStarved filters by what the operator may see; the rest is left to the sums of the lanes.
const sqlStarved = `
	SELECT s.lane, s.tenant_id, t.code, t.name, s.task_id, s.oldest_at, s.bound_seconds, s.turns, s.capped, s.since
	FROM starvation s JOIN tenant t USING (tenant_id) LEFT JOIN tenant_scheduling_policy p USING (tenant_id)
	WHERE ($1 OR p.service_class = ANY($2) OR s.tenant_id = ANY($3)) AND ($4 = '' OR s.lane = $4) AND ($5::uuid IS NULL OR s.tenant_id = $5)
	ORDER BY s.capped, s.since, s.lane, t.code LIMIT $6`

// Starved reads who waits longer than the bound, the longest over it first.
func (m *Monitor) Starved(ctx context.Context, q monitor.StarvedQuery) ([]monitor.Starved, error) {
	var tenant *uuid.UUID
	if q.Tenant != uuid.Nil {
		tenant = &q.Tenant
	}
	rows, err := m.db.pool.Query(ctx, sqlStarved, q.Reach.All, q.Reach.Lanes, q.Reach.Tenants, q.Lane, tenant, monitor.MaxStarvedRows)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[monitor.Starved])
}

const (
	sqlTaskOwner   = `SELECT g.tenant_id, coalesce(p.service_class, '') FROM generation_task g LEFT JOIN tenant_scheduling_policy p USING (tenant_id) WHERE g.task_id = $1`
	sqlTenantOwner = `SELECT t.tenant_id, coalesce(p.service_class, '') FROM tenant t LEFT JOIN tenant_scheduling_policy p USING (tenant_id) WHERE t.tenant_id = $1`
)

// Object tells which tenant the object of a topic is of, and its home lane; control.CodeNotFound when
// there is no such object.
func (m *Monitor) Object(ctx context.Context, t monitor.Topic) (access.Object, error) {
	prefix, id, ok := t.Object()
	sql := sqlTaskOwner
	if prefix == monitor.TenantPrefix {
		sql = sqlTenantOwner
	}
	var o access.Object
	if !ok {
		return o, control.Errorf(control.CodeNotFound, "there is no topic %q", t)
	}
	err := m.db.pool.QueryRow(ctx, sql, id).Scan(&o.Tenant, &o.Lane)
	if errors.Is(err, pgx.ErrNoRows) {
		return o, control.Errorf(control.CodeNotFound, "there is no %s", t)
	}
	return o, away(err)
}
