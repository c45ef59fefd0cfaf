package facts_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/estimate"
	"fairlane/store/facts"
)

// sample puts samples into the queue of the learner, as completions do.
func (w *world) sample(t testing.TB, samples ...estimate.Sample) {
	t.Helper()
	n := len(samples)
	ids, models, resolutions, lengths, providers := make([]uuid.UUID, n), make([]string, n), make([]string, n), make([]int64, n), make([]string, n)
	used, held, costs := make([]float64, n), make([]float64, n), make([]*int64, n)
	for i, s := range samples {
		ids[i], models[i], resolutions[i], lengths[i], providers[i] = uuid.New(), s.Key.Model, s.Key.Resolution, s.Key.Seconds, s.Key.Provider
		used[i], held[i] = s.Seconds, s.Held
		if s.CostMicro >= 0 {
			costs[i] = &s.CostMicro
		}
	}
	w.exec(t, `
		INSERT INTO estimate_sample (attempt_id, model_code, resolution, clip_seconds, provider, used_seconds, held_seconds, cost_micro,
		    expected_seconds, expected_p95_seconds, charged_units, used_units)
		SELECT k.id, k.m, k.r, k.c, k.p, k.u, k.h, k.cost, 60, 150, 2000, 3000
		FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::float8[], $7::float8[], $8::bigint[]) WITH ORDINALITY k(id, m, r, c, p, u, h, cost, n) ORDER BY k.n`,
		ids, models, resolutions, lengths, providers, used, held, costs)
}

func history(n int) []estimate.Sample {
	r := rand.New(rand.NewPCG(11, 11))
	out := make([]estimate.Sample, n)
	for i := range out {
		x := 90 * math.Exp(0.5*r.NormFloat64())
		out[i] = estimate.Sample{
			Key:     estimate.Key{Model: []string{"clip", "epic"}[r.IntN(2)], Resolution: "720p", Seconds: 5, Provider: []string{"a", "b"}[r.IntN(2)]},
			Seconds: x, Held: x + 8, CostMicro: r.Int64N(400_000) - 1,
		}
	}
	return out
}

func clipPriors(estimate.Key) estimate.Prior {
	return estimate.Prior{MeanSeconds: 60, P95Seconds: 150, CostMicro: 100_000}
}

