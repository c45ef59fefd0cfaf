package facts

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/queue"
)

// MaxBacklogPage is the largest page of Backlog, QueueEvents and Look.
const MaxBacklogPage = 10_000

// Backlogs reads what waits, for the queue index of the scheduler.
type Backlogs struct{ db *DB }

// NewBacklogs returns the backlogs of that database.
func NewBacklogs(db *DB) *Backlogs { return &Backlogs{db: db} }

// Backlog returns at most limit queued tasks of a pool group with ids after `after`, by id. A page that is
// not full is the last one. Tasks that come or change meanwhile are told by QueueEvents.
func (b *Backlogs) Backlog(ctx context.Context, group string, after uuid.UUID, limit int) ([]queue.Item, error) {
	if err := checkPage(limit); err != nil {
		return nil, err
	}
	batch, items := &pgx.Batch{}, make([]queue.Item, 0, min(limit, 1000))
	batch.Queue(pointPlans).Exec(ignoreTag)
	batch.Queue(`
		SELECT `+itemColumns+` FROM generation_task
		WHERE pool_group = $1 AND state = 'QUEUED' AND task_id > $2 ORDER BY task_id LIMIT $3`, group, after, limit).
		Query(scanAll(func(r pgx.Rows) error {
			item, _, err := scanItem(r)
			items = append(items, item)
			return err
		}))
	if err := b.db.pipeline(ctx, batch); err != nil {
		return nil, fmt.Errorf("backlog: %w", err)
	}
	return items, nil
}

// QueueEvents deletes the events in done, which the caller has applied, and returns at most limit of the
// others of a pool group with the present row of each task that they name. An event comes again until it
// is in done. Only the holder of the lease of that term may ask, else control.CodeFenced: what an old
// holder deletes was committed before its successor's term began, and is in the successor's backlog.
func (b *Backlogs) QueueEvents(ctx context.Context, group, lease string, term int64, done []uuid.UUID, limit int) (queue.Events, error) {
	if err := checkPage(limit); err != nil {
		return queue.Events{}, err
	}
	out, held, batch := queue.Events{}, false, &pgx.Batch{}
	batch.Queue(pointPlans).Exec(ignoreTag)
	batch.Queue(`SELECT `+leaseHeld, lease, term).QueryRow(func(r pgx.Row) error { return r.Scan(&held) })
	if len(done) > 0 {
		batch.Queue(`DELETE FROM outbox_event WHERE event_id = ANY($3) AND `+leaseHeld, lease, term, done).Exec(ignoreTag)
	}
	seen := map[uuid.UUID]bool{}
	batch.Queue(`
		SELECT e.event_id, `+itemColumns+` FROM (
		    SELECT event_id, aggregate_id FROM outbox_event WHERE topic = $3 AND group_key = $4 AND available_at <= clock_timestamp()
		    ORDER BY available_at LIMIT $5) e
		LEFT JOIN generation_task ON task_id = aggregate_id WHERE `+leaseHeld, lease, term, control.TopicQueue, group, limit).
		Query(scanAll(func(r pgx.Rows) error { return scanEvent(r, group, seen, &out) }))
	if err := b.db.pipeline(ctx, batch); err != nil {
		return queue.Events{}, fmt.Errorf("queue events: %w", err)
	}
	if !held {
		return queue.Events{}, control.Errorf(control.CodeFenced, "the lease %q is not held under term %d", lease, term)
	}
	return out, nil
}

const leaseHeld = `EXISTS (SELECT FROM lease WHERE name = $1 AND term = $2 AND expires_at > clock_timestamp())`

// scanEvent adds an event and, once, the task that it names. An event whose task was never there, or is
// no longer, names nothing.
func scanEvent(r pgx.Rows, group string, seen map[uuid.UUID]bool, out *queue.Events) error {
	var event uuid.UUID
	var task *uuid.UUID
	if r.RawValues()[1] == nil {
		err := r.Scan(append([]any{&event, &task}, make([]any, len(r.RawValues())-2)...)...)
		out.IDs = append(out.IDs, event)
		return err
	}
	item, state, err := scanItem(r, &event)
	if err != nil {
		return err
	}
	out.IDs = append(out.IDs, event)
	switch {
	case seen[item.TaskID]:
	case state == control.TaskQueued && item.Group == group:
		out.Waits = append(out.Waits, item)
	default:
		out.Gone = append(out.Gone, queue.Gone{TaskID: item.TaskID, Version: item.Version, Lane: item.Lane, TenantID: item.TenantID})
	}
	seen[item.TaskID] = true
	return nil
}

// Look returns those of the tasks that wait in a pool group; the others do not.
func (b *Backlogs) Look(ctx context.Context, group string, tasks []uuid.UUID) ([]queue.Item, error) {
	if len(tasks) > MaxBacklogPage {
		return nil, checkPage(len(tasks))
	}
	batch, items := &pgx.Batch{}, make([]queue.Item, 0, len(tasks))
	batch.Queue(pointPlans).Exec(ignoreTag)
	batch.Queue(`SELECT `+itemColumns+` FROM generation_task WHERE task_id = ANY($1) AND state = 'QUEUED' AND pool_group = $2`, tasks, group).
		Query(scanAll(func(r pgx.Rows) error {
			item, _, err := scanItem(r)
			items = append(items, item)
			return err
		}))
	if err := b.db.pipeline(ctx, batch); err != nil {
		return nil, fmt.Errorf("look at queued tasks: %w", err)
	}
	return items, nil
}

func checkPage(limit int) error {
	if limit < 1 || limit > MaxBacklogPage {
		return control.Errorf(control.CodeInvalid, "a page has 1 to %d rows, not %d", MaxBacklogPage, limit)
	}
	return nil
}

const itemColumns = `task_id, version, tenant_id, user_id, queue_class, pool_group, priority_band, route, model_code, kind,
	provider_slot_units, fairness_units, expected_p95_seconds, queued_since, next_eligible_at, state`

// scanItem reads the columns of an item; before are those that stand in front of them.
func scanItem(r pgx.Rows, before ...any) (it queue.Item, state control.TaskState, err error) {
	var p95 float64
	err = r.Scan(append(before, &it.TaskID, &it.Version, &it.TenantID, &it.UserID, &it.Lane, &it.Group, &it.Band, &it.Route, &it.Model, &it.Kind,
		&it.SlotUnits, &it.CostMilli, &p95, &it.QueuedSince, &it.EligibleAt, &state)...)
	it.P95 = time.Duration(math.Min(p95*float64(time.Second), math.MaxInt64/2))
	return it, state, err
}
