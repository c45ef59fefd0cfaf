package facts

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control/monitor"
)

// stepFor is the longest step that still gives each bin a sample of its own.
func stepFor(bin time.Duration) int {
	switch {
	case bin >= monitor.StepHour:
		return int(monitor.StepHour.Seconds())
	case bin >= monitor.StepMinute:
		return int(monitor.StepMinute.Seconds())
	}
	return int(monitor.StepFine.Seconds())
}

// Samples of one instant are summed over pool groups first; a bin is the mean over its instants.
const sqlLanePast = `
	SELECT at, coalesce(reserved, 0), coalesce(headroom, 0), coalesce(own, 0), coalesce(common, 0), coalesce(borrowed, 0), coalesce(lent, 0),
	       coalesce(queued, 0), coalesce(running, 0), coalesce(oldest, 0)
	FROM (SELECT date_bin(make_interval(secs => $3), at, 'epoch') AS at, avg(reserved) AS reserved, avg(headroom) AS headroom, avg(own) AS own,
	             avg(common) AS common, avg(borrowed) AS borrowed, avg(lent) AS lent
	      FROM (SELECT at, sum(reserved) AS reserved, sum(headroom) AS headroom, sum(own) AS own, sum(common) AS common, sum(borrowed) AS borrowed, sum(lent) AS lent
	            FROM account_sample WHERE lane = $1 AND step = $2 AND at >= $4 GROUP BY at) whole GROUP BY 1) a
	FULL JOIN (SELECT date_bin(make_interval(secs => $3), at, 'epoch') AS at, avg(queued_tasks) AS queued, avg(running_tasks) AS running, max(oldest_seconds) AS oldest
	      FROM lane_sample WHERE lane = $1 AND step = $2 AND at >= $4 GROUP BY 1) l USING (at)
	ORDER BY at`

// LanePast reads what a lane held, in bins of that length from an instant on, the oldest first.
func (m *Monitor) LanePast(ctx context.Context, lane string, from time.Time, bin time.Duration) ([]monitor.AccountPoint, error) {
	rows, err := m.db.pool.Query(ctx, sqlLanePast, lane, stepFor(bin), bin.Seconds(), from)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[monitor.AccountPoint])
}

var sqlTenantPast = `
	SELECT date_bin(make_interval(secs => $4), at, 'epoch'), ` + sumTenants + `
	FROM tenant_sample WHERE tenant_id = $1 AND lane = $2 AND step = $3 AND at >= $5 GROUP BY 1 ORDER BY 1`

// TenantPast reads how a tenant was served in a lane, in bins of that length from an instant on. Bins in
// which it had no work are missing.
func (m *Monitor) TenantPast(ctx context.Context, tenant uuid.UUID, lane string, from time.Time, bin time.Duration) ([]monitor.TenantPoint, error) {
	step := max(stepFor(bin), int(monitor.StepMinute.Seconds()))
	rows, err := m.db.pool.Query(ctx, sqlTenantPast, tenant, lane, step, bin.Seconds(), from)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[monitor.TenantPoint])
}

const sqlTenantLanes = `
	SELECT r.lane, ''::text, 0::bigint, r.debt_milli, r.updated_at FROM tenant_lane_runtime r
	WHERE r.tenant_id = $1 AND (r.queued_tasks > 0 OR r.running_tasks > 0 OR r.debt_milli <> 0 OR r.served_milli > 0) ORDER BY r.lane`

// Debts reads what a tenant owes, or has in credit, in every lane in which it ever ran.
func (m *Monitor) Debts(ctx context.Context, tenant uuid.UUID) ([]monitor.PlaceRow, error) {
	rows, err := m.db.pool.Query(ctx, sqlTenantLanes, tenant)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[monitor.PlaceRow])
}

// Whole hours of the day come from the hourly sums, the rest from minutes.
const (
	sqlPromise = `
		SELECT coalesce(sum(loans), 0)::bigint, coalesce(sum(units), 0)::bigint, coalesce(sum(kept), 0)::bigint, coalesce(sum(kept_units), 0)::bigint
		FROM loan_sample WHERE lender = $1 AND step = $2 AND at >= $3`

	sqlHourMark = `SELECT coalesce((SELECT done_until FROM history_mark WHERE series = 'loans:3600'), 'epoch'), clock_timestamp()`

	sqlMisses = `
		SELECT r.task_id, r.tenant_id, t.code, coalesce(p.service_class, ''), r.lane, r.pool_group, r.resource_key, r.reserved_units,
		       r.borrowed_at, r.borrow_due_at, r.returned_at, a.state IN ('UNKNOWN', 'LOST')
		FROM ((SELECT * FROM resource_reservation WHERE borrowed_from = $1 AND borrowed_at IS NOT NULL AND returned_at IS NULL
		         AND borrow_due_at >= $3::timestamptz - interval '1 day' AND borrow_due_at < $3::timestamptz ORDER BY borrow_due_at DESC LIMIT $2)
		      UNION ALL
		      (SELECT * FROM resource_reservation WHERE borrowed_from = $1 AND returned_at > borrow_due_at
		         AND returned_at >= $3::timestamptz - interval '1 day' ORDER BY returned_at DESC LIMIT $2)
		      ORDER BY borrow_due_at DESC LIMIT $2) r
		JOIN task_attempt a USING (attempt_id) JOIN tenant t ON t.tenant_id = r.tenant_id
		LEFT JOIN tenant_scheduling_policy p ON p.tenant_id = r.tenant_id
		ORDER BY r.borrow_due_at DESC`
)

