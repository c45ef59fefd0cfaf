package facts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"fairlane/control/crashpoint"
)

// Rebuild recomputes counters from the rows that they count.
type Rebuild struct {
	db     *DB
	record func(context.Context, pgx.Tx, []Drift) error
}

// NewRebuild returns a rebuilder. record writes the audit lines of a table's drifts; it runs in the
// transaction of the repair, before it, so that there is no repair without its record.
func NewRebuild(db *DB, record func(context.Context, pgx.Tx, []Drift) error) *Rebuild {
	return &Rebuild{db: db, record: record}
}

// RebuildCounters repairs every counter that has drifted, upwards and downwards, and returns what it
// found. It may run while claims and endings go on: a counter's row is locked first, which keeps out
// everyone who could change its sum, and only then compared again. A shard that is missing is reported by
// the check and not made here: shards are made by publishing only.
func (r *Rebuild) RebuildCounters(ctx context.Context) ([]Drift, error) {
	var all []Drift
	for i := range counterTables {
		var found []Drift
		err := r.db.Tx(ctx, func(tx pgx.Tx) (err error) {
			found, err = r.table(ctx, tx, &counterTables[i])
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

func (r *Rebuild) table(ctx context.Context, tx pgx.Tx, c *counterTable) ([]Drift, error) {
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
	if err := r.record(ctx, tx, repairable); err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, c.repair(), keys)
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
