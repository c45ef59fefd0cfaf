package facts

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/monitor"
)

// Monitor reads what pages and live views show. It implements monitor.Source and the reading ports of
// web/console. Nothing here walks generation_task: depths come from the counters, the oldest from the
// head of a partial index.
type Monitor struct{ db *DB }

// NewMonitor reads over the connections of db.
func NewMonitor(db *DB) *Monitor { return &Monitor{db: db} }

const (
	sqlMonitorGroups = `SELECT pool_group, capacity_units, common_units, common_used FROM pool_group_account ORDER BY pool_group`

	sqlMonitorAccounts = `
		SELECT lane, pool_group, reserved_units, headroom_units, own_used, common_used, borrowed_used, lent_units, paused,
		       lendable_units, borrow_limit, lending_stopped, lending_stopped_since
		FROM lane_account ORDER BY lane, pool_group`

	// An attempt whose fate is not known keeps its units (I09); there are few of them, and they have an index.
	sqlMonitorPools = `
		SELECT p.resource_key, p.kind, p.pool_group, p.parents, p.provider, p.provider_account, p.region, p.model_code,
		       coalesce(s.capacity, p.capacity_units), coalesce(p.adaptive_limit, -1), coalesce(s.used, 0),
		       coalesce(u.attempts, 0), coalesce(u.units, 0), p.status = 'PAUSED', p.status = 'REMOVED',
		       CASE WHEN p.breaker_until > clock_timestamp() THEN p.breaker_until END
		FROM resource_pool p
		LEFT JOIN (SELECT resource_key, sum(capacity_units)::bigint AS capacity, sum(used_units)::bigint AS used
		           FROM resource_pool_shard GROUP BY resource_key) s USING (resource_key)
		LEFT JOIN (SELECT a.resource_key, count(DISTINCT a.attempt_id) AS attempts, coalesce(sum(r.reserved_units), 0)::bigint AS units
		           FROM task_attempt a
		           LEFT JOIN resource_reservation r ON r.attempt_id = a.attempt_id AND r.state = 'ACTIVE'
		           WHERE a.state IN ('UNKNOWN', 'LOST') GROUP BY a.resource_key) u USING (resource_key)
		WHERE p.status <> 'REMOVED' OR coalesce(s.used, 0) > 0
		ORDER BY p.kind = 'CAP_GROUP', p.resource_key`

	sqlMonitorQueues = `
		SELECT q.lane, q.queued_tasks, q.queued_units, q.running_tasks, q.running_units, o.queued_since
		FROM (SELECT lane, sum(queued_tasks)::bigint AS queued_tasks, sum(queued_units)::bigint AS queued_units,
		             sum(running_tasks)::bigint AS running_tasks, sum(running_units)::bigint AS running_units
		      FROM tenant_lane_runtime GROUP BY lane) q
		LEFT JOIN LATERAL (SELECT queued_since FROM generation_task
		      WHERE state = 'QUEUED' AND queue_class = q.lane ORDER BY queued_since LIMIT 1) o ON true
		ORDER BY q.lane`

	sqlMonitorPolicy = `SELECT version FROM policy_head`
)

// Capacity reads accounts, pools, queue depths and the wanted policy version at one instant.
func (m *Monitor) Capacity(ctx context.Context) (monitor.Capacity, error) {
	var c monitor.Capacity
	err := m.reading(ctx, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(sqlMonitorGroups).Query(func(rows pgx.Rows) (err error) {
			c.Groups, err = pgx.CollectRows(rows, pgx.RowToStructByPos[monitor.GroupUse])
			return err
		})
		b.Queue(sqlMonitorAccounts).Query(func(rows pgx.Rows) (err error) {
			c.Accounts, err = pgx.CollectRows(rows, scanAccount)
			return err
		})
		b.Queue(sqlMonitorPools).Query(func(rows pgx.Rows) (err error) {
			c.Pools, err = pgx.CollectRows(rows, scanPool)
			return err
		})
		b.Queue(sqlMonitorQueues).Query(func(rows pgx.Rows) (err error) {
			c.Queues, err = pgx.CollectRows(rows, scanQueue)
			return err
		})
		b.Queue(sqlMonitorPolicy).QueryRow(func(row pgx.Row) error { return row.Scan(&c.PolicyWanted) })
		return tx.SendBatch(ctx, b).Close()
	})
	return c, err
}

func scanAccount(row pgx.CollectableRow) (a monitor.AccountUse, err error) {
	var stopped *time.Time
	err = row.Scan(&a.Lane, &a.Group, &a.Reserved, &a.Headroom, &a.Own, &a.Common, &a.Borrowed, &a.Lent, &a.Paused,
		&a.Lendable, &a.BorrowLimit, &a.Stopped, &stopped)
	a.StoppedSince = instant(stopped)
	return a, err
}

func scanPool(row pgx.CollectableRow) (p monitor.PoolRow, err error) {
	var open *time.Time
	err = row.Scan(&p.Key, &p.Kind, &p.Group, &p.Parents, &p.Provider, &p.Account, &p.Region, &p.Model,
		&p.Capacity, &p.Limit, &p.Used, &p.Unknown, &p.UnknownUnits, &p.Paused, &p.Removed, &open)
	p.OpenUntil = instant(open)
	return p, err
}

