package estimate

import (
	"fmt"
	"math"

	"fairlane/control"
	"fairlane/policy"
)

// Version numbers the model below; it is frozen into each task so that estimates can be compared
// with what came of them, and changes whenever a formula here does.
const Version = 1

// MaxUnits is the largest cost of one task in fairness units that fairness can carry; one unit is the smallest.
const MaxUnits = 10_000

const (
	maxMilli   = MaxUnits * control.Milli
	maxSlots   = MaxUnits
	maxSeconds = 7 * 24 * 3600.0
	maxMicro   = 1_000_000 * control.MicroUnits
)

// Estimate is what one task is expected to take.
type Estimate struct {
	SlotUnits     int64
	MeanSeconds   float64 // of the provider's work
	P95Seconds    float64
	GPUSeconds    float64
	CostMicro     int64 // what the provider takes
	PriceMicro    int64 // what the customer pays
	FairnessMilli int64 // 1,000..10,000,000
	Version       int64
}

// Of estimates a clip of the given resolution and length (seconds of video; ignored for models
// without lengths) on the model, under the bases of the policy. The priors of the model's default
// clip grow in proportion to the length and with the power 0.7 of the pixel count; slot units do
// not grow: a provider counts jobs, and heavy work has a model entry with more units.
//
// It is an error when a prior, a base or the outcome is not a finite amount inside its range: such
// a model is refused here rather than becoming a cost that no deficit ever reaches.
func Of(m *policy.Model, bases policy.Scheduling, resolution string, seconds int64) (Estimate, error) {
	scale := lengthScale(m, seconds) * resolutionScale(m, resolution)
	e := Estimate{
		SlotUnits:   m.SlotUnits,
		MeanSeconds: m.MeanSeconds * scale,
		P95Seconds:  m.P95Seconds * scale,
		GPUSeconds:  m.GPUSeconds * scale,
		Version:     Version,
	}
	if e.SlotUnits < 1 || e.SlotUnits > maxSlots {
		return Estimate{}, fmt.Errorf("model %s: slot_units %d is outside 1..%d", m.Code, e.SlotUnits, maxSlots)
	}
	if !within(e.MeanSeconds, maxSeconds) || e.MeanSeconds == 0 {
		return Estimate{}, fmt.Errorf("model %s: mean seconds %g are outside 0..%g", m.Code, e.MeanSeconds, maxSeconds)
	}
	if !within(e.P95Seconds, maxSeconds) || e.P95Seconds < e.MeanSeconds {
		return Estimate{}, fmt.Errorf("model %s: p95 seconds %g are outside mean %g..%g", m.Code, e.P95Seconds, e.MeanSeconds, maxSeconds)
	}
	if !within(e.GPUSeconds, maxSeconds) {
		return Estimate{}, fmt.Errorf("model %s: GPU seconds %g are outside 0..%g", m.Code, e.GPUSeconds, maxSeconds)
	}
	var err error
	if e.CostMicro, err = money(m.CostMicro, scale); err != nil {
		return Estimate{}, fmt.Errorf("model %s: cost_micro: %w", m.Code, err)
	}
	if e.PriceMicro, err = money(m.PriceMicro, scale); err != nil {
		return Estimate{}, fmt.Errorf("model %s: price_micro: %w", m.Code, err)
	}
	if e.FairnessMilli, err = fairness(e, bases); err != nil {
		return Estimate{}, fmt.Errorf("model %s: %w", m.Code, err)
	}
	return e, nil
}

// fairness is slot_units × max(seconds, cost, GPU seconds, each over its base), in milli-units,
// rounded up, at least one unit.
func fairness(e Estimate, bases policy.Scheduling) (int64, error) {
	if bases.ProviderSecondBase < 1 || bases.CostBaseMicro < 1 || bases.GPUSecondBase < 1 {
		return 0, fmt.Errorf("scheduling bases %d s, %d micro-units, %d GPU s: each must be at least 1",
			bases.ProviderSecondBase, bases.CostBaseMicro, bases.GPUSecondBase)
	}
	units := max(
		e.MeanSeconds/float64(bases.ProviderSecondBase),
		float64(e.CostMicro)/float64(bases.CostBaseMicro),
		e.GPUSeconds/float64(bases.GPUSecondBase),
	) * float64(e.SlotUnits)
	// The slack keeps 32.000000000000004 units, a product of binary fractions, from costing a milli-unit.
	milli := math.Ceil(units*control.Milli - 1e-6)
	if math.IsNaN(milli) || milli > maxMilli {
		return 0, fmt.Errorf("a cost of %.0f fairness units is above the largest, %d", units, MaxUnits)
	}
	return max(int64(milli), control.Milli), nil
}

func money(micro int64, scale float64) (int64, error) {
	scaled := math.Ceil(float64(micro)*scale - 1e-6)
	if micro < 0 || math.IsNaN(scaled) || scaled > maxMicro {
		return 0, fmt.Errorf("%d micro-units × %g are outside 0..%d", micro, scale, int64(maxMicro))
	}
	return max(int64(scaled), 0), nil
}

func within(x, limit float64) bool { return x >= 0 && x <= limit } // false for NaN
