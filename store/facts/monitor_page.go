package facts

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/monitor"
)

// The page is cut from tenant_name_idx first and its counters are joined to its 50 rows only.
const sqlTenantPage = `
	SELECT t.tenant_id, t.code, t.name, lower(t.name), t.plan_code, t.status, coalesce(p.service_class, ''), coalesce(p.weight, 0)::bigint,
	       coalesce(r.running_tasks, 0), coalesce(r.running_units, 0), coalesce(r.queued_tasks, 0), coalesce(r.queued_units, 0)
	FROM tenant t
	LEFT JOIN tenant_scheduling_policy p USING (tenant_id)
	LEFT JOIN tenant_runtime r USING (tenant_id)
	WHERE (lower(t.name), t.tenant_id) > ($1, $2)
	  AND ($3 = '' OR lower(t.name) LIKE $3 OR lower(t.code) LIKE $3)
	  AND ($4 = '' OR p.service_class = $4)
	  AND ($5 OR p.service_class = ANY($6) OR t.tenant_id = ANY($7))
	ORDER BY lower(t.name), t.tenant_id
	LIMIT $8`

// Tenants returns one page of tenants by name.
func (m *Monitor) Tenants(ctx context.Context, q monitor.TenantQuery) ([]monitor.TenantEntry, error) {
	rows, err := m.db.pool.Query(ctx, sqlTenantPage, q.AfterName, q.AfterID, contains(q.Text), q.Lane,
		q.Reach.All, q.Reach.Lanes, q.Reach.Tenants, pageLimit(q.Limit))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t monitor.TenantEntry, err error) {
		err = row.Scan(&t.ID, &t.Code, &t.Name, &t.SortName, &t.Plan, &t.Status, &t.Lane, &t.Weight,
			&t.Running, &t.RunningUnits, &t.QueuedTasks, &t.QueuedMilli)
		return t, err
	})
}

// FindTenant returns the tenant of that code or id; control.CodeNotFound when there is none.
func (m *Monitor) FindTenant(ctx context.Context, text string) (monitor.TenantFace, error) {
	id, err := uuid.Parse(text)
	if err != nil {
		id = uuid.Nil
	}
	var f monitor.TenantFace
	err = m.db.pool.QueryRow(ctx, `SELECT tenant_id, code, name FROM tenant WHERE code = $1 OR tenant_id = $2 ORDER BY code = $1 DESC LIMIT 1`, text, id).
		Scan(&f.TenantID, &f.Code, &f.Name)
	if errors.Is(err, pgx.ErrNoRows) {
		return f, control.Errorf(control.CodeNotFound, "there is no tenant %q", text)
	}
	return f, err
}

// contains makes a LIKE pattern that finds text anywhere, whatever characters it has; "" stays "".
func contains(text string) string {
	if text == "" {
		return ""
	}
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.ToLower(text)) + "%"
}

func pageLimit(n int) int { return max(1, min(n, monitor.PageRows+1)) }

// taskScan is how many tasks a page looks at for filters that have no index of their own.
const taskScan = 20_000

// State and tenant have indexes in the order of the list; lane, model and reach filter what those yield.
const (
	sqlTaskWindow = `
	SELECT task_id, tenant_id, queue_class, pool_group, model_code, kind, priority_band, state, provider_slot_units, fairness_units,
	       queued_since, created_at, started_at, finished_at, attempts_made
	FROM generation_task
	WHERE task_id < $1 AND ($2 = '' OR state = $2) AND ($3::uuid IS NULL OR tenant_id = $3)
	ORDER BY task_id DESC LIMIT 20000`

	sqlTaskPage = `
	SELECT g.task_id, g.tenant_id, t.code, t.name, g.queue_class, g.pool_group, g.model_code, g.kind, g.priority_band, g.state,
	       g.provider_slot_units, g.fairness_units, g.queued_since, g.created_at, g.started_at, g.finished_at, g.attempts_made::bigint
	FROM (` + sqlTaskWindow + `) g
	JOIN tenant t USING (tenant_id)
	LEFT JOIN tenant_scheduling_policy p USING (tenant_id)
	WHERE ($4 = '' OR g.queue_class = $4) AND ($5 = '' OR g.model_code = $5)
	  AND ($6 OR p.service_class = ANY($7) OR g.tenant_id = ANY($8))
	ORDER BY g.task_id DESC LIMIT $9`

	sqlTaskWindowEnd = `SELECT count(*) OVER (), task_id FROM (` + sqlTaskWindow + `) g ORDER BY task_id LIMIT 1`
)

