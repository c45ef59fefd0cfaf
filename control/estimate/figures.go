package estimate

import "fairlane/policy"

// PriorTasks is how many observations the catalogue's prior weighs.
const PriorTasks = 20

// PriorVersion is the version of the priors alone, before anything has been learnt.
const PriorVersion = 1

// leastSeconds is the floor of every estimate of time.
const leastSeconds = 0.1

// Key names a kind of work: jobs of one key are expected to take the same.
type Key struct {
	Model      string
	Resolution string // "": the model has none
	Seconds    int64  // length of the clip; 0: the model has none
	Provider   string // "": any of them
}

func (k Key) anyProvider() Key { k.Provider = ""; return k }

// Prior is what is expected of a kind of work before any of it was seen. The zero Prior knows nothing,
// and history then stands alone.
type Prior struct {
	MeanSeconds float64 // of the provider's work
	P95Seconds  float64 // from claim to release
	CostMicro   float64
}

// PriorOf scales a model's prior to the resolution and length.
func PriorOf(m *policy.Model, resolution string, seconds int64) Prior {
	scale := lengthScale(m, seconds) * resolutionScale(m, resolution)
	return Prior{m.MeanSeconds * scale, m.P95Seconds * scale, float64(m.CostMicro) * scale}
}

// Priors gives the priors of a policy; a model that it does not have gets the zero Prior.
func Priors(doc *policy.Document) func(Key) Prior {
	return func(k Key) Prior {
		if m, ok := doc.Model(k.Model); ok {
			return PriorOf(m, k.Resolution, k.Seconds)
		}
		return Prior{}
	}
}

// History is what was seen of a kind of work.
type History struct {
	Tasks       float64 // weight of the observations behind the two below
	MeanSeconds float64 // of the provider's work
	P95Seconds  float64 // from claim to release, polling included
	Costs       float64 // weight of the known costs
	CostMicro   float64 // their mean
}

// Figures is what is expected of a kind of work, prior and history together.
type Figures struct {
	MeanSeconds float64 // at least 0.1
	P95Seconds  float64 // at least the mean
	CostMicro   float64
	Version     int64
}

// figures takes the history of all providers onto the prior, and that of the key's own provider onto
// both: a provider that is new starts from what others took.
func figures(p Prior, k Key, history func(Key) (History, bool)) Figures {
	h, _ := history(k.anyProvider())
	p = p.with(h)
	if k.Provider != "" {
		h, _ = history(k)
		p = p.with(h)
	}
	mean := min(max(p.MeanSeconds, leastSeconds), maxSeconds)
	return Figures{
		MeanSeconds: mean, P95Seconds: min(max(p.P95Seconds, mean), maxSeconds),
		CostMicro: min(max(p.CostMicro, 0), maxMicro),
	}
}

// with adds what was seen. Without a prior, which a mean of 0 says, history stands alone.
func (p Prior) with(h History) Prior {
	if p.MeanSeconds == 0 {
		return Prior{h.MeanSeconds, h.P95Seconds, h.CostMicro}
	}
	return Prior{
		MeanSeconds: blend(p.MeanSeconds, h.MeanSeconds, h.Tasks),
		P95Seconds:  blend(p.P95Seconds, h.P95Seconds, h.Tasks),
		CostMicro:   blend(p.CostMicro, h.CostMicro, h.Costs),
	}
}

func blend(prior, seen, n float64) float64 { return (PriorTasks*prior + n*seen) / (PriorTasks + n) }
