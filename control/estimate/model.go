package estimate

import (
	"cmp"
	"math"
	"slices"
)

// outlier is how many times the P95 expected so far one observation of a time may count for at most; a
// cost likewise, of its mean. One wild clock then moves nothing far, and a real change is still followed.
const outlier = 8

// MovedShare is the usual share by which figures must have moved to be worth a new version.
const MovedShare = 0.05

// leastOutlierMicro keeps the bound of a cost open where the expected one is 0.
const leastOutlierMicro = 1_000_000.0

// Sample is what one job that succeeded took. Others are none: a job that was rejected, canceled or has
// failed does not say how long such work takes.
type Sample struct {
	Key       Key     // with its provider
	Seconds   float64 // of the provider's work
	Held      float64 // from claim to release
	CostMicro int64   // negative: not known
}

// Model learns what work takes. Samples are folded one after the other, so that the outcome depends on
// their order and on nothing else: not on how they come in batches. There is no merging of two models.
// Not safe for concurrent use.
type Model struct {
	priors  func(Key) Prior
	version int64
	cells   map[Key]*cell
	told    map[Key]History // as published
}

type cell struct {
	work moment
	held sketch
	cost moment
}

// NewModel makes a model that knows the priors only; its version is PriorVersion.
func NewModel(priors func(Key) Prior) *Model {
	return &Model{priors: priors, version: PriorVersion, cells: map[Key]*cell{}, told: map[Key]History{}}
}

// Observe folds one sample into the cell of its key and into that of all providers together. A number
// that is not finite, or a time that is not positive, is left out.
func (m *Model) Observe(s Sample) {
	keys := []Key{s.Key.anyProvider(), s.Key}
	if s.Key.Provider == "" {
		keys = keys[:1]
	}
	bound := make([]Figures, len(keys)) // before any of them moves
	for i, k := range keys {
		bound[i] = m.Estimate(k)
	}
	for i, k := range keys {
		m.cell(k).fold(s, bound[i])
	}
}

func (m *Model) cell(k Key) *cell {
	c, ok := m.cells[k]
	if !ok {
		c = &cell{}
		m.cells[k] = c
	}
	return c
}

func (c *cell) fold(s Sample, expected Figures) {
	most := outlier * expected.P95Seconds
	if c.held.weight == 0 && expected.P95Seconds <= leastSeconds { // no prior: the first one is believed
		most = maxSeconds
	}
	if held := max(s.Held, s.Seconds); positive(s.Seconds) && positive(held) {
		c.work.add(clamp(s.Seconds, leastSeconds, most))
		c.held.add(clamp(held, leastSeconds, most))
	}
	if s.CostMicro >= 0 {
		c.cost.add(min(float64(s.CostMicro), max(outlier*expected.CostMicro, leastOutlierMicro)))
	}
}

// Estimate is what a kind of work is expected to take, by everything that was observed so far. Version
// is that of the last Publish.
func (m *Model) Estimate(k Key) Figures {
	f := figures(m.priors(k), k, m.History)
	f.Version = m.version
	return f
}

// History is what was observed of exactly that key.
func (m *Model) History(k Key) (History, bool) {
	c, ok := m.cells[k]
	if !ok {
		return History{}, false
	}
	return History{
		Tasks: c.held.weight, MeanSeconds: c.work.mean(), P95Seconds: c.held.quantile(0.95),
		Costs: c.cost.weight, CostMicro: c.cost.mean(),
	}, true
}

// Moved lists, in their order, the keys whose figures differ from the published ones by more than that
// share of them.
func (m *Model) Moved(share float64) []Key {
	var out []Key
	told := func(k Key) (History, bool) { h, ok := m.told[k]; return h, ok }
	for k := range m.cells {
		prior := m.priors(k)
		if now, before := figures(prior, k, m.History), figures(prior, k, told); now.differs(before, share) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, compareKeys)
	return out
}

func (f Figures) differs(from Figures, share float64) bool {
	off := func(now, was float64) bool { return math.Abs(now-was) > share*was }
	return off(f.MeanSeconds, from.MeanSeconds) || off(f.P95Seconds, from.P95Seconds) || off(f.CostMicro, from.CostMicro)
}

// Publish makes what was observed of these keys a version of its own.
func (m *Model) Publish(version int64, keys []Key) {
	m.version = version
	for _, k := range keys {
		if h, ok := m.History(k); ok {
			m.told[k] = h
		}
	}
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Resolution, b.Resolution),
		cmp.Compare(a.Seconds, b.Seconds), cmp.Compare(a.Provider, b.Provider))
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

func clamp(x, low, high float64) float64 { return min(max(x, low), max(high, low)) }