// Tasks returns one page of tasks, the newest first.
func (m *Monitor) Tasks(ctx context.Context, q monitor.TaskQuery) (monitor.TaskPage, error) {
	before := q.Before
	if before == uuid.Nil {
		before = uuid.Max
	}
	var tenant *uuid.UUID
	if q.Tenant != uuid.Nil {
		tenant = &q.Tenant
	}
	limit := max(1, min(q.Limit, monitor.PageRows))
	var page monitor.TaskPage
	err := m.custom(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlTaskPage, before, string(q.State), tenant, q.Lane, q.Model,
			q.Reach.All, q.Reach.Lanes, q.Reach.Tenants, limit+1)
		if err != nil {
			return err
		}
		if page.Tasks, err = pgx.CollectRows(rows, scanTaskEntry); err != nil {
			return err
		}
		if len(page.Tasks) > limit {
			page.Tasks = page.Tasks[:limit]
			page.Next = page.Tasks[limit-1].ID
			return nil
		}
		if q.Lane == "" && q.Model == "" && q.Reach.All {
			return nil // every task that was looked at is shown: this is the end
		}
		var seen int64
		var last uuid.UUID
		err = tx.QueryRow(ctx, sqlTaskWindowEnd, before, string(q.State), tenant).Scan(&seen, &last)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if seen == taskScan {
			page.Next = last
		}
		return err
	})
	return page, err
}

