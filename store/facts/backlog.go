package facts

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/queue"
)

// MaxBacklogPage is the largest page of Backlog and of TakeQueueEvents.
const MaxBacklogPage = 10_000

// Backlogs reads what waits, for the queue index of the scheduler.
type Backlogs struct{ db *DB }

// NewBacklogs returns the backlogs of that database.
func NewBacklogs(db *DB) *Backlogs { return &Backlogs{db: db} }

// Backlog returns at most limit queued tasks of a pool group with ids after `after`, by id. A page that is
// not full is the last one. Tasks that come or change meanwhile are told by TakeQueueEvents.
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

// TakeQueueEvents removes at most limit queue events of a pool group and returns the present row of each
// task that they name: those that wait, and those that do not any more. Only the holder of the lease of
// that term may take them, else control.CodeFenced. The taker alone knows what it has taken: after any
// other error it cannot know whether events are gone with the answer, and must read the whole backlog again.
func (b *Backlogs) TakeQueueEvents(ctx context.Context, group, lease string, term int64, limit int) ([]queue.Item, []queue.Gone, error) {
	if err := checkPage(limit); err != nil {
		return nil, nil, err
	}
	var changed []queue.Item
	var gone []queue.Gone
	err := b.db.Tx(ctx, func(tx pgx.Tx) error {
		changed, gone = nil, nil
		ids, err := takeEvents(ctx, tx, group, lease, term, limit)
		if err != nil || len(ids) == 0 {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT `+itemColumns+` FROM generation_task WHERE task_id = ANY($1)`, ids)
		if err != nil {
			return err
		}
		defer rows.Close()
		return scanAll(func(r pgx.Rows) error {
			item, state, err := scanItem(r)
			if state == control.TaskQueued {
				changed = append(changed, item)
			} else {
				gone = append(gone, queue.Gone{TaskID: item.TaskID, Version: item.Version})
			}
			return err
		})(rows)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("queue events: %w", err)
	}
	return changed, gone, nil
}

func takeEvents(ctx context.Context, tx pgx.Tx, group, lease string, term int64, limit int) ([]uuid.UUID, error) {
	var tasks set[uuid.UUID]
	var held bool
	b := &pgx.Batch{}
	b.Queue(pointPlans).Exec(ignoreTag)
	// The share lock makes a successor wait until these events are gone, so that its backlog has them.
	b.Queue(`SELECT true FROM lease WHERE name = $1 AND term = $2 AND expires_at > clock_timestamp() FOR SHARE`, lease, term).
		QueryRow(func(r pgx.Row) error {
			err := r.Scan(&held)
			if errors.Is(err, pgx.ErrNoRows) {
				return control.Errorf(control.CodeFenced, "the lease %q is not held under term %d", lease, term)
			}
			return err
		})
	b.Queue(`
		DELETE FROM outbox_event WHERE event_id = ANY(ARRAY(
		    SELECT event_id FROM outbox_event WHERE topic = $1 AND group_key = $2 AND available_at <= clock_timestamp()
		    ORDER BY event_id LIMIT $3 FOR UPDATE SKIP LOCKED))
		RETURNING aggregate_id`, control.TopicQueue, group, limit).
		Query(scanAll(func(r pgx.Rows) error {
			var id uuid.UUID
			err := r.Scan(&id)
			tasks.add(id)
			return err
		}))
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	return tasks.list(), nil
}

func checkPage(limit int) error {
	if limit < 1 || limit > MaxBacklogPage {
		return control.Errorf(control.CodeInvalid, "a page has 1 to %d rows, not %d", MaxBacklogPage, limit)
	}
	return nil
}

const itemColumns = `task_id, version, tenant_id, user_id, queue_class, pool_group, priority_band, route, model_code, kind,
	provider_slot_units, fairness_units, expected_p95_seconds, queued_since, next_eligible_at, state`

func scanItem(r pgx.Rows) (it queue.Item, state control.TaskState, err error) {
	var p95 float64
	err = r.Scan(&it.TaskID, &it.Version, &it.TenantID, &it.UserID, &it.Lane, &it.Group, &it.Band, &it.Route, &it.Model, &it.Kind,
		&it.SlotUnits, &it.CostMilli, &p95, &it.QueuedSince, &it.EligibleAt, &state)
	it.P95 = time.Duration(math.Min(p95*float64(time.Second), math.MaxInt64/2))
	return it, state, err
}
