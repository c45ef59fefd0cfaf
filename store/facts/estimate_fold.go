package facts

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"fairlane/control/crashpoint"
	"fairlane/control/estimate"
)

// foldSample is one row of estimate_sample.
type foldSample struct {
	id int64
	estimate.Sample
	estimate.Outcome
}

func fold(ctx context.Context, tx pgx.Tx, priors func(estimate.Key) estimate.Prior, limit int, share float64) (int, error) {
	var head, learnt int64
	if err := tx.QueryRow(ctx, `SELECT version, samples FROM estimate_head FOR NO KEY UPDATE`).Scan(&head, &learnt); err != nil {
		return 0, err
	}
	samples, err := takeSamples(ctx, tx, limit)
	if err != nil || len(samples) == 0 {
		return 0, err
	}
	var keys set[estimate.Key]
	var models set[string]
	for i := range samples {
		k := samples[i].Key
		keys.add(k)
		k.Provider = ""
		keys.add(k)
		models.add(k.Model)
	}
	m := estimate.NewModel(priors)
	if err := restoreCells(ctx, tx, m, keys.list()); err != nil {
		return 0, err
	}
	calibrations, err := restoreCalibrations(ctx, tx, models.list())
	if err != nil {
		return 0, err
	}
	for i := range samples {
		s := &samples[i]
		m.Observe(s.Sample)
		entry(calibrations, s.Key.Model).Observe(s.Outcome)
	}
	b := &pgx.Batch{}
	if err := queueCells(b, m, keys.list()); err != nil {
		return 0, err
	}
	if err := queueCalibrations(b, calibrations); err != nil {
		return 0, err
	}
	learnt += int64(len(samples))
	if moved := m.Moved(share); len(moved) > 0 {
		head++
		queueVersion(b, m, moved, head, learnt)
	}
	b.Queue(`UPDATE estimate_head SET version = $1, samples = $2`, head, learnt).Exec(mustAffect(1, "heads of the estimates moved"))
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return 0, err
	}
	crashpoint.Hit("estimate.folded")
	return len(samples), nil
}

func takeSamples(ctx context.Context, tx pgx.Tx, limit int) ([]foldSample, error) {
	rows, err := tx.Query(ctx, `
		DELETE FROM estimate_sample s USING (SELECT sample_id FROM estimate_sample ORDER BY sample_id LIMIT $1) k
		WHERE s.sample_id = k.sample_id
		RETURNING s.sample_id, s.model_code, s.resolution, s.clip_seconds, s.provider, s.used_seconds, s.held_seconds,
		    coalesce(s.cost_micro, -1), s.expected_seconds, s.expected_p95_seconds, s.used_units, s.charged_units`, limit)
	if err != nil {
		return nil, err
	}
	var out []foldSample
	var s foldSample
	_, err = pgx.ForEachRow(rows, []any{&s.id, &s.Key.Model, &s.Key.Resolution, &s.Key.Seconds, &s.Key.Provider, &s.Sample.Seconds, &s.Sample.Held,
		&s.CostMicro, &s.ExpectedSeconds, &s.P95Seconds, &s.Used, &s.Charged}, func() error {
		s.Outcome.Seconds, s.Outcome.Held = s.Sample.Seconds, s.Sample.Held
		out = append(out, s)
		return nil
	})
	slices.SortFunc(out, func(a, b foldSample) int { return int(a.id - b.id) })
	return out, err
}

// keyColumns takes keys apart for unnest.
func keyColumns(keys []estimate.Key) (models, resolutions []string, seconds []int64, providers []string) {
	return each(keys, func(k estimate.Key) string { return k.Model }), each(keys, func(k estimate.Key) string { return k.Resolution }),
		each(keys, func(k estimate.Key) int64 { return k.Seconds }), each(keys, func(k estimate.Key) string { return k.Provider })
}

