package estimate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// figure appends a line to the file of figures, when one is wanted.
func figure(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Logf(format, args...)
	path := os.Getenv("FAIRLANE_TEST_FIGURES")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintf(f, format+"\n", args...)
}

var clipKey = Key{Model: "clip", Resolution: "720p", Seconds: 5, Provider: "a"}

func priors(p Prior) func(Key) Prior { return func(Key) Prior { return p } }

func usual() func(Key) Prior {
	return priors(Prior{MeanSeconds: 60, P95Seconds: 150, CostMicro: 100_000})
}

// sampled draws samples of two keys of one model, wild ones among them.
func sampled(t *rapid.T) []Sample {
	wild := rapid.OneOf(rapid.Float64Range(0.2, 400), rapid.SampledFrom([]float64{0, -1, 1e-9, 1e12, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64}))
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Sample {
		s := Sample{Key: clipKey, Seconds: wild.Draw(t, "seconds"), CostMicro: rapid.Int64Range(-2, math.MaxInt64).Draw(t, "cost")}
		s.Key.Provider = rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "provider")
		s.Held = s.Seconds + rapid.Float64Range(0, 30).Draw(t, "polling")
		return s
	}), 0, 60).Draw(t, "samples")
}

func TestFiguresStayInTheirRange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		prior := rapid.SampledFrom([]Prior{{}, {60, 150, 100_000}, {0.001, 0.001, 0}, {maxSeconds, maxSeconds, maxMicro}}).Draw(t, "prior")
		m := NewModel(priors(prior))
		for _, s := range sampled(t) {
			m.Observe(s)
			for _, k := range []Key{clipKey, clipKey.anyProvider(), {Model: "never seen"}} {
				f := m.Estimate(k)
				if !(f.MeanSeconds >= leastSeconds && f.P95Seconds >= f.MeanSeconds && f.P95Seconds <= maxSeconds && f.CostMicro >= 0 && f.CostMicro <= maxMicro) {
					t.Fatalf("%+v: %+v after %+v", k, f, s)
				}
			}
		}
	})
}

// Longer and dearer jobs never make estimates shorter or cheaper.
func TestFiguresAreMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		low, high := NewModel(usual()), NewModel(usual())
		n := rapid.SampledFrom([]int{1, 30, Memory + 50}).Draw(t, "tasks")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range n {
			s := Sample{Key: clipKey, Seconds: 0.2 + 200*r.Float64(), CostMicro: r.Int64N(300_000)}
			s.Held = s.Seconds + 20*r.Float64()
			low.Observe(s)
			s.Seconds, s.Held, s.CostMicro = s.Seconds*(1+r.Float64()), s.Held*(2+r.Float64()), s.CostMicro+r.Int64N(1000)
			high.Observe(s)
		}
		a, b := low.Estimate(clipKey), high.Estimate(clipKey)
		const slack = 1 - 1e-9
		if b.MeanSeconds < a.MeanSeconds*slack || b.P95Seconds < a.P95Seconds*slack || b.CostMicro < a.CostMicro*slack {
			t.Fatalf("from %+v down to %+v", a, b)
		}
	})
}

// What is learnt depends on the samples and their order: not on where a batch ends and its state is
// written down and read again.
func TestBatchesChangeNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		whole, parts := NewModel(usual()), NewModel(usual())
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		cut := rapid.IntRange(1, 700).Draw(t, "batch")
		for i := range rapid.SampledFrom([]int{20, 3*Memory + 7}).Draw(t, "tasks") {
			s := Sample{Key: clipKey, Seconds: 60 * math.Exp(0.7*r.NormFloat64()), CostMicro: r.Int64N(1e6)}
			s.Held = s.Seconds + 5
			whole.Observe(s)
			parts.Observe(s)
			if i%cut != 0 {
				continue
			}
			again := NewModel(usual())
			for _, k := range []Key{clipKey, clipKey.anyProvider()} {
				state, err := parts.Save(k)
				if err != nil {
					t.Fatal(err)
				}
				if err := again.Restore(k, state, History{}); err != nil {
					t.Fatal(err)
				}
			}
			parts = again
		}
		for _, k := range []Key{clipKey, clipKey.anyProvider()} {
			a, _ := whole.History(k)
			b, _ := parts.History(k)
			if a != b {
				t.Fatalf("%+v: %+v at once, %+v in batches of %d", k, a, b, cut)
			}
		}
	})
}

