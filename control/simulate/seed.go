package simulate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

const (
	seedShift  = 600 * secondsInMicro // a tenant's stream is moved by up to this much
	seedSpread = 0.25                 // of durations
)

// seeded returns the arrivals as a seed has them; see the package's words on chance.
func (t *Trace) seeded(seed uint64) []Arrival {
	if seed <= 1 {
		return t.Arrivals
	}
	chance := rand.New(rand.NewPCG(seed, 0x5eed))
	shift := make([]int64, len(t.Tenants))
	for i := range shift {
		shift[i] = chance.Int64N(seedShift)
	}
	sigma := math.Sqrt(math.Log(1 + seedSpread*seedSpread))
	out := slices.Clone(t.Arrivals)
	for i := range out {
		a := &out[i]
		a.At += shift[a.Tenant]
		factor := math.Exp(sigma*chance.NormFloat64() - sigma*sigma/2)
		a.Duration = min(max(1, int64(float64(a.Duration)*factor)), MaxDuration*secondsInMicro)
	}
	slices.SortStableFunc(out, func(a, b Arrival) int { return cmp.Compare(a.At, b.At) })
	return out
}