// What the database learns in batches is what the pure model learns at once, and every version stays.
func TestFoldLearnsWhatTheModelLearns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := facts.NewEstimates(w.db)
	samples := history(1_500)
	w.sample(t, samples...)
	if got, err := store.Fold(w.ctx, clipPriors, 0, 0); control.CodeOf(err) != control.CodeTooLarge {
		t.Errorf("a batch of none: %d %v", got, err)
	}
	m, folded := estimate.NewModel(clipPriors), 0
	versions := map[int64]*estimate.Book{}
	for i := 0; ; i++ {
		n, err := store.Fold(w.ctx, clipPriors, []int{1, 7, 300}[i%3], estimate.MovedShare)
		w.must(err)
		if n == 0 {
			break
		}
		folded += n
		head, err := store.HeadVersion(w.ctx)
		w.must(err)
		if versions[head] == nil {
			versions[head], err = store.Book(w.ctx, head)
			w.must(err)
		}
	}
	for _, s := range samples {
		m.Observe(s)
	}
	if folded != len(samples) || w.number(t, `SELECT samples FROM estimate_head`) != int64(folded) {
		t.Fatalf("%d samples folded of %d", folded, len(samples))
	}
	w.sample(t, samples[:1]...) // with a share of nothing, the last version is exactly what the model knows
	m.Observe(samples[0])
	_, err := store.Fold(w.ctx, clipPriors, 10, 0)
	w.must(err)
	head, err := store.HeadVersion(w.ctx)
	w.must(err)
	newest, err := store.Book(w.ctx, head)
	w.must(err)
	for _, provider := range []string{"a", "b", ""} {
		for _, model := range []string{"clip", "epic"} {
			k := estimate.Key{Model: model, Resolution: "720p", Seconds: 5, Provider: provider}
			got, want := newest.Estimate(k, clipPriors(k)), m.Estimate(k)
			want.Version = head
			same := got == want
			if k.Model != samples[0].Key.Model || provider != samples[0].Key.Provider && provider != "" { // not told again: within the share
				same = math.Abs(got.MeanSeconds/want.MeanSeconds-1) <= 2*estimate.MovedShare && math.Abs(got.P95Seconds/want.P95Seconds-1) <= 2*estimate.MovedShare
			}
			if !same {
				t.Errorf("%+v: the book says %+v, the model %+v", k, got, want)
			}
		}
	}
	for version, before := range versions { // what a version said, it says
		again, err := store.Book(w.ctx, version)
		w.must(err)
		for _, k := range []estimate.Key{{Model: "clip", Resolution: "720p", Seconds: 5}, {Model: "epic", Resolution: "720p", Seconds: 5, Provider: "b"}} {
			if a, b := before.Estimate(k, clipPriors(k)), again.Estimate(k, clipPriors(k)); a != b {
				t.Errorf("version %d said %+v of %+v, and now %+v", version, a, k, b)
			}
		}
	}
	if n := w.number(t, `SELECT count(*) FROM estimate_version`); int64(len(versions)) >= n+1 || n != head {
		t.Errorf("%d versions, the head is %d, seen %d", n, head, len(versions))
	}
	figure(t, "estimates learnt", map[string]any{"samples": folded, "versions": head, "share": estimate.MovedShare})
	for _, sql := range []string{`UPDATE estimate SET mean_seconds = 1`, `DELETE FROM estimate`, `TRUNCATE estimate`, `UPDATE estimate_version SET samples = 0`, `DELETE FROM estimate_version`} {
		if _, err := w.sql.Exec(w.ctx, sql); err == nil {
			t.Errorf("%s went through", sql)
		}
	}
	if _, err := store.Book(w.ctx, head+1); control.CodeOf(err) != control.CodeNotFound {
		t.Errorf("a version that is not there: %v", err)
	}
	q, err := store.Calibrations(w.ctx)
	w.must(err)
	if q["clip"].Tasks == 0 || q["clip"].UnitsP50 < 1.47 || q["clip"].UnitsP50 > 1.53 || q["epic"].AboveP95 <= 0 {
		t.Errorf("calibrations %+v", q)
	}
}

// Two learners at once, such as one whose lease has run out, fold every sample once.
func TestFoldTakesEverySampleOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	samples := history(800)
	w.sample(t, samples...)
	var folded atomic.Int64
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			store := facts.NewEstimates(w.db)
			for {
				n, err := store.Fold(w.ctx, clipPriors, 50, estimate.MovedShare)
				if err != nil {
					t.Error(err)
					return
				}
				if n == 0 {
					return
				}
				folded.Add(int64(n))
			}
		})
	}
	wg.Wait()
	m := estimate.NewModel(clipPriors)
	for _, s := range samples {
		m.Observe(s)
	}
	k := estimate.Key{Model: "clip", Resolution: "720p", Seconds: 5, Provider: "a"}
	want, err := m.Save(k)
	w.must(err)
	if n := folded.Load(); n != 800 || w.number(t, `SELECT count(*) FROM estimate_cell WHERE (model_code, provider) = ('clip', 'a') AND state = $1::jsonb`, want) != 1 {
		t.Errorf("%d of 800 samples folded, or not in their order", n)
	}
}