func restoreCells(ctx context.Context, tx pgx.Tx, m *estimate.Model, keys []estimate.Key) error {
	models, resolutions, seconds, providers := keyColumns(keys)
	rows, err := tx.Query(ctx, `
		SELECT c.state, c.model_code, c.resolution, c.clip_seconds, c.provider, coalesce(e.tasks, 0), coalesce(e.mean_seconds, 0),
		       coalesce(e.p95_seconds, 0), coalesce(e.costs, 0), coalesce(e.cost_micro, 0)
		FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) k(model_code, resolution, clip_seconds, provider)
		JOIN estimate_cell c USING (model_code, resolution, clip_seconds, provider)
		LEFT JOIN LATERAL (
		    SELECT * FROM estimate e WHERE (e.model_code, e.resolution, e.clip_seconds, e.provider) = (c.model_code, c.resolution, c.clip_seconds, c.provider)
		    ORDER BY version DESC LIMIT 1) e ON true`, models, resolutions, seconds, providers)
	if err != nil {
		return err
	}
	var state []byte
	var k estimate.Key
	var told estimate.History
	_, err = pgx.ForEachRow(rows, append([]any{&state}, historyInto(&k, &told)...), func() error { return m.Restore(k, state, told) })
	return err
}

func restoreCalibrations(ctx context.Context, tx pgx.Tx, models []string) (map[string]*estimate.Calibration, error) {
	rows, err := tx.Query(ctx, `SELECT model_code, state FROM estimate_calibration WHERE model_code = ANY($1)`, models)
	if err != nil {
		return nil, err
	}
	out := map[string]*estimate.Calibration{}
	var model string
	var state []byte
	_, err = pgx.ForEachRow(rows, []any{&model, &state}, func() error { return entry(out, model).Restore(state) })
	return out, err
}

func queueCells(b *pgx.Batch, m *estimate.Model, keys []estimate.Key) error {
	states := make([][]byte, len(keys))
	for i, k := range keys {
		var err error
		if states[i], err = m.Save(k); err != nil {
			return err
		}
	}
	models, resolutions, seconds, providers := keyColumns(keys)
	b.Queue(`
		INSERT INTO estimate_cell (model_code, resolution, clip_seconds, provider, state)
		SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::jsonb[])
		ON CONFLICT (model_code, resolution, clip_seconds, provider) DO UPDATE SET state = excluded.state, updated_at = clock_timestamp()`,
		models, resolutions, seconds, providers, states).Exec(mustAffect(len(keys), "cells kept"))
	return nil
}

func queueCalibrations(b *pgx.Batch, calibrations map[string]*estimate.Calibration) error {
	models, states := make([]string, 0, len(calibrations)), make([][]byte, 0, len(calibrations))
	for model, c := range calibrations {
		state, err := c.Save()
		if err != nil {
			return err
		}
		models, states = append(models, model), append(states, state)
	}
	b.Queue(`
		INSERT INTO estimate_calibration (model_code, state) SELECT * FROM unnest($1::text[], $2::jsonb[])
		ON CONFLICT (model_code) DO UPDATE SET state = excluded.state, updated_at = clock_timestamp()`, models, states).
		Exec(mustAffect(len(models), "calibrations kept"))
	return nil
}

func queueVersion(b *pgx.Batch, m *estimate.Model, moved []estimate.Key, version, samples int64) {
	h := make([]estimate.History, len(moved))
	for i, k := range moved {
		h[i], _ = m.History(k)
	}
	number := func(get func(estimate.History) float64) []float64 { return each(h, get) }
	models, resolutions, seconds, providers := keyColumns(moved)
	b.Queue(`INSERT INTO estimate_version (version, samples) VALUES ($1, $2)`, version, samples).Exec(mustAffect(1, "versions written"))
	b.Queue(`
		INSERT INTO estimate (version, `+estimateColumns+`)
		SELECT $1, * FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[], $6::float8[], $7::float8[], $8::float8[], $9::float8[], $10::float8[])`,
		version, models, resolutions, seconds, providers,
		number(func(h estimate.History) float64 { return h.Tasks }), number(func(h estimate.History) float64 { return h.MeanSeconds }),
		number(func(h estimate.History) float64 { return h.P95Seconds }), number(func(h estimate.History) float64 { return h.Costs }),
		number(func(h estimate.History) float64 { return h.CostMicro })).Exec(mustAffect(len(moved), "estimates written"))
}