func scanQueue(row pgx.CollectableRow) (q monitor.QueueUse, err error) {
	var oldest *time.Time
	err = row.Scan(&q.Lane, &q.QueuedTasks, &q.QueuedMilli, &q.RunningTasks, &q.RunningUnits, &oldest)
	q.OldestAt = instant(oldest)
	return q, err
}

const sqlMonitorDemand = `
	SELECT r.tenant_id, r.lane, p.service_class, p.weight::bigint, r.queued_tasks, r.queued_units, r.running_tasks, r.running_units, r.served_milli
	FROM tenant_lane_runtime r JOIN tenant_scheduling_policy p USING (tenant_id)
	WHERE r.queued_tasks > 0 OR r.running_tasks > 0 OR (r.served_milli > 0 AND r.updated_at >= $1)`

// Demand reads the use of every tenant that has work, or that was served and has moved after since.
func (m *Monitor) Demand(ctx context.Context, since time.Time) ([]monitor.TenantUse, error) {
	rows, err := m.db.pool.Query(ctx, sqlMonitorDemand, since)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[monitor.TenantUse])
}

const sqlMonitorIdentify = `
	SELECT t.tenant_id, t.code, t.name, o.queued_since
	FROM unnest($1::uuid[]) AS want(id) JOIN tenant t ON t.tenant_id = want.id
	LEFT JOIN LATERAL (SELECT min(first.queued_since) AS queued_since FROM tenant_lane_runtime r
	      CROSS JOIN LATERAL (SELECT queued_since FROM generation_task g
	            WHERE g.state = 'QUEUED' AND g.tenant_id = r.tenant_id AND g.queue_class = r.lane ORDER BY queued_since LIMIT 1) first
	      WHERE r.tenant_id = t.tenant_id AND r.queued_tasks > 0) o ON true`

// Identify reads names and oldest waits of a few tenants.
func (m *Monitor) Identify(ctx context.Context, ids []uuid.UUID) ([]monitor.TenantFace, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := m.db.pool.Query(ctx, sqlMonitorIdentify, ids)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f monitor.TenantFace, err error) {
		var oldest *time.Time
		err = row.Scan(&f.TenantID, &f.Code, &f.Name, &oldest)
		f.OldestAt = instant(oldest)
		return f, err
	})
}

const sqlMonitorFlow = `
	SELECT date_trunc('second', at), to_state, count(*)
	FROM task_event
	WHERE event_id >= $1 AND at >= $2 AND to_state IS NOT NULL AND from_state IS DISTINCT FROM to_state
	GROUP BY 1, 2`

// Flow counts moves by second. Events lie in the order of their version 7 ids, so that the read is a
// range of the primary key; ids are made by the processes' clocks, which may be off by the margin.
func (m *Monitor) Flow(ctx context.Context, since time.Time) ([]monitor.FlowCount, error) {
	rows, err := m.db.pool.Query(ctx, sqlMonitorFlow, firstID(since.Add(-5*time.Second)), since)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[monitor.FlowCount])
}

// firstID is the smallest version 7 id of that instant.
func firstID(at time.Time) (id uuid.UUID) {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(at.UnixMilli(), 0)))
	copy(id[:6], ms[2:])
	id[6], id[8] = 0x70, 0x80
	return id
}

const (
	sqlMonitorLeases = `SELECT name, holder, term, greatest(expires_at, 'epoch'), expires_at > clock_timestamp() FROM lease ORDER BY name`

	sqlMonitorOutbox = `
		SELECT topic.name, o.rows, o.oldest
		FROM unnest($1::text[]) AS topic(name)
		CROSS JOIN LATERAL (SELECT count(*) AS rows, min(available_at) AS oldest
		      FROM (SELECT available_at FROM outbox_event WHERE topic = topic.name LIMIT $2) AS few) o`

	sqlMonitorReplicas = `
		SELECT replica, version, coalesce(error, ''), seen_at, seen_at > clock_timestamp() - interval '10 seconds'
		FROM policy_replica WHERE seen_at > clock_timestamp() - interval '1 hour' ORDER BY replica LIMIT 200`
)

// Machine reads leases, outbox, replicas, starved lanes and schedulers; a replica that was not seen for an hour is left out.
func (m *Monitor) Machine(ctx context.Context) (monitor.Machine, error) {
	var x machine
	err := m.reading(ctx, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(sqlMonitorLeases).Query(func(rows pgx.Rows) (err error) {
			x.Leases, err = pgx.CollectRows(rows, pgx.RowToStructByPos[monitor.Lease])
			return err
		})
		b.Queue(sqlMonitorOutbox, []string{control.TopicQueue, control.TopicDispatch}, monitor.MaxOutboxRows).Query(func(rows pgx.Rows) (err error) {
			x.Outbox, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (o monitor.Outbox, err error) {
				var oldest *time.Time
				err = row.Scan(&o.Topic, &o.Rows, &oldest)
				o.OldestAt = instant(oldest)
				return o, err
			})
			return err
		})
		b.Queue(sqlMonitorReplicas).Query(func(rows pgx.Rows) (err error) {
			x.Replicas, err = pgx.CollectRows(rows, pgx.RowToStructByPos[monitor.Replica])
			return err
		})
		x.queuePast(b)
		return tx.SendBatch(ctx, b).Close()
	})
	return x.Machine, err
}

// reading runs fn on one snapshot of the facts, so that sums over several tables agree.
func (m *Monitor) reading(ctx context.Context, fn func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, m.db.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, fn)
}

func instant(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
