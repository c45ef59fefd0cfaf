package facts

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/dispatch"
)

// Due leases attempts whose next check has come.
func (s *Attempts) Due(ctx context.Context, providers []string, limit int, hold time.Duration) ([]dispatch.Check, error) {
	var out []dispatch.Check
	err := s.db.Tx(ctx, func(tx pgx.Tx) error {
		out = nil
		rows, err := tx.Query(ctx, dueSQL, limit, hold.Seconds(), providers)
		if err != nil {
			return err
		}
		var row checkRow
		_, err = pgx.ForEachRow(rows, row.targets(), func() error { out = append(out, row.check()); return nil })
		return err
	})
	return out, err
}

// Hasten makes live attempts due now. One that somebody holds is being looked at anyway.
func (s *Attempts) Hasten(ctx context.Context, ids []uuid.UUID) error {
	return s.db.Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, hastenSQL, ids)
		return err
	})
}

// Note records what checks brought. Two notes on one attempt are laid over each other, the later one on top.
func (s *Attempts) Note(ctx context.Context, notes []dispatch.Note, lease time.Duration) error {
	merged := make(map[uuid.UUID]dispatch.Note, len(notes))
	for _, n := range notes {
		if before, ok := merged[n.AttemptID]; ok && before.FencingToken == n.FencingToken {
			n.Answered, n.CancelSent = n.Answered || before.Answered, n.CancelSent || before.CancelSent
		}
		merged[n.AttemptID] = n
	}
	ids, fences, nexts := make([]uuid.UUID, 0, len(merged)), make([]int64, 0, len(merged)), make([]float64, 0, len(merged))
	answered, cancels, progress := make([]bool, 0, len(merged)), make([]bool, 0, len(merged)), make([]float64, 0, len(merged))
	for _, n := range merged {
		if math.IsNaN(n.Progress) {
			n.Progress = -1
		}
		ids, fences, nexts = append(ids, n.AttemptID), append(fences, n.FencingToken), append(nexts, n.Next.Seconds())
		answered, cancels, progress = append(answered, n.Answered), append(cancels, n.CancelSent), append(progress, n.Progress)
	}
	return s.db.Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, noteSQL, ids, fences, answered, progress, cancels, nexts, lease.Seconds())
		return err
	})
}

// Reemit writes the dispatch event of attempts again that are CREATED for longer than age.
func (s *Attempts) Reemit(ctx context.Context, age time.Duration, limit int) (int, error) {
	var sent, told int
	err := s.db.Tx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, reemitSQL, age.Seconds(), limit, control.TopicDispatch, control.EventDispatchRequest,
			control.NotifyDispatch).Scan(&sent, &told)
	})
	return sent, err
}

// checkRow scans checkColumns.
type checkRow struct {
	c              dispatch.Check
	started, ended *time.Time
	expected, p95  float64
}

func (r *checkRow) targets() []any {
	c := &r.c
	return []any{&c.AttemptID, &c.FencingToken, &c.TaskID, &c.AttemptNo, &c.State, &c.Provider, &c.Account, &c.Model,
		&c.Key, &c.JobID, &c.Now, &r.started, &r.ended, &c.Deadline, &r.expected, &r.p95, &c.Silent, &c.CancelRequested, &c.CancelSent}
}

func (r *checkRow) check() dispatch.Check {
	c := r.c
	c.Expected, c.P95 = seconds(r.expected), seconds(r.p95)
	c.SubmitStarted, c.SubmitEnded = orZero(r.started), orZero(r.ended)
	return c
}
