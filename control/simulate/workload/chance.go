package workload

import (
	"math"
	"math/rand/v2"
)

// gap draws the time between two requests with mean 1 and the window's distribution.
func (w *Window) gap(chance *rand.Rand) float64 {
	if w.Weibull {
		return math.Pow(chance.ExpFloat64(), 1/w.Shape) / math.Gamma(1+1/w.Shape)
	}
	return Gamma(chance, w.Shape) / w.Shape
}

// firstGap draws the rest of a gap as seen from a moment at random: long gaps are met more often
// (length-biased), and cut anywhere. A whole one would put a burst at the start of each client that is bursty.
func (w *Window) firstGap(chance *rand.Rand) float64 {
	cut := chance.Float64()
	if w.Weibull { // the length-biased Weibull is a power of Gamma(1+1/k)
		return cut * math.Pow(Gamma(chance, 1+1/w.Shape), 1/w.Shape) / math.Gamma(1+1/w.Shape)
	}
	return cut * Gamma(chance, w.Shape+1) / w.Shape
}

// Gamma draws from Gamma(shape, 1): Marsaglia and Tsang, ACM TOMS 26 (2000) 363, with their boost for
// shapes below 1.
func Gamma(chance *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return Gamma(chance, shape+1) * math.Pow(1-chance.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	for {
		x := chance.NormFloat64()
		v := 1 + x/math.Sqrt(9*d)
		if v <= 0 {
			continue
		}
		v *= v * v
		if math.Log(1-chance.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

// lognormal is how long work takes.
type lognormal struct{ mu, sigma float64 }

// workOf is the lognormal with that mean and 95th percentile. p95 ÷ mean = exp(z·σ − σ²/2) has a solution
// up to exp(z²/2) = 3.87, and there σ is z.
func workOf(mean, p95 float64) lognormal {
	const z = 1.6448536269514722
	sigma := z
	if root := z*z - 2*math.Log(max(1, p95/mean)); root > 0 {
		sigma = z - math.Sqrt(root)
	}
	return lognormal{math.Log(mean) - sigma*sigma/2, sigma}
}

func (l lognormal) draw(chance *rand.Rand) float64 {
	return math.Exp(l.mu + l.sigma*chance.NormFloat64())
}
