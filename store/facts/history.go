package facts

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/monitor"
)

// History writes the samples that charts and reports show. Every method may be called again at any time
// and by anybody: a series goes on from its mark, which moves in the transaction that writes.
type History struct{ db *DB }

// NewHistory writes over the connections of db.
func NewHistory(db *DB) *History { return &History{db: db} }

// settleAfter is how long after an instant everything that carries its time has been committed.
const settleAfter = 15 * time.Second

const (
	sqlSampleAccounts = `
		INSERT INTO account_sample (lane, pool_group, step, at, reserved, headroom, own, common, borrowed, lent)
		SELECT lane, pool_group, 10, date_bin('10 seconds', clock_timestamp(), 'epoch'), reserved_units, headroom_units,
		       own_used, common_used, borrowed_used, lent_units
		FROM lane_account ON CONFLICT DO NOTHING`

	sqlSampleLanes = `
		INSERT INTO lane_sample (lane, step, at, queued_tasks, running_tasks, oldest_seconds)
		SELECT q.lane, 10, date_bin('10 seconds', clock_timestamp(), 'epoch'), q.queued_tasks, q.running_tasks,
		       coalesce(greatest(extract(epoch FROM clock_timestamp() - q.queued_since), 0), 0)
		FROM (` + sqlMonitorQueues + `) q ON CONFLICT DO NOTHING`
)

// Sample writes what every lane holds now; a second call within ten seconds adds nothing.
func (h *History) Sample(ctx context.Context) (int64, error) {
	var n int64
	err := h.db.Tx(ctx, func(tx pgx.Tx) error {
		accounts, err := tx.Exec(ctx, sqlSampleAccounts)
		if err != nil {
			return err
		}
		lanes, err := tx.Exec(ctx, sqlSampleLanes)
		n = accounts.RowsAffected() + lanes.RowsAffected()
		return err
	})
	return n, err
}

// series is samples of one step made from what is finer.
type series struct {
	name  string
	of    string        // series that it is made of; "": of facts, up to settleAfter ago
	step  time.Duration // of its samples
	chunk time.Duration // most that one transaction makes
	reach time.Duration // what lies further back is not made up for: a gap
	sql   []string      // each takes from and to
	args  func(from, to time.Time) []any
}

var allSeries = []series{
	{name: "lanes:60", step: monitor.StepMinute, chunk: time.Hour, reach: 3 * time.Hour, sql: []string{rollAccounts(60, 10), rollLanes(60, 10)}},
	{name: "lanes:3600", of: "lanes:60", step: monitor.StepHour, chunk: 12 * time.Hour, reach: 36 * time.Hour, sql: []string{rollAccounts(3600, 60), rollLanes(3600, 60)}},
	{name: "tenants:60", step: monitor.StepMinute, chunk: time.Minute, reach: time.Hour, sql: []string{sqlTenantMinute}, args: tenantMinuteArgs},
	{name: "tenants:3600", of: "tenants:60", step: monitor.StepHour, chunk: time.Hour, reach: 5 * time.Hour, sql: []string{sqlTenantHour}},
	{name: "loans:60", step: monitor.StepMinute, chunk: 10 * time.Minute, reach: 24 * time.Hour, sql: []string{sqlLoanMinute}},
	{name: "loans:3600", of: "loans:60", step: monitor.StepHour, chunk: 12 * time.Hour, reach: 24 * time.Hour, sql: []string{sqlLoanHour}},
}

// rollsMost bounds how many transactions one call makes for one series.
const rollsMost = 90

// Roll makes the samples that are due, the finer series first, and returns how many it wrote.
func (h *History) Roll(ctx context.Context) (int64, error) {
	var wrote int64
	for _, s := range allSeries {
		for range rollsMost {
			n, more, err := h.roll(ctx, s)
			wrote += n
			if err != nil {
				return wrote, err
			}
			if !more {
				break
			}
		}
	}
	return wrote, nil
}

const (
	sqlMark = `
		SELECT m.done_until, date_bin(make_interval(secs => $2), coalesce((SELECT o.done_until FROM history_mark o WHERE o.series = $3),
		       clock_timestamp() - make_interval(secs => $4)), 'epoch')
		FROM history_mark m WHERE m.series = $1 FOR UPDATE OF m`

	sqlFirstMark = `
		INSERT INTO history_mark (series, done_until)
		SELECT $1, date_bin(make_interval(secs => $2), clock_timestamp(), 'epoch') ON CONFLICT DO NOTHING`

	sqlMoveMark = `UPDATE history_mark SET done_until = $2 WHERE series = $1`
)

func (h *History) roll(ctx context.Context, s series) (wrote int64, more bool, err error) {
	err = h.db.Tx(ctx, func(tx pgx.Tx) error {
		wrote, more = 0, false
		var from, end time.Time
		switch err := tx.QueryRow(ctx, sqlMark, s.name, s.step.Seconds(), s.of, settleAfter.Seconds()).Scan(&from, &end); {
		case errors.Is(err, pgx.ErrNoRows):
			_, err := tx.Exec(ctx, sqlFirstMark, s.name, s.step.Seconds())
			return err
		case err != nil:
			return err
		}
		if first := end.Add(-s.reach); from.Before(first) {
			from = first
		}
		if !from.Before(end) {
			return nil
		}
		to := from.Add(s.chunk)
		if more = to.Before(end); !more {
			to = end
		}
		args := []any{from, to}
		if s.args != nil {
			args = s.args(from, to)
		}
		for _, sql := range s.sql {
			tag, err := tx.Exec(ctx, sql, args...)
			if err != nil {
				return err
			}
			wrote += tag.RowsAffected()
		}
		_, err := tx.Exec(ctx, sqlMoveMark, s.name, to)
		return err
	})
	return wrote, more, err
}

func tenantMinuteArgs(from, to time.Time) []any {
	const margin = 5 * time.Second // between the clocks that made the ids and the database's
	return []any{from, to, firstID(from.Add(-margin)), firstID(to.Add(margin)), control.EventTaskClaimed, monitor.WaitBounds}
}

// keeps is how long samples of a step stay.
var keeps = []struct {
	table string
	step  time.Duration
	keep  time.Duration
}{
	{"account_sample", monitor.StepFine, 3 * time.Hour},
	{"account_sample", monitor.StepMinute, 48 * time.Hour},
	{"account_sample", monitor.StepHour, 90 * 24 * time.Hour},
	{"lane_sample", monitor.StepFine, 3 * time.Hour},
	{"lane_sample", monitor.StepMinute, 48 * time.Hour},
	{"lane_sample", monitor.StepHour, 90 * 24 * time.Hour},
	{"tenant_sample", monitor.StepMinute, 6 * time.Hour},
	{"tenant_sample", monitor.StepHour, 35 * 24 * time.Hour},
	{"loan_sample", monitor.StepMinute, 26 * time.Hour},
	{"loan_sample", monitor.StepHour, 90 * 24 * time.Hour},
}

// Forget deletes samples whose time is over, at most limit of each kind, and returns how many the
// kind with the most had.
func (h *History) Forget(ctx context.Context, limit int) (int, error) {
	most := 0
	for _, k := range keeps {
		tag, err := h.db.pool.Exec(ctx, `DELETE FROM `+k.table+` WHERE ctid IN (SELECT ctid FROM `+k.table+`
			WHERE step = $1 AND at < clock_timestamp() - make_interval(secs => $2) LIMIT $3)`, int(k.step.Seconds()), k.keep.Seconds(), limit)
		if err != nil {
			return most, err
		}
		most = max(most, int(tag.RowsAffected()))
	}
	return most, nil
}
