package facts

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/crashpoint"
	"fairlane/control/dispatch"
)

// Attempts implements dispatch.Attempts and dispatch.Checks.
type Attempts struct{ db *DB }

// NewAttempts makes the store of attempts between CREATED and their end.
func NewAttempts(db *DB) *Attempts { return &Attempts{db: db} }

// Begin moves CREATED → SUBMITTING. Of the same ref twice in one call only the first can be begun.
func (s *Attempts) Begin(ctx context.Context, refs []dispatch.Ref, overdue time.Duration) ([]dispatch.Begun, error) {
	ids, fences := make([]uuid.UUID, len(refs)), make([]int64, len(refs))
	for i, r := range refs {
		ids[i], fences[i] = r.AttemptID, r.FencingToken
	}
	var out []dispatch.Begun
	err := s.db.Tx(ctx, func(tx pgx.Tx) error {
		out = make([]dispatch.Begun, 0, len(refs))
		rows, err := tx.Query(ctx, beginSQL, ids, fences, overdue.Seconds())
		if err != nil {
			return err
		}
		var begun dispatch.Begun
		var o = &begun.Order
		var expected float64
		_, err = pgx.ForEachRow(rows, []any{&begun.Finding, &o.AttemptID, &o.FencingToken, &o.TaskID, &o.AttemptNo, &o.Lane, &o.Pool,
			&o.Provider, &o.Account, &o.Model, &o.Kind, &o.Key, &o.CallbackToken, &o.Parameters, &o.Trace, &expected, &o.Deadline},
			func() error {
				o.Expected = seconds(expected)
				one := begun
				one.Order.Parameters = append([]byte(nil), o.Parameters...)
				out = append(out, one)
				return nil
			})
		return err
	})
	if err != nil {
		return nil, err
	}
	seen := make(map[uuid.UUID]bool, len(out))
	for i := range out {
		if out[i].Finding != dispatch.FoundBegun {
			continue
		}
		if seen[out[i].Order.AttemptID] {
			out[i].Finding = dispatch.FoundPast
		}
		seen[out[i].Order.AttemptID] = true
	}
	crashpoint.Hit("dispatch.begun")
	return out, nil
}

// Move applies moves to ACCEPTED, UNKNOWN and LOST with their tasks, reservations and task events.
func (s *Attempts) Move(ctx context.Context, moves []dispatch.Move) ([]bool, error) {
	var moved map[uuid.UUID]bool
	err := s.db.Tx(ctx, func(tx pgx.Tx) error {
		moved = make(map[uuid.UUID]bool, len(moves))
		for _, to := range []control.AttemptState{control.AttemptAccepted, control.AttemptUnknown, control.AttemptLost} {
			if err := moveTo(ctx, tx, to, moves, moved); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(moves))
	for i, m := range moves {
		out[i] = moved[m.AttemptID]
	}
	return out, nil
}

var moveSQL = map[control.AttemptState]string{
	control.AttemptAccepted: acceptSQL,
	control.AttemptUnknown:  unknownSQL,
	control.AttemptLost:     lostSQL,
}

func moveTo(ctx context.Context, tx pgx.Tx, to control.AttemptState, moves []dispatch.Move, moved map[uuid.UUID]bool) error {
	var ids, events []uuid.UUID
	var fences []int64
	var jobs, classes, codes, raws []string
	var nexts, leases []float64
	for _, m := range moves {
		if m.To != to {
			continue
		}
		event, err := uuid.NewV7()
		if err != nil {
			return err
		}
		ids, fences, events = append(ids, m.AttemptID), append(fences, m.FencingToken), append(events, event)
		jobs, classes, codes, raws = append(jobs, m.JobID), append(classes, string(m.Class)), append(codes, m.Code), append(raws, m.Raw)
		nexts, leases = append(nexts, m.Next.Seconds()), append(leases, m.Lease.Seconds())
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, moveSQL[to], ids, fences, events, jobs, classes, codes, raws, nexts, leases)
	if err != nil {
		return err
	}
	var id uuid.UUID
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error { moved[id] = true; return nil })
	return err
}
