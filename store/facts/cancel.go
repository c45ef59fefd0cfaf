package facts

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/crashpoint"
)

// Cancels ends tasks that somebody does not want any more, or that nobody can want any more.
type Cancels struct{ db *DB }

// NewCancels returns the cancels of that database.
func NewCancels(db *DB) *Cancels { return &Cancels{db: db} }

// Cancel ends a queued task at once. A task that is on its way gets a cancel request, once, which goes to
// its dispatch worker: what the provider holds stays held until the provider says that it is free, and
// a result that comes first wins. It returns the state after the call, and whether a cancel is
// requested and not yet decided. Repeating it changes nothing. control.CodeNotFound when the tenant has no such task.
func (c *Cancels) Cancel(ctx context.Context, tenant, task uuid.UUID, actor control.Actor) (control.TaskState, bool, error) {
	crashpoint.Hit("cancel.begin")
	var state control.TaskState
	var requested bool
	err := c.db.Tx(ctx, func(tx pgx.Tx) (err error) {
		state, requested, err = cancelIn(ctx, tx, tenant, task, actor)
		return err
	})
	if err != nil {
		return "", false, fmt.Errorf("cancel: %w", err)
	}
	crashpoint.Hit("cancel.committed")
	return state, requested, nil
}

func cancelIn(ctx context.Context, tx pgx.Tx, tenant, task uuid.UUID, actor control.Actor) (control.TaskState, bool, error) {
	l := &lockSet{}
	var user uuid.UUID
	var lane string
	err := tx.QueryRow(ctx, `SELECT user_id, queue_class FROM generation_task WHERE task_id = $1 AND tenant_id = $2`, task, tenant).Scan(&user, &lane)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", false, control.Errorf(control.CodeNotFound, "no task %s", task)
	} else if err != nil {
		return "", false, err
	}
	l.addTask(task, tenant, user, lane)
	var fence int64
	held, err := l.take(ctx, tx, func(b *pgx.Batch) {
		b.Queue(`SELECT coalesce(max(a.fencing_token), 0) FROM generation_task t JOIN task_attempt a ON a.attempt_id = t.current_attempt_id
			WHERE t.task_id = $1`, task).QueryRow(func(r pgx.Row) error { return r.Scan(&fence) })
	})
	if err != nil {
		return "", false, err
	}
	t := held.tasks[task]
	if t.state.Terminal() || t.cancelAsked {
		return t.state, !t.state.Terminal(), nil
	}
	j, counters, b := &journal{}, newLedger(), &pgx.Batch{}
	if t.state.CanBecome(control.TaskCanceled) && t.state == control.TaskQueued {
		counters.queued(t, -1)
		j.event(t.id, uuid.Nil, control.EventTaskCanceled, t.state, control.TaskCanceled, actor.Name, struct{}{})
		j.queueEvent(control.EventTaskCanceled, t, t.version+1)
		b.Queue(cancelQueuedSQL, t.id, t.version).Exec(mustAffect(1, "tasks canceled"))
		t.state = control.TaskCanceled
	} else {
		j.event(t.id, t.attempt, control.EventCancelRequest, t.state, t.state, actor.Name, struct{}{})
		id := j.newID()
		j.send(id, control.TopicDispatch, t.lane, control.EventCancelRequest, t.id, control.DispatchMessage{
			EventID: id, EventType: control.EventCancelRequest, TaskID: t.id, AttemptID: t.attempt, TenantID: t.tenant,
			QueueClass: t.lane, ModelCode: t.model, ResourceClass: t.class, FencingToken: fence, AggregateVersion: t.version + 1, TraceID: t.trace,
		})
		j.hint(control.NotifyDispatch, t.lane)
		b.Queue(cancelRequestSQL, t.id, t.version).Exec(mustAffect(1, "cancel requests"))
	}
	counters.queue(b)
	if err := j.queue(b); err != nil {
		return "", false, err
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return "", false, err
	}
	crashpoint.Hit("cancel.written")
	return t.state, !t.state.Terminal(), nil
}

const (
	cancelQueuedSQL = `
		UPDATE generation_task
		SET state = 'CANCELED', version = version + 1, cancel_requested_at = clock_timestamp(), finished_at = clock_timestamp(),
		    updated_at = clock_timestamp()
		WHERE task_id = $1 AND version = $2 AND state = 'QUEUED'`

	cancelRequestSQL = `
		UPDATE generation_task
		SET version = version + 1, cancel_requested_at = clock_timestamp(), updated_at = clock_timestamp()
		WHERE task_id = $1 AND version = $2 AND cancel_requested_at IS NULL`
)