// Promise reads how a lender's promise was kept over the last hour and day.
func (m *Monitor) Promise(ctx context.Context, lender string) (monitor.Promise, error) {
	var p monitor.Promise
	err := m.custom(ctx, func(tx pgx.Tx) error {
		var mark, now time.Time
		if err := tx.QueryRow(ctx, sqlHourMark).Scan(&mark, &now); err != nil {
			return err
		}
		read := func(step int, from time.Time) (k monitor.PromiseKept, err error) {
			err = tx.QueryRow(ctx, sqlPromise, lender, step, from).Scan(&k.Loans, &k.Units, &k.Kept, &k.KeptUnits)
			return k, err
		}
		var hours, minutes monitor.PromiseKept
		var err error
		day := now.Add(-24 * time.Hour)
		if p.Hour, err = read(60, now.Add(-time.Hour)); err != nil {
			return err
		}
		if hours, err = read(3600, day); err != nil {
			return err
		}
		if mark.Before(day) {
			mark = day
		}
		if minutes, err = read(60, mark); err != nil {
			return err
		}
		p.Day = monitor.PromiseKept{Loans: hours.Loans + minutes.Loans, Units: hours.Units + minutes.Units,
			Kept: hours.Kept + minutes.Kept, KeptUnits: hours.KeptUnits + minutes.KeptUnits}
		rows, err := tx.Query(ctx, sqlMisses, lender, monitor.MaxMisses, now)
		if err != nil {
			return err
		}
		p.Misses, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (l monitor.MissedLoan, err error) {
			var returned *time.Time
			err = row.Scan(&l.TaskID, &l.TenantID, &l.TenantCode, &l.HomeLane, &l.Lane, &l.Group, &l.Pool, &l.Units,
				&l.BorrowedAt, &l.DueAt, &returned, &l.Unknown)
			l.ReturnedAt = instant(returned)
			return l, err
		})
		return err
	})
	return p, err
}

const sqlLoans = `
	SELECT r.borrowed_from, r.lane, r.pool_group, r.tenant_id, t.code, t.name, coalesce(p.service_class, ''),
	       count(DISTINCT r.attempt_id), sum(r.reserved_units)::bigint, min(r.borrow_due_at)
	FROM resource_reservation r JOIN tenant t USING (tenant_id) LEFT JOIN tenant_scheduling_policy p USING (tenant_id)
	WHERE r.borrowed_at IS NOT NULL AND r.returned_at IS NULL
	  AND ($1 = '' OR r.borrowed_from = $1) AND ($2 = '' OR r.lane = $2)
	GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY sum(r.reserved_units) DESC, t.code, r.lane, r.pool_group LIMIT $3`

// Loans reads who runs on a lender's units, or on whose units a borrower runs; "" is any. The largest first.
func (m *Monitor) Loans(ctx context.Context, lender, borrower string) ([]monitor.Loan, error) {
	var loans []monitor.Loan
	err := m.custom(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlLoans, lender, borrower, monitor.MaxLoanRows)
		if err != nil {
			return err
		}
		loans, err = pgx.CollectRows(rows, pgx.RowToStructByPos[monitor.Loan])
		return err
	})
	return loans, err
}

const sqlShards = `SELECT shard_no::bigint, capacity_units, used_units FROM resource_pool_shard WHERE resource_key = $1 ORDER BY shard_no LIMIT 256`

// Shards reads the counters of a pool, shard by shard.
func (m *Monitor) Shards(ctx context.Context, pool string) ([]monitor.Shard, error) {
	rows, err := m.db.pool.Query(ctx, sqlShards, pool)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[monitor.Shard])
}

const sqlPoolLanes = `
	SELECT lane, sum(reserved_units)::bigint, coalesce(sum(reserved_units) FILTER (WHERE account = 'BORROWED'), 0)::bigint
	FROM resource_reservation WHERE state = 'ACTIVE' AND resource_key = $1 GROUP BY lane ORDER BY lane`

// PoolLanes reads what each lane holds in a leaf pool.
func (m *Monitor) PoolLanes(ctx context.Context, pool string) ([]monitor.PoolLane, error) {
	rows, err := m.db.pool.Query(ctx, sqlPoolLanes, pool)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[monitor.PoolLane])
}
