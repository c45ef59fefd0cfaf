package facts

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/crashpoint"
	"fairlane/control/dispatch"
	"fairlane/control/estimate"
	"fairlane/control/plan"
)

// MaxEnd is the largest batch that End takes.
const MaxEnd = 1000

// Endings implements dispatch.Ender: what an attempt held is given back exactly once, whoever says that
// it has ended and however often.
type Endings struct{ db *DB }

// NewEndings returns the endings of that database.
func NewEndings(db *DB) *Endings { return &Endings{db: db} }

// End ends attempts for which a legal move and the current fence allow it; the others change nothing
// and say why. Answers stand in the order of the request. Texts and results that PostgreSQL could not
// hold are cut or replaced, so that no answer of a provider can hold up the rest of a batch.
func (e *Endings) End(ctx context.Context, endings []dispatch.Ending) ([]dispatch.Ended, error) {
	if err := checkEndings(endings); err != nil || len(endings) == 0 {
		return nil, err
	}
	crashpoint.Hit("end.begin")
	var out []dispatch.Ended
	err := e.db.Tx(ctx, func(tx pgx.Tx) (err error) {
		out, err = endIn(ctx, tx, endings)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("end: %w", err)
	}
	crashpoint.Hit("end.committed")
	return out, nil
}

func checkEndings(endings []dispatch.Ending) error {
	if len(endings) > MaxEnd {
		return control.Errorf(control.CodeTooLarge, "a batch has at most %d endings, not %d", MaxEnd, len(endings))
	}
	var bad []control.FieldError
	for i := range endings {
		switch endings[i].State {
		case control.AttemptSucceeded, control.AttemptFailed, control.AttemptCanceled, control.AttemptRejected, control.AttemptAbandoned:
		default:
			bad = append(bad, control.FieldError{Field: fmt.Sprintf("endings[%d].state", i), Key: "must be a state that ends an attempt"})
		}
	}
	return control.Invalid(bad)
}

func endIn(ctx context.Context, tx pgx.Tx, endings []dispatch.Ending) ([]dispatch.Ended, error) {
	locks, seen, err := endLocks(ctx, tx, endings)
	if err != nil {
		return nil, err
	}
	out := make([]dispatch.Ended, len(endings))
	if len(locks.attempts) == 0 { // all have ended, or are unknown: the answer needs no lock
		for i := range endings {
			out[i] = past(&endings[i], seen[endings[i].AttemptID])
		}
		return out, nil
	}
	d := &endDecision{ledger: newLedger(), journal: &journal{}, limits: map[string]estimate.DebtLimits{}}
	if d.held, err = locks.take(ctx, tx, d.readLimits); err != nil {
		return nil, err
	}
	crashpoint.Hit("end.locked")
	for i := range endings {
		if locks.attempts.has(endings[i].AttemptID) {
			out[i] = d.decide(&endings[i])
		} else {
			out[i] = past(&endings[i], seen[endings[i].AttemptID])
		}
	}
	if len(d.attempts) == 0 {
		return out, nil
	}
	b := &pgx.Batch{}
	d.ledger.queue(b)
	d.queue(b)
	if err := d.journal.queue(b); err != nil {
		return nil, err
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	crashpoint.Hit("end.written")
	return out, nil
}

// seenAttempt is an attempt as it was before any lock.
type seenAttempt struct {
	attemptRow
	group     string
	taskState control.TaskState
}

func past(e *dispatch.Ending, a *seenAttempt) dispatch.Ended {
	out := dispatch.Ended{AttemptID: e.AttemptID, Why: control.CodeNotFound}
	if a != nil {
		out.TaskID, out.PoolGroup, out.TaskState, out.Why = a.task, a.group, a.taskState, control.CodeConflict
		if a.token != e.FencingToken {
			out.Why = control.CodeFenced
		}
	}
	return out
}

// endLocks reads, without locks, which rows the endings concern. Those names never change for an
// attempt; its state does, and is read again under the locks. Attempts that have ended already, and
// stale fences, need none.
func endLocks(ctx context.Context, tx pgx.Tx, endings []dispatch.Ending) (*lockSet, map[uuid.UUID]*seenAttempt, error) {
	var fences set[dispatch.Ref]
	var named set[uuid.UUID]
	for i := range endings {
		fences.add(endings[i].Ref)
		named.add(endings[i].AttemptID)
	}
	ids := named.list()
	l, seen := &lockSet{}, make(map[uuid.UUID]*seenAttempt, len(ids))
	b := &pgx.Batch{}
	b.Queue(pointPlans).Exec(ignoreTag)
	b.Queue(seenAttemptSQL, ids).Query(scanAll(func(r pgx.Rows) error {
		a := &seenAttempt{}
		var tenant, user uuid.UUID
		var lane string
		if err := r.Scan(&a.id, &a.task, &a.state, &a.token, &tenant, &user, &lane, &a.group, &a.taskState); err != nil {
			return err
		}
		seen[a.id] = a
		if a.state.Live() && fences.has(dispatch.Ref{AttemptID: a.id, FencingToken: a.token}) {
			l.addTask(a.task, tenant, user, lane)
			l.attempts.add(a.id)
			l.reservations.add(a.id)
		}
		return nil
	}))
	b.Queue(seenReservationSQL, ids).Query(scanAll(func(r pgx.Rows) error {
		v, err := scanReservation(r)
		if err == nil && l.attempts.has(v.attempt) {
			l.addReservation(&v)
		}
		return err
	}))
	return l, seen, tx.SendBatch(ctx, b).Close()
}

// addReservation names the counters that a reservation was counted in.
func (l *lockSet) addReservation(r *reservationRow) {
	l.tenantLanes.add(plan.TenantLane{Tenant: r.tenant, Lane: r.lane})
	l.groups.add(r.group)
	l.accounts.add(plan.LaneGroup{Lane: r.lane, Group: r.group})
	if r.lender != "" {
		l.accounts.add(plan.LaneGroup{Lane: r.lender, Group: r.group})
	}
	l.shards.add(shardKey{r.pool, r.shard})
	for i, key := range r.groupKeys {
		l.shards.add(shardKey{key, r.groupShards[i]})
	}
}

const (
	seenAttemptSQL = `
		SELECT a.attempt_id, a.task_id, a.state, a.fencing_token, t.tenant_id, t.user_id, t.queue_class, t.pool_group, t.state
		FROM task_attempt a JOIN generation_task t ON t.task_id = a.task_id WHERE a.attempt_id = ANY($1)`

	seenReservationSQL = `
		SELECT ` + reservationColumns + ` FROM resource_reservation WHERE attempt_id = ANY($1) AND state = 'ACTIVE'`
)
