package facts

import (
	"context"

	"github.com/google/uuid"

	"fairlane/audit"
	"fairlane/store/facts/sqlc"
)

// Head implements audit.Source.
func (a *Audits) Head(ctx context.Context) (int64, []byte, error) {
	h, err := sqlc.New(a.db.pool).AuditHead(ctx)
	return h.Sequence, h.Hash, away(err)
}

// Page implements audit.Source. Every page is a short read of its own: a walk over a long chain holds
// no snapshot that would keep other tables' dead rows.
func (a *Audits) Page(ctx context.Context, after int64, limit int) ([]audit.Stored, error) {
	rows, err := sqlc.New(a.db.pool).AuditPage(ctx, after, int32(min(max(limit, 1), 10_000))) //nolint:gosec // bounded
	if err != nil {
		return nil, away(err)
	}
	out := make([]audit.Stored, len(rows))
	for i := range rows {
		r := &rows[i]
		out[i] = audit.Stored{Sequence: r.Sequence, Text: r.Record, Hash: r.Hash, Columns: audit.Columns{
			AtMicro: r.At.UnixMicro(), ActorID: valueOf(r.ActorID), ActorName: r.ActorName, SourceAddress: r.SourceAddress,
			RequestID: r.RequestID, Action: r.Action, ObjectKind: r.ObjectKind, ObjectID: r.ObjectID,
			PolicyVersion: valueOf(r.PolicyVersion), Reason: r.Reason, Result: r.Result, Terms: r.Terms,
		}}
	}
	return out, nil
}

func valueOf[T int64 | uuid.UUID | string](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
