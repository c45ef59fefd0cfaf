package estimate

import (
	"fmt"
	"math"

	"fairlane/control"
	"fairlane/policy"
)

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
	P95Seconds    float64 // from claim to release
	GPUSeconds    float64
	CostMicro     int64 // what the provider takes
	PriceMicro    int64 // what the customer pays
	BaseMilli     int64 // fairness milli-units before the tenant's factor, 1,000..10,000,000
	FairnessMilli int64 // with it, in the same range: what a start is charged
	Version       int64 // of the book; frozen into each task so that estimates can be compared with what came of them
}

// Of estimates by the priors alone, for a tenant without a factor, a clip of the given resolution and length (seconds of video; ignored for models
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
		Version:     PriorVersion,
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
	if e.BaseMilli, err = fairness(e, bases); err != nil {
		return Estimate{}, fmt.Errorf("model %s: %w", m.Code, err)
	}
	e.FairnessMilli = e.BaseMilli
	return e, nil
}

// Bases are what costs one fairness unit, each at least 1.
type Bases struct {
	Seconds    int64 // of a provider's work
	CostMicro  int64 // micro-units of currency
	GPUSeconds int64
}

// BasesOf are the bases of a policy.
func BasesOf(s policy.Scheduling) Bases {
	return Bases{s.ProviderSecondBase, s.CostBaseMicro, s.GPUSecondBase}
}

// milli is slot_units × max(seconds, cost, GPU seconds, each over its base) in milli-units, rounded up,
// at least one unit; it may be more than fairness can carry.
func (b Bases) milli(slots int64, seconds, costMicro, gpuSeconds float64) float64 {
	units := max(seconds/float64(b.Seconds), costMicro/float64(b.CostMicro), gpuSeconds/float64(b.GPUSeconds)) * float64(slots)
	// The slack keeps 32.000000000000004 units, a product of binary fractions, from costing a milli-unit.
	return max(math.Ceil(units*control.Milli-1e-6), control.Milli)
}

func fairness(e Estimate, s policy.Scheduling) (int64, error) {
	bases := BasesOf(s)
	if bases.Seconds < 1 || bases.CostMicro < 1 || bases.GPUSeconds < 1 {
		return 0, fmt.Errorf("scheduling bases %d s, %d micro-units, %d GPU s: each must be at least 1",
			bases.Seconds, bases.CostMicro, bases.GPUSeconds)
	}
	milli := bases.milli(e.SlotUnits, e.MeanSeconds, float64(e.CostMicro), e.GPUSeconds)
	if math.IsNaN(milli) || milli > maxMilli {
		return 0, fmt.Errorf("a cost of %.0f fairness units is above the largest, %d", milli/control.Milli, MaxUnits)
	}
	return int64(milli), nil
}

func money(micro int64, scale float64) (int64, error) {
	scaled := math.Ceil(float64(micro)*scale - 1e-6)
	if micro < 0 || math.IsNaN(scaled) || scaled > maxMicro {
		return 0, fmt.Errorf("%d micro-units × %g are outside 0..%d", micro, scale, int64(maxMicro))
	}
	return max(int64(scaled), 0), nil
}

func within(x, limit float64) bool { return x >= 0 && x <= limit } // false for NaN
