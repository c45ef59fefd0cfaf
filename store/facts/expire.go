package facts

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/crashpoint"
)

// ExpireDeadlines fails at most limit tasks whose deadline passed while they were queued, the longest
// overdue first, with the code control.ErrorDeadline. It returns how many it failed; as many as limit means
// that there may be more.
func (c *Cancels) ExpireDeadlines(ctx context.Context, limit int) (int, error) {
	if err := checkPage(limit); err != nil {
		return 0, err
	}
	n := 0
	err := c.db.Tx(ctx, func(tx pgx.Tx) (err error) {
		n, err = expireIn(ctx, tx, limit)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("expire deadlines: %w", err)
	}
	crashpoint.Hit("expire.committed")
	return n, nil
}

func expireIn(ctx context.Context, tx pgx.Tx, limit int) (int, error) {
	l, b := &lockSet{}, &pgx.Batch{}
	b.Queue(pointPlans).Exec(ignoreTag)
	b.Queue(`
		SELECT task_id, tenant_id, user_id, queue_class FROM generation_task
		WHERE state = 'QUEUED' AND deadline_at IS NOT NULL AND deadline_at <= clock_timestamp() ORDER BY deadline_at LIMIT $1`, limit).
		Query(scanAll(func(r pgx.Rows) error {
			var task, tenant, user uuid.UUID
			var lane string
			err := r.Scan(&task, &tenant, &user, &lane)
			l.addTask(task, tenant, user, lane)
			return err
		}))
	if err := tx.SendBatch(ctx, b).Close(); err != nil || len(l.tasks) == 0 {
		return 0, err
	}
	held, err := l.take(ctx, tx, nil)
	if err != nil {
		return 0, err
	}
	var ids []uuid.UUID
	j, counters := &journal{}, newLedger()
	for _, t := range held.tasks {
		if t.state != control.TaskQueued || !t.overdue { // claimed or canceled before we held it
			continue
		}
		ids = append(ids, t.id)
		counters.queued(t, -1)
		j.event(t.id, uuid.Nil, control.EventTaskExpired, t.state, control.TaskFailed, control.System.Name, struct{}{})
		j.queueEvent(control.EventTaskExpired, t, t.version+1)
	}
	if len(ids) == 0 {
		return 0, nil
	}
	b = &pgx.Batch{}
	counters.queue(b)
	b.Queue(expireSQL, ids, control.ErrorDeadline).Exec(mustAffect(len(ids), "tasks expired"))
	if err := j.queue(b); err != nil {
		return 0, err
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return 0, err
	}
	crashpoint.Hit("expire.written")
	return len(ids), nil
}

const expireSQL = `
	UPDATE generation_task
	SET state = 'FAILED', version = version + 1, error_code = $2, error_message = 'the deadline passed before the task could start',
	    finished_at = clock_timestamp(), updated_at = clock_timestamp()
	WHERE task_id = ANY($1) AND state = 'QUEUED'`
