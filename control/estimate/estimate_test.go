package estimate

import (
	"math"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"fairlane/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var seedBases = policy.Scheduling{ProviderSecondBase: 30, CostBaseMicro: 100_000, GPUSecondBase: 30}

func clip() policy.Model {
	return policy.Model{
		Code: "clip", Kind: "VIDEO", Resolutions: []string{"720p", "1080p", "4k"}, Seconds: []int64{5, 10},
		SlotUnits: 1, MeanSeconds: 60, P95Seconds: 150, CostMicro: 100_000, PriceMicro: 150_000,
	}
}

// The shipped bases (30 s, 0.1 of the currency, 30 GPU s) and usual units.
func TestEstimateWorkedExamples(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name              string
		slots             int64
		mean, gpu         float64
		costMicro, expect int64
	}{
		{"seconds lead: 60 s / 30 s", 1, 60, 0, 100_000, 2_000},
		{"cost leads: 0.8 / 0.1", 1, 60, 0, 800_000, 8_000},
		{"GPU seconds lead: 120 / 30", 1, 30, 120, 100_000, 4_000},
		{"a short cheap job costs one unit", 1, 6, 0, 10_000, 1_000},
		{"thirds are rounded up to a milli-unit", 1, 110, 0, 0, 3_667},
		{"1080p long video, 3 slot units", 3, 60, 0, 100_000, 6_000},
		{"4K, 8 slot units at 3.20", 8, 110, 0, 3_200_000, 256_000},
		{"video to video, 12 slot units", 12, 90, 0, 0, 36_000},
		{"a minimum below one after slots is still one", 2, 1, 0, 1, 1_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := clip()
			m.SlotUnits, m.MeanSeconds, m.P95Seconds, m.GPUSeconds, m.CostMicro = tc.slots, tc.mean, tc.mean*2, tc.gpu, tc.costMicro
			got, err := Of(&m, seedBases, "720p", 5)
			if err != nil {
				t.Fatal(err)
			}
			if got.FairnessMilli != tc.expect {
				t.Errorf("fairness = %d milli-units, want %d", got.FairnessMilli, tc.expect)
			}
			if got.SlotUnits != tc.slots || got.Version != PriorVersion || got.BaseMilli != got.FairnessMilli {
				t.Errorf("slots %d version %d", got.SlotUnits, got.Version)
			}
		})
	}
}

func TestEstimateScalesWithLengthAndPixels(t *testing.T) {
	t.Parallel()
	m := clip()
	base, err := Of(&m, seedBases, "720p", 5)
	if err != nil {
		t.Fatal(err)
	}
	if base.MeanSeconds != 60 || base.P95Seconds != 150 || base.CostMicro != 100_000 || base.PriceMicro != 150_000 {
		t.Fatalf("the default clip must have the model's own figures: %+v", base)
	}
	long, err := Of(&m, seedBases, "720p", 10)
	if err != nil {
		t.Fatal(err)
	}
	if long.MeanSeconds != 120 || long.CostMicro != 200_000 || long.PriceMicro != 300_000 || long.FairnessMilli != 4_000 {
		t.Errorf("twice the length is twice the work: %+v", long)
	}
	wide, err := Of(&m, seedBases, "4K", 5)
	if err != nil {
		t.Fatal(err)
	}
	want := 60 * math.Pow(9, 0.7)
	if math.Abs(wide.MeanSeconds-want) > 1e-9 || wide.CostMicro != int64(math.Ceil(100_000*math.Pow(9, 0.7))) {
		t.Errorf("4K = %+v, want mean %g", wide, want)
	}
	same, err := Of(&m, seedBases, "1280x720", 5)
	if err != nil || same.MeanSeconds != 60 {
		t.Errorf("1280x720 is 720p: %+v %v", same, err)
	}
	odd, err := Of(&m, seedBases, "cinema", 5)
	if err != nil || odd.MeanSeconds != 60 {
		t.Errorf("an unknown name keeps the default's figures: %+v %v", odd, err)
	}
}

// D06, D30: a cost that is negative, not a number or beyond every deficit never leaves this room.
func TestTrap_D06_D30_BadPriorsAreRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, says string
		spoil      func(*policy.Model, *policy.Scheduling)
	}{
		{"negative cost", "cost_micro", func(m *policy.Model, _ *policy.Scheduling) { m.CostMicro = -5 }},
		{"huge cost", "cost_micro", func(m *policy.Model, _ *policy.Scheduling) { m.CostMicro = math.MaxInt64 }},
		{"negative price", "price_micro", func(m *policy.Model, _ *policy.Scheduling) { m.PriceMicro = -1 }},
		{"NaN mean", "mean seconds", func(m *policy.Model, _ *policy.Scheduling) { m.MeanSeconds = math.NaN() }},
		{"zero mean", "mean seconds", func(m *policy.Model, _ *policy.Scheduling) { m.MeanSeconds = 0 }},
		{"1e308 mean", "mean seconds", func(m *policy.Model, _ *policy.Scheduling) { m.MeanSeconds = 1e308 }},
		{"P95 below mean", "p95 seconds", func(m *policy.Model, _ *policy.Scheduling) { m.P95Seconds = 1 }},
		{"infinite GPU", "GPU seconds", func(m *policy.Model, _ *policy.Scheduling) { m.GPUSeconds = math.Inf(1) }},
		{"no slots", "slot_units 0", func(m *policy.Model, _ *policy.Scheduling) { m.SlotUnits = 0 }},
		{"too many slots", "slot_units", func(m *policy.Model, _ *policy.Scheduling) { m.SlotUnits = 10_001 }},
		{"zero base", "at least 1", func(_ *policy.Model, s *policy.Scheduling) { s.CostBaseMicro = 0 }},
		{"above 10,000 units", "above the largest, 10000", func(m *policy.Model, _ *policy.Scheduling) { m.SlotUnits = 5_001 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m, bases := clip(), seedBases
			tc.spoil(&m, &bases)
			got, err := Of(&m, bases, "720p", 5)
			if err == nil {
				t.Fatalf("accepted: %+v", got)
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %q does not say %q", err, tc.says)
			}
		})
	}
	m := clip()
	m.SlotUnits = 5_000
	if got, err := Of(&m, seedBases, "720p", 5); err != nil || got.FairnessMilli != 10_000_000 {
		t.Errorf("exactly 10,000 units are allowed: %+v %v", got, err)
	}
}

func TestEstimateStaysInItsRange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := clip()
		m.SlotUnits = rapid.Int64Range(-1, 20_000).Draw(t, "slots")
		m.MeanSeconds = rapid.Float64().Draw(t, "mean")
		m.P95Seconds = rapid.Float64().Draw(t, "p95")
		m.GPUSeconds = rapid.Float64Range(-1, 1e7).Draw(t, "gpu")
		m.CostMicro = rapid.Int64().Draw(t, "cost")
		got, err := Of(&m, seedBases, rapid.SampledFrom([]string{"720p", "4k", "x", "1x1", "65535x65535"}).Draw(t, "res"), rapid.Int64().Draw(t, "len"))
		if err != nil {
			return
		}
		if got.FairnessMilli < 1_000 || got.FairnessMilli > 10_000_000 || got.CostMicro < 0 || got.PriceMicro < 0 || !(got.MeanSeconds > 0) || got.P95Seconds < got.MeanSeconds {
			t.Fatalf("out of range: %+v", got)
		}
	})
}