// custom reads with a plan made for the values at hand: with a generic one, an absent filter would
// cost its index.
func (m *Monitor) custom(ctx context.Context, fn func(pgx.Tx) error) error {
	return m.reading(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL plan_cache_mode = force_custom_plan`); err != nil {
			return err
		}
		return fn(tx)
	})
}

func scanTaskEntry(row pgx.CollectableRow) (t monitor.TaskEntry, err error) {
	var started, finished *time.Time
	err = row.Scan(&t.ID, &t.TenantID, &t.TenantCode, &t.TenantName, &t.Lane, &t.Group, &t.Model, &t.Kind, &t.Band, &t.State,
		&t.SlotUnits, &t.CostMilli, &t.QueuedSince, &t.CreatedAt, &started, &finished, &t.Attempts)
	t.StartedAt, t.FinishedAt = instant(started), instant(finished)
	return t, err
}

const (
	sqlTaskDetail = `
	SELECT g.task_id, g.tenant_id, t.code, t.name, g.queue_class, g.pool_group, g.model_code, g.kind, g.priority_band, g.state,
	       g.provider_slot_units, g.fairness_units, g.queued_since, g.created_at, g.started_at, g.finished_at, g.attempts_made::bigint,
	       coalesce(p.service_class, ''), u.external_id, g.project, g.version, g.resource_class, g.route, g.expected_seconds, g.expected_p95_seconds,
	       g.estimated_cost_units, coalesce(g.actual_cost_units, -1), g.price_units, g.next_eligible_at, g.deadline_at, g.cancel_requested_at,
	       g.max_attempts::bigint, g.policy_version, coalesce(g.error_code, ''), coalesce(g.error_message, ''), g.parameters, g.result,
	       g.estimate_version, coalesce((SELECT sum(a.used_units)::bigint FROM task_attempt a WHERE a.task_id = g.task_id), -1),
	       coalesce((SELECT sum(a.used_seconds) FROM task_attempt a WHERE a.task_id = g.task_id), -1)
	FROM generation_task g JOIN tenant t USING (tenant_id) JOIN tenant_user u USING (tenant_id, user_id)
	LEFT JOIN tenant_scheduling_policy p USING (tenant_id)
	WHERE g.task_id = $1`

	sqlTaskTries = `
	SELECT a.attempt_id, a.attempt_no::bigint, a.stage, a.provider, a.provider_account, a.resource_key, coalesce(a.provider_job_id, ''),
	       a.state, a.fencing_token, a.policy_version, a.created_at, a.submit_finished_at, a.deadline_at, coalesce(a.actual_seconds, 0),
	       coalesce(a.actual_cost_units, -1), coalesce(a.error_class, ''), coalesce(a.error_code, ''),
	       coalesce(h.held, 0), coalesce(h.account, '')
	FROM task_attempt a
	LEFT JOIN (SELECT attempt_id, sum(reserved_units) FILTER (WHERE state = 'ACTIVE')::bigint AS held, min(account) AS account
	           FROM resource_reservation WHERE attempt_id IN (SELECT attempt_id FROM task_attempt WHERE task_id = $1) GROUP BY attempt_id) h USING (attempt_id)
	WHERE a.task_id = $1 ORDER BY a.attempt_no`

	sqlTaskEvents = `
	SELECT at, type, coalesce(from_state, ''), coalesce(to_state, ''), actor, detail
	FROM task_event WHERE task_id = $1 ORDER BY event_id LIMIT $2`
)

// Task returns a task with its attempts and history; control.CodeNotFound when there is none.
func (m *Monitor) Task(ctx context.Context, id uuid.UUID) (*monitor.TaskDetail, error) {
	var d monitor.TaskDetail
	err := m.reading(ctx, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(sqlTaskDetail, id).QueryRow(func(row pgx.Row) error { return scanTaskDetail(row, &d) })
		b.Queue(sqlTaskTries, id).Query(func(rows pgx.Rows) (err error) {
			d.Tries, err = pgx.CollectRows(rows, scanTry)
			return err
		})
		b.Queue(sqlTaskEvents, id, monitor.MaxTaskEvents+1).Query(func(rows pgx.Rows) (err error) {
			d.Events, err = pgx.CollectRows(rows, pgx.RowToStructByPos[monitor.TaskEvent])
			return err
		})
		return tx.SendBatch(ctx, b).Close()
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, control.Errorf(control.CodeNotFound, "there is no task %s", id)
	}
	if err != nil {
		return nil, err
	}
	if d.MoreEvents = len(d.Events) > monitor.MaxTaskEvents; d.MoreEvents {
		d.Events = d.Events[:monitor.MaxTaskEvents]
	}
	return &d, nil
}

func scanTaskDetail(row pgx.Row, d *monitor.TaskDetail) error {
	var started, finished, deadline, cancel *time.Time
	err := row.Scan(&d.ID, &d.TenantID, &d.TenantCode, &d.TenantName, &d.Lane, &d.Group, &d.Model, &d.Kind, &d.Band, &d.State,
		&d.SlotUnits, &d.CostMilli, &d.QueuedSince, &d.CreatedAt, &started, &finished, &d.Attempts,
		&d.HomeLane, &d.User, &d.Project, &d.Version, &d.ResourceClass, &d.Route, &d.ExpectedSeconds, &d.ExpectedP95,
		&d.EstimatedCost, &d.ActualCost, &d.Price, &d.EligibleAt, &deadline, &cancel,
		&d.MaxAttempts, &d.PolicyVersion, &d.ErrorCode, &d.ErrorMessage, &d.Parameters, &d.Result,
		&d.EstimateVersion, &d.UsedMilli, &d.UsedSeconds)
	d.StartedAt, d.FinishedAt, d.DeadlineAt, d.CancelRequestedAt = instant(started), instant(finished), instant(deadline), instant(cancel)
	return err
}

func scanTry(row pgx.CollectableRow) (a monitor.TaskTry, err error) {
	var submitted *time.Time
	err = row.Scan(&a.ID, &a.No, &a.Stage, &a.Provider, &a.Account, &a.Pool, &a.JobID, &a.State, &a.FencingToken, &a.PolicyVersion,
		&a.CreatedAt, &submitted, &a.DeadlineAt, &a.Seconds, &a.Cost, &a.ErrorClass, &a.ErrorCode, &a.HeldUnits, &a.Holds)
	a.SubmittedAt = instant(submitted)
	return a, err
}
