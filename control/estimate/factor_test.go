package estimate

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// A tenant whose tasks take k times what such tasks are estimated at is charged that, soon.
func TestATenantIsBroughtBackToWhatItUses(t *testing.T) {
	t.Parallel()
	const base = 40_000
	for _, c := range []struct {
		times float64
		sigma float64
		most  int
	}{{3, 0, 40}, {0.4, 0, 60}, {8, 0, 60}, {1.0 / 6, 0, 90}, {3, 0.6, 120}} {
		r := rand.New(rand.NewPCG(3, 3))
		var f Factor
		tasks, unit := 0, c.times*math.Exp(-c.sigma*c.sigma/2)
		for tasks < 1_000 && math.Abs(f.value()/c.times-1) > 0.1 {
			charged := f.Charge(base)
			f = f.Learn(charged, base, int64(base*unit*math.Exp(c.sigma*r.NormFloat64())))
			tasks++
		}
		var sumCharged, sumUsed float64
		for range 2_000 {
			charged, used := f.Charge(base), int64(base*unit*math.Exp(c.sigma*r.NormFloat64()))
			f = f.Learn(charged, base, used)
			sumCharged, sumUsed = sumCharged+float64(charged), sumUsed+float64(used)
		}
		figure(t, "tenant whose tasks take %.2f × the estimate (sigma %.1f): first charged within 10 %% of it after %d tasks, then %.1f %% of what it uses",
			c.times, c.sigma, tasks, 100*sumCharged/sumUsed)
		if off := sumCharged/sumUsed - 1; math.Abs(off) > 0.05 {
			t.Errorf("%.2f times the estimate: over 2,000 tasks charged %+.1f %% off", c.times, 100*off)
		}
		if tasks > c.most {
			t.Errorf("%.2f times the estimate: within 10 %% after %d tasks only", c.times, tasks)
		}
		for range 200 { // and back, when it takes what others take
			f = f.Learn(f.Charge(base), base, base)
		}
		if math.Abs(f.Value-1) > 0.05 {
			t.Errorf("after 200 usual tasks the factor is %g", f.Value)
		}
	}
}

func TestOneTaskMovesAFactorLittle(t *testing.T) {
	t.Parallel()
	f := Factor{1, 1_000}
	up, down := f.Learn(4_000, 4_000, maxMilli), f.Learn(4_000, 4_000, 0)
	if up.Value > 1.11 || up.Value <= 1 || down.Value < 0.97 || down.Value >= 1 {
		t.Errorf("up to %g, down to %g", up.Value, down.Value)
	}
	for _, bad := range [][3]int64{{0, 1, 1}, {1, 0, 1}, {1, 1, -1}, {-5, -5, -5}} {
		if got := f.Learn(bad[0], bad[1], bad[2]); got != f {
			t.Errorf("%v taught it %+v", bad, got)
		}
	}
}

func TestFactorsStayInTheirRange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := Factor{rapid.SampledFrom([]float64{0, 1, -3, 0.1, 10, 1e9, math.NaN(), math.Inf(1)}).Draw(t, "factor"), rapid.Int64Range(0, math.MaxInt64-100).Draw(t, "tasks")}
		for range 20 {
			base := rapid.Int64Range(1_000, maxMilli).Draw(t, "base")
			charged := f.Charge(base)
			if charged < 1_000 || charged > maxMilli {
				t.Fatalf("%+v charges %d for %d", f, charged, base)
			}
			n := f.Tasks
			if f = f.Learn(charged, base, rapid.Int64Range(0, maxMilli).Draw(t, "used")); !(f.Value >= LeastFactor && f.Value <= MostFactor) || f.Tasks != n+1 {
				t.Fatalf("%+v after %d", f, n)
			}
		}
	})
	if got := (Factor{}).Charge(4_321); got != 4_321 {
		t.Errorf("a neutral factor charges %d", got)
	}
}
