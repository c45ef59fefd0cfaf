package facts

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/crashpoint"
	"fairlane/control/dispatch"
)

// Callbacks implements dispatch.CallbackStore.
type Callbacks struct{ db *DB }

// NewCallbacks makes the store of callbacks.
func NewCallbacks(db *DB) *Callbacks { return &Callbacks{db: db} }

const (
	storeCallbackSQL = `
		INSERT INTO provider_callback (callback_id, provider, attempt_id, provider_job_id, signature, event, body, digest)
		VALUES ($1, $2, nullif($3::uuid, '00000000-0000-0000-0000-000000000000'), nullif($4, ''), $5, $6, $7, $8)
		ON CONFLICT (digest) DO NOTHING`

	openCallbackSQL = `
		WITH due AS (
			SELECT callback_id FROM provider_callback WHERE handled_at IS NULL AND next_try_at <= statement_timestamp()
			ORDER BY next_try_at LIMIT $1 FOR UPDATE SKIP LOCKED),
		c AS (
			UPDATE provider_callback x SET next_try_at = clock_timestamp() + make_interval(secs => $2)
			FROM due WHERE x.callback_id = due.callback_id RETURNING x.*)
		SELECT c.callback_id, c.signature = 'VALID', c.event, extract(epoch FROM clock_timestamp() - c.received_at)::float8, a.attempt_id IS NOT NULL,
		       coalesce(a.attempt_id, c.callback_id), coalesce(a.fencing_token, 0), coalesce(a.task_id, c.callback_id), coalesce(a.attempt_no, 0), coalesce(a.state, ''),
		       coalesce(a.provider, ''), coalesce(a.provider_account, ''), coalesce(t.model_code, ''), coalesce(a.provider_request_key, ''), coalesce(a.provider_job_id, ''),
		       clock_timestamp(), a.submit_started_at, a.submit_finished_at, coalesce(a.deadline_at, now()), coalesce(t.expected_seconds, 0), coalesce(t.expected_p95_seconds, 0),
		       coalesce(a.check_count, 0), t.cancel_requested_at IS NOT NULL, a.cancel_sent_at IS NOT NULL
		FROM c LEFT JOIN LATERAL (
			SELECT x.* FROM task_attempt x WHERE x.attempt_id = c.attempt_id
			UNION ALL
			SELECT x.* FROM task_attempt x WHERE c.attempt_id IS NULL AND x.provider = c.provider AND x.provider_job_id = c.provider_job_id
			LIMIT 1) a ON true
		LEFT JOIN generation_task t ON t.task_id = a.task_id
		ORDER BY c.received_at, c.callback_id`

	settleCallbackSQL = `
		UPDATE provider_callback c SET
			handled_at = CASE WHEN s.outcome <> '' THEN clock_timestamp() END,
			outcome = nullif(s.outcome, ''),
			next_try_at = CASE WHEN s.outcome <> '' THEN c.next_try_at ELSE clock_timestamp() + make_interval(secs => s.again) END
		FROM unnest($1::uuid[], $2::text[], $3::float8[]) AS s(id, outcome, again)
		WHERE c.callback_id = s.id AND c.handled_at IS NULL`
)

// Store keeps a callback, once.
func (s *Callbacks) Store(ctx context.Context, c dispatch.StoredCallback) error {
	if result := storableJSON(c.Event.Result); result != "" {
		c.Event.Result = json.RawMessage(result)
	} else {
		c.Event.Result = nil
	}
	raw, err := json.Marshal(c.Event)
	if err != nil {
		return err
	}
	event := storableJSON(raw)
	signature := "NONE"
	if c.Signed {
		signature = "VALID"
	}
	err = s.db.Tx(ctx, func(tx pgx.Tx) error {
		if c.AttemptID != uuid.Nil {
			if err := checkToken(ctx, tx, c); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, storeCallbackSQL, c.ID, c.Provider, c.AttemptID, c.Event.JobID, signature, event, storableText(c.Body, dispatch.MaxCallback), c.Digest)
		return err
	})
	if err == nil {
		crashpoint.Hit("callback.stored")
	}
	return err
}

// checkToken answers the same for an attempt that does not exist and for a token that is not its own.
func checkToken(ctx context.Context, tx pgx.Tx, c dispatch.StoredCallback) error {
	var token string
	err := tx.QueryRow(ctx, `SELECT callback_token FROM task_attempt WHERE attempt_id = $1 AND provider = $2`, c.AttemptID, c.Provider).Scan(&token)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(c.Token)) != 1 {
		return control.Errorf(control.CodeNotFound, "no such callback address")
	}
	return nil
}

// Open leases callbacks that are not handled.
func (s *Callbacks) Open(ctx context.Context, limit int, hold time.Duration) ([]dispatch.OpenCallback, error) {
	var out []dispatch.OpenCallback
	err := s.db.Tx(ctx, func(tx pgx.Tx) error {
		out = nil
		rows, err := tx.Query(ctx, openCallbackSQL, limit, hold.Seconds())
		if err != nil {
			return err
		}
		var o dispatch.OpenCallback
		var row checkRow
		var event []byte
		var age float64
		_, err = pgx.ForEachRow(rows, append([]any{&o.ID, &o.Signed, &event, &age, &o.Matched}, row.targets()...), func() error {
			one := o
			one.Age, one.Check = seconds(age), row.check()
			if err := json.Unmarshal(event, &one.Event); err != nil {
				return err
			}
			out = append(out, one)
			return nil
		})
		return err
	})
	return out, err
}

// Settle closes callbacks or puts them off.
func (s *Callbacks) Settle(ctx context.Context, outcomes []dispatch.CallbackOutcome) error {
	ids, texts, again := make([]uuid.UUID, len(outcomes)), make([]string, len(outcomes)), make([]float64, len(outcomes))
	for i, o := range outcomes {
		ids[i], texts[i], again[i] = o.ID, o.Outcome, o.Again.Seconds()
	}
	return s.db.Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, settleCallbackSQL, ids, texts, again)
		return err
	})
}
