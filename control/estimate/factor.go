package estimate

import (
	"math"

	"fairlane/control"
)

// The bounds and the speed of a factor. It follows a change with a half-life of FactorHalfLife tasks;
// until it has seen as many as that weighs it is the plain mean, with 1 in place of FactorStart tasks.
const (
	LeastFactor    = 0.1
	MostFactor     = 10.0
	FactorHalfLife = 20
	FactorStart    = 5
	leastStep      = 0.25 // what one task may say of a factor, over the one it was charged by
	mostStep       = 4.0
)

var factorShare = 1 - math.Exp2(-1.0/FactorHalfLife)

// Factor is what a tenant's tasks use over what is estimated for such tasks, smoothed over all its
// tasks. The zero Factor is neutral, as is one of value 1.
type Factor struct {
	Value float64 // 0.1..10
	Tasks int64   // that it was learnt from
}

// Charge is what a task is charged whose estimate is base: milli-units, within what fairness carries.
func (f Factor) Charge(base int64) int64 {
	charged := math.Ceil(float64(base)*f.value() - 1e-6)
	return int64(min(max(charged, control.Milli), maxMilli))
}

// Stretch is the P95 of a task of the tenant when p95, in seconds, is that of all tenants' tasks of its
// kind: longer for a tenant whose tasks take longer, since the promise of a lent unit's return and the
// deadline of an attempt are about this task; never shorter. At most maxSeconds.
func (f Factor) Stretch(p95 float64) float64 { return min(p95*max(1, f.value()), maxSeconds) }

// Learn is the factor after a task that was charged with `charged`, of which base was the estimate, and
// has used `used`; all in milli-units. One task moves it towards at most four times, at least a quarter
// of the factor that it was charged by.
func (f Factor) Learn(charged, base, used int64) Factor {
	if charged < 1 || base < 1 || used < 0 {
		return Factor{f.value(), f.Tasks}
	}
	says := float64(charged) / float64(base) * clamp(float64(used)/float64(charged), leastStep, mostStep)
	share := max(factorShare, 1/float64(FactorStart+min(f.Tasks, math.MaxInt32)+1))
	return Factor{clamp(f.value()+share*(says-f.value()), LeastFactor, MostFactor), f.Tasks + 1}
}

func (f Factor) value() float64 {
	if !(f.Value > 0) {
		return 1
	}
	return clamp(f.Value, LeastFactor, MostFactor)
}
