package facts

import (
	"context"

	"github.com/jackc/pgx/v5"

	"fairlane/audit"
	"fairlane/control"
)

// RecordDrifts writes an audit event for every counter that is about to be repaired.
func RecordDrifts(ctx context.Context, tx pgx.Tx, drifts []Drift) error {
	events := make([]audit.Event, len(drifts))
	for i, d := range drifts {
		events[i] = audit.Event{
			Actor: control.System, Action: audit.CountersRebuilt, ObjectKind: audit.KindCounter, ObjectID: d.Table + " " + d.Object,
			Params: map[string]any{"counter": d.Table + "." + d.Counter, "key": d.Object, "before": d.From, "after": d.To},
			Old:    map[string]any{d.Counter: d.From}, New: map[string]any{d.Counter: d.To}, Result: audit.OK,
		}
	}
	_, err := appendAudits(ctx, tx, events)
	return err
}