func TestEstimatesConvergeToALognormal(t *testing.T) {
	t.Parallel()
	const median, sigma, polling = 60.0, 0.6, 7.0
	mean, p95 := median*math.Exp(sigma*sigma/2), median*math.Exp(1.6449*sigma)+polling
	for _, prior := range []Prior{{60, 150, 100_000}, {20, 40, 50_000}, {400, 900, 2e6}, {}} {
		m := NewModel(priors(prior))
		r := rand.New(rand.NewPCG(7, 7))
		near, looks, sum := 0, 0.0, Figures{}
		for i := range 20_000 {
			x := median * math.Exp(sigma*r.NormFloat64())
			m.Observe(Sample{Key: clipKey, Seconds: x, Held: x + polling, CostMicro: int64(200_000 * math.Exp(0.3*r.NormFloat64()))})
			if f := m.Estimate(clipKey); near == 0 && math.Abs(f.MeanSeconds/mean-1) < 0.1 && math.Abs(f.P95Seconds/p95-1) < 0.1 {
				near = i + 1
			} else if i >= 4_000 && i%500 == 0 {
				looks++
				sum.MeanSeconds += f.MeanSeconds
				sum.P95Seconds += f.P95Seconds
				sum.CostMicro += f.CostMicro
			}
		}
		cost := 200_000 * math.Exp(0.3*0.3/2)
		off := [3]float64{sum.MeanSeconds/looks/mean - 1, sum.P95Seconds/looks/p95 - 1, sum.CostMicro/looks/cost - 1}
		// The memory is 1,000 tasks at most, so that single looks differ by 2 to 5 %; their average must not.
		if math.Abs(off[0]) > 0.02 || math.Abs(off[1]) > 0.03 || math.Abs(off[2]) > 0.02 {
			t.Errorf("from %+v: mean, P95 and cost are off by %+v", prior, off)
		}
		figure(t, "estimates from prior mean %.0f s, P95 %.0f s: on average over 4,000 to 20,000 tasks mean %+.1f %%, P95 %+.1f %%, cost %+.1f %% off; first within 10 %% of both times after %d tasks",
			prior.MeanSeconds, prior.P95Seconds, 100*off[0], 100*off[1], 100*off[2], near)
	}
}

// One wild clock counts for at most eight times the P95 that was expected.
func TestAnOutlierMovesLittle(t *testing.T) {
	t.Parallel()
	m := NewModel(usual())
	for range 200 {
		m.Observe(Sample{Key: clipKey, Seconds: 60, Held: 70, CostMicro: 100_000})
	}
	before := m.Estimate(clipKey)
	m.Observe(Sample{Key: clipKey, Seconds: 5e5, Held: 5e5, CostMicro: math.MaxInt64})
	after := m.Estimate(clipKey)
	most := outlier * before.P95Seconds / 200
	if after.MeanSeconds-before.MeanSeconds > 2*most || after.P95Seconds > before.P95Seconds*1.05 || after.CostMicro > before.CostMicro+2*leastOutlierMicro/200 {
		t.Errorf("from %+v to %+v", before, after)
	}
	if after.MeanSeconds <= before.MeanSeconds || after.CostMicro <= before.CostMicro {
		t.Errorf("it counts, though: from %+v to %+v", before, after)
	}
}

func TestAProviderStartsFromWhatOthersTook(t *testing.T) {
	t.Parallel()
	m := NewModel(usual())
	for range 500 {
		m.Observe(Sample{Key: clipKey, Seconds: 100, Held: 110, CostMicro: -1})
	}
	fresh := clipKey
	fresh.Provider = "b"
	if f := m.Estimate(fresh); f.MeanSeconds < 95 || f.CostMicro != 100_000 {
		t.Errorf("a provider nobody has seen: %+v; unknown costs must not count", f)
	}
	for range 100 {
		m.Observe(Sample{Key: fresh, Seconds: 20, Held: 25, CostMicro: -1})
	}
	a, b := m.Estimate(clipKey), m.Estimate(fresh)
	if b.MeanSeconds > 40 || a.MeanSeconds < 90 {
		t.Errorf("providers apart: %+v and %+v", a, b)
	}
	longer := clipKey
	longer.Seconds = 10
	if f := m.Estimate(longer); f.MeanSeconds != 60 {
		t.Errorf("another length is another kind of work: %+v", f)
	}
}

