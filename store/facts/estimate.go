package facts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/crashpoint"
	"fairlane/control/estimate"
)

// MaxFold is the largest batch of samples that Fold takes.
const MaxFold = 1000

// Estimates keep what has been learnt of the time and the cost of work. It implements estimate.Source.
type Estimates struct{ db *DB }

// NewEstimates returns the estimates of that database.
func NewEstimates(db *DB) *Estimates { return &Estimates{db: db} }

// HeadVersion is the number of the newest version.
func (e *Estimates) HeadVersion(ctx context.Context) (int64, error) {
	var n int64
	err := e.db.pool.QueryRow(ctx, `SELECT version FROM estimate_head`).Scan(&n)
	return n, away(err)
}

// Book reads a version whole: for each kind of work that is known the newest row up to it, by the key,
// since the history grows without end.
func (e *Estimates) Book(ctx context.Context, version int64) (*estimate.Book, error) {
	var exists bool
	if err := e.db.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM estimate_version WHERE version = $1)`, version).Scan(&exists); err != nil {
		return nil, away(err)
	}
	if !exists {
		return nil, control.Errorf(control.CodeNotFound, "no version %d of the estimates", version)
	}
	rows, err := e.db.pool.Query(ctx, `
		SELECT e.* FROM estimate_cell c CROSS JOIN LATERAL (
		    SELECT `+estimateColumns+` FROM estimate e
		    WHERE (e.model_code, e.resolution, e.clip_seconds, e.provider) = (c.model_code, c.resolution, c.clip_seconds, c.provider) AND version <= $1
		    ORDER BY version DESC LIMIT 1) e`, version)
	if err != nil {
		return nil, away(err)
	}
	known := map[estimate.Key]estimate.History{}
	var k estimate.Key
	var h estimate.History
	_, err = pgx.ForEachRow(rows, historyInto(&k, &h), func() error { known[k] = h; return nil })
	if err != nil {
		return nil, away(err)
	}
	return estimate.NewBook(version, known), nil
}

// Fold folds the oldest samples, at most limit, in the order of their numbers, and publishes a version
// of what has moved by more than share of what was published. It returns how many samples it took.
// Each is folded once, whoever calls and however often: the head is locked first, and a sample goes in the
// transaction that folds it.
func (e *Estimates) Fold(ctx context.Context, priors func(estimate.Key) estimate.Prior, limit int, share float64) (int, error) {
	if limit < 1 || limit > MaxFold {
		return 0, control.Errorf(control.CodeTooLarge, "a batch has 1 to %d samples, not %d", MaxFold, limit)
	}
	var n int
	err := e.db.Tx(ctx, func(tx pgx.Tx) (err error) {
		n, err = fold(ctx, tx, priors, limit, share)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("fold samples: %w", err)
	}
	crashpoint.Hit("estimate.committed")
	return n, nil
}

// Calibrations compare estimates with what came of them, by model.
func (e *Estimates) Calibrations(ctx context.Context) (map[string]estimate.Quality, error) {
	rows, err := e.db.pool.Query(ctx, `SELECT model_code, state FROM estimate_calibration`)
	if err != nil {
		return nil, away(err)
	}
	out := map[string]estimate.Quality{}
	var model string
	var state []byte
	_, err = pgx.ForEachRow(rows, []any{&model, &state}, func() error {
		var c estimate.Calibration
		if err := c.Restore(state); err != nil {
			return fmt.Errorf("model %s: %w", model, err)
		}
		out[model] = c.Quality()
		return nil
	})
	return out, away(err)
}

const estimateColumns = `model_code, resolution, clip_seconds, provider, tasks, mean_seconds, p95_seconds, costs, cost_micro`

func historyInto(k *estimate.Key, h *estimate.History) []any {
	return []any{&k.Model, &k.Resolution, &k.Seconds, &k.Provider, &h.Tasks, &h.MeanSeconds, &h.P95Seconds, &h.Costs, &h.CostMicro}
}
