package simulated

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"time"
)

func demo(seed uint64) Config {
	c := Config{Seed: seed, Speed: 20, Rates: UsualRates(), Models: []Model{{Code: "m", P50: 60, P95: 150}}}
	if err := c.complete(); err != nil {
		panic(err)
	}
	return c
}

// A fate follows from seed and key alone.
func TestFatesAreDetermined(t *testing.T) {
	t.Parallel()
	a, b, other := demo(7), demo(7), demo(8)
	differ := 0
	for i := range 500 {
		key := strconv.Itoa(i)
		first := a.draw("p", key, a.Models[0])
		if again := b.draw("p", strconv.Itoa(i), b.Models[0]); again != first {
			t.Fatalf("key %s: %+v, then %+v", key, first, again)
		}
		if other.draw("p", key, other.Models[0]) != first {
			differ++
		}
		if a.draw("q", key, a.Models[0]) == first {
			differ--
		}
	}
	if differ < 450 {
		t.Errorf("seed or profile hardly matter: %d", differ)
	}
	// One rate does not change what the others decide.
	c := demo(7)
	c.Rates.Unknown = 0.5
	for i := range 500 {
		key := strconv.Itoa(i)
		was, is := a.draw("p", key, a.Models[0]), c.draw("p", key, c.Models[0])
		if was.End != is.End || was.Duration != is.Duration || was.Callback != is.Callback {
			t.Fatalf("key %s: %+v became %+v", key, was, is)
		}
	}
}

func TestFatesFollowTheRates(t *testing.T) {
	t.Parallel()
	c := demo(1)
	const n = 40_000
	ends, answers, callbacks := map[string]int{}, map[string]int{}, map[string]int{}
	var durations []time.Duration
	for i := range n {
		f := c.draw("p", strconv.Itoa(i), c.Models[0])
		ends[f.End]++
		answers[f.Answer]++
		callbacks[f.Callback]++
		if f.End == endSucceeded {
			durations = append(durations, f.Duration)
		}
		if f.Duration <= 0 || f.Duration > c.longest() {
			t.Fatalf("duration %v", f.Duration)
		}
	}
	near := func(what string, got int, rate float64) {
		t.Helper()
		if d := math.Abs(float64(got) - rate*n); d > 5*math.Sqrt(n*rate*(1-rate))+1 {
			t.Errorf("%s: %d of %d, want about %.4f", what, got, n, rate)
		}
	}
	near("succeeded", ends[endSucceeded], 0.965)
	near("refused", ends[endRefused], 0.02)
	near("failed", ends[endFailed], 0.015)
	near("answer dropped", answers[answerDropped], 0.0015)
	near("answer held", answers[answerHeld], 0.0015)
	near("callback lost", callbacks[callbackLost], 0.01)
	near("callback late", callbacks[callbackLate], 0.02)
	near("callback early", callbacks[callbackEarly], 0.02)
	near("callback twice", callbacks[callbackTwice], 0.02)
	slices.Sort(durations)
	for q, want := range map[float64]float64{0.5: 60, 0.95: 150} {
		if got := durations[int(q*float64(len(durations)))].Seconds() * c.Speed; math.Abs(got-want) > want*0.05 {
			t.Errorf("quantile %v: %.1f s, want %v", q, got, want)
		}
	}
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := func() Config {
		return Config{Models: []Model{{Code: "m", P50: 1, P95: 2}}, Profiles: []Profile{{Code: "p", Pools: []Pool{{"a", "m", 1}}}}}
	}
	if c := good(); c.complete() != nil {
		t.Fatal(c.complete())
	}
	for name, spoil := range map[string]func(*Config){
		"speed":       func(c *Config) { c.Speed = -1 },
		"speed NaN":   func(c *Config) { c.Speed = math.NaN() },
		"rate":        func(c *Config) { c.Rates.Failed = 1.5 },
		"rate NaN":    func(c *Config) { c.Rates.Failed = math.NaN() },
		"no p50":      func(c *Config) { c.Models[0].P50 = 0 },
		"p95 < p50":   func(c *Config) { c.Models[0].P95 = 0.5 },
		"p50 NaN":     func(c *Config) { c.Models[0].P50 = math.NaN() },
		"model twice": func(c *Config) { c.Models = append(c.Models, c.Models[0]) },
		"no profile":  func(c *Config) { c.Profiles[0].Code = "" },
		"pool model":  func(c *Config) { c.Profiles[0].Pools[0].Model = "x" },
		"concurrency": func(c *Config) { c.Profiles[0].Pools[0].Concurrency = -1 },
		"secret":      func(c *Config) { c.Profiles[0].Signed = true },
		"cost":        func(c *Config) { c.Models[0].CostMicro = -1 },
	} {
		c := good()
		spoil(&c)
		if c.complete() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
