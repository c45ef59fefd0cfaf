package estimate

import "math"

// Buckets of a sketch grow by bucketGrowth, so that a quantile is within 2 % of the value there.
const (
	bucketGrowth = 1.04
	leastValue   = 0.01
	mostValue    = maxSeconds

	leastWeight = 1.0 / (1 << 20) // weights are its multiples, so that their sums are exact in any order
)

// Memory is how many observations a cell weighs at most; then all of them are halved, so that the
// figures follow a change with a half-life of Memory/2 tasks.
const Memory = 1000

var (
	logGrowth  = math.Log(bucketGrowth)
	leastIndex = int(math.Floor(math.Log(leastValue) / logGrowth))
	buckets    = int(math.Ceil(math.Log(mostValue)/logGrowth)) - leastIndex + 1
)

// sketch is a distribution in buckets that grow by a constant share. Adding the same values in another
// order gives the same sketch, but for the instants of halving.
type sketch struct {
	weight float64
	at     []float64 // weight by bucket; nil while empty
}

func (s *sketch) add(x float64) {
	if s.at == nil {
		s.at = make([]float64, buckets)
	}
	if s.weight >= Memory {
		s.weight = 0
		for i := range s.at {
			if s.at[i] /= 2; s.at[i] < leastWeight {
				s.at[i] = 0
			}
			s.weight += s.at[i]
		}
	}
	s.at[bucketOf(x)]++
	s.weight++
}

// quantile is the value below which q of the weight lies, 0 for an empty sketch.
func (s *sketch) quantile(q float64) float64 {
	above := s.weight * (1 - q)
	for i := len(s.at) - 1; i >= 0; i-- {
		if above -= s.at[i]; above < 0 {
			return math.Exp(float64(i+leastIndex) * logGrowth)
		}
	}
	if s.weight > 0 {
		return leastValue
	}
	return 0
}

func bucketOf(x float64) int {
	x = min(max(x, leastValue), mostValue)
	return min(max(int(math.Round(math.Log(x)/logGrowth))-leastIndex, 0), buckets-1)
}

// moment is a mean that forgets as a sketch does.
type moment struct{ weight, sum float64 }

func (m *moment) add(x float64) {
	if m.weight >= Memory {
		m.weight /= 2
		m.sum /= 2
	}
	m.weight++
	m.sum += x
}

// mean is 0 without observations.
func (m *moment) mean() float64 {
	if m.weight == 0 {
		return 0
	}
	return m.sum / m.weight
}