// A cell that holds what is not a state stops the learner and loses nothing.
func TestFoldLosesNothingOverABrokenState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sample(t, history(20)...)
	w.exec(t, `INSERT INTO estimate_cell VALUES ('clip', '720p', 5, 'a', '{"work": {"weight": -4}}')`)
	store := facts.NewEstimates(w.db)
	if _, err := store.Fold(w.ctx, clipPriors, 100, 0); err == nil {
		t.Error("a weight of -4 was learnt from")
	}
	w.exec(t, `DELETE FROM estimate_cell`)
	n, err := store.Fold(w.ctx, clipPriors, 100, 0)
	if err != nil || n != 20 {
		t.Errorf("then %d of 20 samples, %v", n, err)
	}
}

// From completion to the next admission, through the rows: a tenant whose jobs take three times what is
// estimated for such jobs is charged so, and its debt stops growing.
func TestATenantIsChargedForWhatItUses(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	w.debts(t, 50_000, 500_000)
	admissions := facts.NewAdmissions(w.db)
	const base = 4_000
	tasks, debt := 0, int64(0)
	for ; tasks < 200; tasks++ {
		s, err := admissions.Standing(w.ctx, tenant, "nobody")
		w.must(err)
		if s.Blocked || s.Factor.Tasks != int64(tasks) {
			t.Fatalf("after %d tasks: %+v", tasks, s)
		}
		if s.Factor.Value > 2.7 {
			break
		}
		ids := w.queue(t, job{tenant: tenant, user: user})
		charged := s.Factor.Charge(base)
		w.exec(t, `UPDATE generation_task SET fairness_units = $2, base_units = $3 WHERE task_id = $1`, ids[0], charged, base)
		w.exec(t, `UPDATE tenant_runtime SET queued_units = $1`, charged)
		w.exec(t, `UPDATE tenant_lane_runtime SET queued_units = $1`, charged)
		got := w.claim(t, w.starts(t, ids, "leaf", inGroups, control.AccountCommon)...)
		w.accept(t, got...)
		done := w.end(t, took(got[0], 3*30*base/1000))
		debt += 3*base - charged
		if done[0].Settled.DebtMilli != 3*base-charged {
			t.Fatalf("task %d: %+v", tasks, done[0].Settled)
		}
	}
	if tasks > 40 {
		t.Errorf("not within 10 %% after %d tasks", tasks)
	}
	if n := w.debt(t, tenant); n != debt {
		t.Errorf("a debt of %d, the corrections make %d", n, debt)
	}
	figure(t, "a tenant at three times its estimates", map[string]any{"tasks_until_within_10_percent": tasks, "debt_until_then_units": debt / 1000})
	w.clean(t)
	if s, err := admissions.Standing(w.ctx, uuid.New(), "x"); err != nil || s.Factor.Charge(base) != base {
		t.Errorf("a tenant that is not known: %+v %v", s, err)
	}
}

// A version is read whole while others are written.
func TestBooksAreReadWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := facts.NewEstimates(w.db)
	var keys []estimate.Key
	for i := range 40 {
		keys = append(keys, estimate.Key{Model: fmt.Sprint("m", i), Provider: "a"})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for round := range 30 {
			batch := make([]estimate.Sample, len(keys))
			for i, k := range keys {
				batch[i] = estimate.Sample{Key: k, Seconds: 10 * float64(round+1), Held: 1_000, CostMicro: 5}
			}
			w.sample(t, batch...)
			if _, err := store.Fold(w.ctx, clipPriors, 1_000, 0); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for looks := 0; ; looks++ {
		head, err := store.HeadVersion(w.ctx)
		w.must(err)
		book, err := store.Book(w.ctx, head)
		w.must(err)
		var first estimate.Figures
		for i, k := range keys {
			f := book.Estimate(k, clipPriors(k))
			if i == 0 {
				first = f
			} else if f != first {
				t.Fatalf("version %d: %+v of one model, %+v of another", head, first, f)
			}
		}
		select {
		case <-done:
			if looks == 0 || head < 2 {
				t.Errorf("%d looks, the last at version %d", looks, head)
			}
			return
		default:
		}
	}
}
