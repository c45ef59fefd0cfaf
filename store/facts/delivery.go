package facts

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control/dispatch"
)

// Outbox implements dispatch.Outbox: rows are leased, handled, deleted.
type Outbox struct{ db *DB }

// NewOutbox makes the reading side of the outbox.
func NewOutbox(db *DB) *Outbox { return &Outbox{db: db} }

const (
	takeSQL = `
		WITH w AS (SELECT * FROM unnest($2::text[], $3::int[]) AS w(grp, most)),
		due AS (
			SELECT o.event_id FROM w CROSS JOIN LATERAL (
				SELECT event_id FROM outbox_event
				WHERE topic = $1 AND group_key = w.grp AND available_at <= statement_timestamp()
				  AND (locked_until IS NULL OR locked_until <= statement_timestamp())
				ORDER BY available_at LIMIT w.most FOR UPDATE SKIP LOCKED) o)
		UPDATE outbox_event o SET locked_until = clock_timestamp() + make_interval(secs => $4), deliveries = o.deliveries + 1
		FROM due WHERE o.event_id = due.event_id
		RETURNING o.event_id, o.group_key, o.event_type, o.aggregate_id, o.payload, o.deliveries`

	ackSQL = `
		DELETE FROM outbox_event o USING unnest($1::uuid[], $2::int[]) AS d(id, n)
		WHERE o.event_id = d.id AND o.deliveries = d.n`

	nackSQL = `
		UPDATE outbox_event o SET locked_until = NULL, available_at = clock_timestamp() + make_interval(secs => $3)
		FROM unnest($1::uuid[], $2::int[]) AS d(id, n) WHERE o.event_id = d.id AND o.deliveries = d.n`
)

// Take leases what is due, at most so many of each group, oldest first.
func (s *Outbox) Take(ctx context.Context, topic string, wants []dispatch.Want, hold time.Duration) ([]dispatch.Delivery, error) {
	groups, most := make([]string, 0, len(wants)), make([]int32, 0, len(wants))
	for _, w := range wants {
		groups, most = append(groups, w.Group), append(most, int32(min(w.Max, 10_000)))
	}
	var out []dispatch.Delivery
	err := s.db.Tx(ctx, func(tx pgx.Tx) error {
		out = nil
		rows, err := tx.Query(ctx, takeSQL, topic, groups, most, hold.Seconds())
		if err != nil {
			return err
		}
		var d dispatch.Delivery
		_, err = pgx.ForEachRow(rows, []any{&d.ID, &d.Group, &d.Type, &d.Aggregate, &d.Payload, &d.Count}, func() error {
			one := d
			one.Payload, one.Receipt = append([]byte(nil), d.Payload...), strconv.Itoa(d.Count)
			out = append(out, one)
			return nil
		})
		return err
	})
	return out, err
}

// Ack deletes rows; one that was leased again meanwhile stays.
func (s *Outbox) Ack(ctx context.Context, done []dispatch.Delivery) error {
	return s.answer(ctx, ackSQL, done)
}

// Nack gives rows back, not to be taken before `after`.
func (s *Outbox) Nack(ctx context.Context, back []dispatch.Delivery, after time.Duration) error {
	return s.answer(ctx, nackSQL, back, after.Seconds())
}

func (s *Outbox) answer(ctx context.Context, sql string, list []dispatch.Delivery, more ...any) error {
	if len(list) == 0 {
		return nil
	}
	ids, counts := make([]uuid.UUID, len(list)), make([]int32, len(list))
	for i, d := range list {
		n, err := strconv.ParseInt(d.Receipt, 10, 32)
		if err != nil {
			return err
		}
		ids[i], counts[i] = d.ID, int32(n)
	}
	return s.db.Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sql, append([]any{ids, counts}, more...)...)
		return err
	})
}
