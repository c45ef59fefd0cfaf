package facts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"fairlane/audit"
	"fairlane/control"
	"fairlane/control/crashpoint"
)

// Rebuild recomputes counters from the rows that they count.
type Rebuild struct{ db *DB }

// NewRebuild returns the rebuilder of that database.
func NewRebuild(db *DB) *Rebuild { return &Rebuild{db: db} }

// RebuildCounters repairs every counter that has drifted, upwards and downwards, and returns what it
// found; each drift has its audit record, in the transaction of its repair. It may run while claims and
// endings go on: a counter's row is locked first, which keeps out everyone who could change its sum, and
// only then compared again. A shard that is missing is told by the check and not made here: shards are
// made by publishing only.
func (r *Rebuild) RebuildCounters(ctx context.Context, actor control.Actor) ([]Drift, error) {
	var all []Drift
	for i := range counterTables {
		var found []Drift
		err := r.db.Tx(ctx, func(tx pgx.Tx) (err error) {
			found, err = rebuildTable(ctx, tx, &counterTables[i], actor)
			return err
		})
		if err != nil {
			return all, fmt.Errorf("rebuild %s: %w", counterTables[i].name, err)
		}
		crashpoint.Hit("rebuild.committed")
		all = append(all, found...)
	}
	return all, nil
}

func rebuildTable(ctx context.Context, tx pgx.Tx, c *counterTable, actor control.Actor) ([]Drift, error) {
	_, suspects, err := readDrifts(ctx, tx, c, nil)
	if err != nil || len(suspects) == 0 {
		return nil, err
	}
	if c.create {
		if _, err := tx.Exec(ctx, c.insert(), suspects); err != nil {
			return nil, err
		}
	}
	if _, err := tx.Exec(ctx, c.lock(), suspects); err != nil {
		return nil, err
	}
	found, keys, err := readDrifts(ctx, tx, c, suspects)
	if err != nil {
		return nil, err
	}
	repairable := found[:0]
	for _, d := range found {
		if d.From < 0 {
			continue
		}
		repairable = append(repairable, d)
	}
	if len(repairable) == 0 {
		return nil, nil
	}
	if _, err := tx.Exec(ctx, c.repair(), keys); err != nil {
		return nil, err
	}
	crashpoint.Hit("rebuild.repaired")
	events := make([]audit.Event, len(repairable))
	for i, d := range repairable {
		events[i] = audit.Event{
			Actor: actor, Action: audit.CountersRebuilt, ObjectKind: audit.KindCounter, ObjectID: d.Table + " " + d.Object, Result: audit.OK,
			Params: map[string]any{"counter": d.Counter, "key": d.Object, "before": d.From, "after": d.To}, Old: d.From, New: d.To,
		}
	}
	_, err = appendAudits(ctx, tx, events)
	return repairable, err
}

// readDrifts returns the drifts of a table and the key texts of their rows; suspects nil: of all rows.
func readDrifts(ctx context.Context, tx pgx.Tx, c *counterTable, suspects []string) ([]Drift, []string, error) {
	var args []any
	if suspects != nil {
		args = []any{suspects}
	}
	rows, err := tx.Query(ctx, c.drifts(suspects != nil), args...)
	if err != nil {
		return nil, nil, err
	}
	var found []Drift
	var keys set[string]
	var key string
	d := Drift{Table: c.name}
	_, err = pgx.ForEachRow(rows, []any{&key, &d.Object, &d.Counter, &d.From, &d.To}, func() error {
		found = append(found, d)
		keys.add(key)
		return nil
	})
	return found, keys.list(), err
}
