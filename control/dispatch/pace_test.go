package dispatch

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPaceOfChecks(t *testing.T) {
	t.Parallel()
	p := pace{1}
	between := func(what string, got, least, most time.Duration) {
		t.Helper()
		if got < least || got > most {
			t.Errorf("%s: %v, want %v to %v", what, got, least, most)
		}
	}
	for _, r := range []float64{0, 0.5, 0.999} {
		between("first", p.first(r), 10*time.Second, 12*time.Second)
		between("early", p.next(20*time.Second, time.Minute, 2*time.Minute, r), 15*time.Second, 30*time.Second)
		between("near the end", p.next(50*time.Second, time.Minute, 2*time.Minute, r), 5*time.Second, 10*time.Second)
		between("past the P95", p.next(170*time.Second, time.Minute, 2*time.Minute, r), 5*time.Second, 10*time.Second)
		between("long past", p.next(time.Hour, time.Minute, 2*time.Minute, r), 15*time.Second, 30*time.Second)
		between("nothing expected", p.next(time.Minute, 0, 0, r), 15*time.Second, 30*time.Second)
		between("silent once", p.silent(1, r), 15*time.Second, 23*time.Second)
		between("silent for long", p.silent(1000, r), 5*time.Minute, 8*time.Minute)
		between("unknown once", p.unknown(1, r), 2*time.Second, 3*time.Second)
		between("unknown for long", p.unknown(1<<30, r), time.Minute, 90*time.Second)
	}
	between("twenty times faster", pace{20}.first(0), 500*time.Millisecond, 500*time.Millisecond)
	between("never busy", pace{1e4}.first(0), paceFloor, paceFloor)
}

func TestTrap_D29_RetryIsNeverEarlierThanToldAndSpread(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := pace{rapid.Float64Range(0.01, 10_000).Draw(t, "speed")}
		n := rapid.IntRange(-1, 1<<40).Draw(t, "attempt")
		hint := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "hint"))
		r := rapid.Float64Range(0, 0.9999).Draw(t, "r")
		got := p.retry(n, hint, r)
		if got < hint || got < paceFloor {
			t.Fatalf("%v, told %v", got, hint)
		}
		if bound := 2*max(hint, p.scaled(retryCap.Seconds())) + p.scaled(2); got > bound {
			t.Fatalf("%v, bound %v", got, bound)
		}
		if later := p.retry(n, hint, r+0.0001); later < got {
			t.Fatalf("%v, then %v", got, later)
		}
	})
	// At the cap too, twenty that were refused at once come back over minutes.
	rnd := rand.New(rand.NewPCG(1, 2))
	for name, hint := range map[string]time.Duration{"own": 0, "told": 10 * time.Minute} {
		least, most := time.Hour, time.Duration(0)
		for range 20 {
			d := pace{1}.retry(50, hint, rnd.Float64())
			least, most = min(least, d), max(most, d)
		}
		if most-least < 2*time.Minute {
			t.Errorf("%s: all within %v", name, most-least)
		}
	}
}
