package facts

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
)

// Tasks reads tasks. Every method names the tenant whose they must be.
type Tasks struct{ db *DB }

// NewTasks reads through db.
func NewTasks(db *DB) *Tasks { return &Tasks{db: db} }

const taskColumns = `t.task_id, t.tenant_id, t.user_id, u.external_id, t.project, t.kind, t.queue_class, t.pool_group, t.priority_band,
	t.model_code, t.state, t.version, t.provider_slot_units, t.fairness_units, t.estimated_cost_units, coalesce(t.actual_cost_units, -1),
	t.price_units, t.expected_seconds, t.expected_p95_seconds, t.attempts_made, t.max_attempts, coalesce(a.progress, -1),
	t.created_at, t.queued_since, t.next_eligible_at, t.deadline_at, t.started_at, t.finished_at, t.cancel_requested_at, t.updated_at,
	t.parameters, t.result, coalesce(t.error_code, ''), coalesce(t.error_message, '')`

const taskFrom = ` FROM generation_task t JOIN tenant_user u ON u.tenant_id = t.tenant_id AND u.user_id = t.user_id
	LEFT JOIN task_attempt a ON a.attempt_id = t.current_attempt_id`

// Task returns a task of the tenant; control.CodeNotFound when it is another's or nobody's.
func (t *Tasks) Task(ctx context.Context, tenant, id uuid.UUID) (control.Task, error) {
	rows, err := t.db.pool.Query(ctx, `SELECT `+taskColumns+taskFrom+` WHERE t.tenant_id = $1 AND t.task_id = $2`, tenant, id)
	if err != nil {
		return control.Task{}, away(err)
	}
	task, err := pgx.CollectExactlyOneRow(rows, scanTask)
	if errors.Is(err, pgx.ErrNoRows) {
		return control.Task{}, control.Errorf(control.CodeNotFound, "there is no task %s", id)
	}
	return task, away(err)
}

// List returns at most limit tasks of the tenant that the filter lets through, newest first, of
// those before the given id (zero: from the newest).
func (t *Tasks) List(ctx context.Context, tenant uuid.UUID, f control.TaskFilter, before uuid.UUID, limit int) (control.TaskPage, error) {
	states := make([]string, len(f.States))
	for i, s := range f.States {
		states[i] = string(s)
	}
	if before == uuid.Nil {
		before = uuid.Max
	}
	rows, err := t.db.pool.Query(ctx, `SELECT `+taskColumns+taskFrom+`
		WHERE t.tenant_id = $1 AND t.task_id < $2
			AND (cardinality($3::text[]) = 0 OR t.state = ANY ($3)) AND ($4 = '' OR u.external_id = $4)
			AND ($5 = '' OR t.project = $5) AND ($6 = '' OR t.model_code = $6) AND ($7 = '' OR t.queue_class = $7)
		ORDER BY t.task_id DESC LIMIT $8`,
		tenant, before, states, f.User, f.Project, f.Model, f.Lane, limit+1)
	if err != nil {
		return control.TaskPage{}, away(err)
	}
	tasks, err := pgx.CollectRows(rows, scanTask)
	if err != nil {
		return control.TaskPage{}, away(err)
	}
	page := control.TaskPage{Tasks: tasks}
	if len(tasks) > limit {
		page.Tasks = tasks[:limit]
		page.Next = tasks[limit-1].ID
	}
	return page, nil
}

func scanTask(row pgx.CollectableRow) (control.Task, error) {
	var t control.Task
	var mean, p95 float64
	var deadline, started, finished, cancel *time.Time
	var parameters, result []byte
	err := row.Scan(&t.ID, &t.TenantID, &t.UserID, &t.User, &t.Project, &t.Kind, &t.Lane, &t.PoolGroup, &t.Band,
		&t.Model, &t.State, &t.Version, &t.SlotUnits, &t.CostMilli, &t.CostMicro, &t.ActualMicro,
		&t.PriceMicro, &mean, &p95, &t.Attempts, &t.MaxAttempts, &t.Progress,
		&t.CreatedAt, &t.QueuedSince, &t.EligibleAt, &deadline, &started, &finished, &cancel, &t.UpdatedAt,
		&parameters, &result, &t.ErrorCode, &t.ErrorMessage)
	t.Expected, t.P95 = seconds(mean), seconds(p95)
	t.DeadlineAt, t.StartedAt, t.FinishedAt, t.CancelAsked = orZero(deadline), orZero(started), orZero(finished), orZero(cancel)
	t.Parameters, t.Result = json.RawMessage(parameters), json.RawMessage(result)
	return t, err
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
