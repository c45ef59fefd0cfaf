package facts

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/audit"
	"fairlane/control/crashpoint"
)

// Audits are the audit events: an append-only chain.
type Audits struct{ db *DB }

// NewAudits returns the audit events of that database.
func NewAudits(db *DB) *Audits { return &Audits{db: db} }

// Append records something that changed no other row, such as a denied attempt.
func (a *Audits) Append(ctx context.Context, e audit.Event) (sequence int64, err error) {
	err = a.db.Tx(ctx, func(tx pgx.Tx) (err error) {
		sequence, err = appendAudit(ctx, tx, e)
		return err
	})
	return sequence, away(err)
}

// appendAudit records the event in the transaction of its change, so that neither can be without the
// other. It locks the audit head, the last lock of all: nothing else may be locked after it, and the
// transaction should end soon.
func appendAudit(ctx context.Context, tx pgx.Tx, e audit.Event) (int64, error) {
	last, err := appendAudits(ctx, tx, []audit.Event{e})
	return last, err
}

// appendAudits records several events and returns the sequence of the last.
func appendAudits(ctx context.Context, tx pgx.Tx, events []audit.Event) (int64, error) {
	if len(events) == 0 {
		return 0, nil
	}
	var sequence int64
	var hash []byte
	var at time.Time
	const headSQL = `SELECT sequence, hash, greatest(at, clock_timestamp()) FROM audit_head FOR NO KEY UPDATE`
	if err := tx.QueryRow(ctx, headSQL).Scan(&sequence, &hash, &at); err != nil {
		return 0, fmt.Errorf("audit head: %w", err)
	}
	if len(hash) != 32 {
		return 0, fmt.Errorf("audit head: its hash has %d bytes, not 32", len(hash))
	}
	prev := [32]byte(hash)
	rows := make([][]any, 0, len(events))
	for _, e := range events {
		sequence++
		e.Sequence, e.At = sequence, at
		r, err := audit.Seal(prev, e)
		if err != nil {
			return 0, err
		}
		prev = r.Hash
		rows = append(rows, auditRow(&r))
	}
	crashpoint.Hit("audit.sealed")
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"audit_event"}, auditColumns, pgx.CopyFromRows(rows)); err != nil {
		return 0, fmt.Errorf("audit event: %w", err)
	}
	if _, err := tx.Exec(ctx, `UPDATE audit_head SET sequence = $1, hash = $2, at = $3`, sequence, prev[:], at); err != nil {
		return 0, fmt.Errorf("audit head: %w", err)
	}
	return sequence, nil
}

var auditColumns = []string{"sequence", "at", "actor_id", "actor_name", "source_address", "request_id", "action", "object_kind",
	"object_id", "policy_version", "reason", "result", "terms", "record", "hash"}

func auditRow(r *audit.Record) []any {
	e := &r.Event
	var actor *uuid.UUID
	if e.Actor.ID != uuid.Nil {
		actor = &e.Actor.ID
	}
	var version *int64
	if e.PolicyVersion > 0 {
		version = &e.PolicyVersion
	}
	return []any{e.Sequence, e.At, actor, e.Actor.Name, e.Actor.SourceAddress, e.Actor.RequestID, string(e.Action), e.ObjectKind,
		e.ObjectID, version, e.Reason, string(e.Result), e.Index(), r.Text, r.Hash[:]}
}