func TestVersionsTellWhatMoved(t *testing.T) {
	t.Parallel()
	m := NewModel(usual())
	if got := m.Estimate(clipKey); got.Version != PriorVersion || len(m.Moved(MovedShare)) != 0 {
		t.Fatalf("%+v, moved %v", got, m.Moved(MovedShare))
	}
	m.Observe(Sample{Key: clipKey, Seconds: 61, Held: 150, CostMicro: 100_000})
	if moved := m.Moved(MovedShare); len(moved) != 0 {
		t.Fatalf("%v moved by next to nothing", moved)
	}
	for range 30 {
		m.Observe(Sample{Key: clipKey, Seconds: 90, Held: 150, CostMicro: 100_000})
	}
	moved := m.Moved(MovedShare)
	if diff := cmp.Diff([]Key{clipKey.anyProvider(), clipKey}, moved); diff != "" {
		t.Fatal(diff)
	}
	m.Publish(2, moved)
	if again := m.Moved(MovedShare); len(again) != 0 || m.Estimate(clipKey).Version != 2 {
		t.Errorf("after publishing %v have moved, version %d", again, m.Estimate(clipKey).Version)
	}
}

func TestStatesThatAreNotOursAreRefused(t *testing.T) {
	t.Parallel()
	m := NewModel(usual())
	for _, state := range []string{
		``, `{`, `[]`, `{"work":{"weight":-1,"sum":0}}`, `{"work":{"weight":1e9,"sum":1}}`, `{"cost":{"weight":1,"sum":-5}}`,
		`{"held":{"x":1}}`, `{"held":{"99999":1}}`, `{"held":{"3":-1}}`, `{"held":{"3":1e300}}`, `{"held":{"3":900,"4":900}}`,
	} {
		if err := m.Restore(clipKey, []byte(state), History{}); err == nil {
			t.Errorf("%s was taken", state)
		}
		var c Calibration
		if err := c.Restore([]byte(`{"seconds":` + state + `}`)); err == nil && state != `{}` {
			t.Errorf("calibration %s was taken", state)
		}
	}
	if f := m.Estimate(clipKey); f.MeanSeconds != 60 {
		t.Errorf("a refused state changed something: %+v", f)
	}
}

func FuzzStatesOfCells(f *testing.F) {
	f.Add([]byte(`{"work":{"weight":2,"sum":90},"cost":{"weight":0,"sum":0},"held":{"100":1,"104":1}}`))
	f.Fuzz(func(t *testing.T, state []byte) {
		m := NewModel(usual())
		if m.Restore(clipKey, state, History{}) != nil {
			return
		}
		m.Observe(Sample{Key: clipKey, Seconds: 60, Held: 60, CostMicro: 1})
		if f := m.Estimate(clipKey); !(f.MeanSeconds >= leastSeconds && f.P95Seconds >= f.MeanSeconds && f.P95Seconds <= maxSeconds && f.CostMicro >= 0 && f.CostMicro <= maxMicro) {
			t.Fatalf("%s gives %+v", state, f)
		}
	})
}

// A provider that becomes three times slower: promises follow first, the mean after it.
func TestEstimatesFollowAChange(t *testing.T) {
	t.Parallel()
	m := NewModel(usual())
	r := rand.New(rand.NewPCG(13, 13))
	observe := func(median float64) Figures {
		x := median * math.Exp(0.4*r.NormFloat64())
		m.Observe(Sample{Key: clipKey, Seconds: x, Held: x, CostMicro: 100_000})
		return m.Estimate(clipKey)
	}
	for range 3_000 {
		observe(60)
	}
	mean, p95 := 180*math.Exp(0.08), 180*math.Exp(1.6449*0.4)
	byMean, byP95 := 0, 0
	for i := 1; i <= 5_000 && (byMean == 0 || byP95 == 0); i++ {
		f := observe(180)
		if byP95 == 0 && f.P95Seconds > 0.8*p95 {
			byP95 = i
		}
		if byMean == 0 && f.MeanSeconds > 0.8*mean {
			byMean = i
		}
	}
	figure(t, "a provider three times slower: P95 within 20 %% of the new one after %d tasks, mean after %d", byP95, byMean)
	if byP95 == 0 || byP95 > 300 || byMean == 0 || byMean > 2*Memory {
		t.Errorf("P95 after %d tasks, mean after %d", byP95, byMean)
	}
}
