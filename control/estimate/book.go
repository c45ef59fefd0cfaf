package estimate

import (
	"fmt"

	"fairlane/policy"
)

// Book is one published version, whole. It never changes. The nil Book knows the priors only.
type Book struct {
	version int64
	rows    map[Key]History
}

// NewBook makes a book of what a version says; it keeps the map.
func NewBook(version int64, rows map[Key]History) *Book { return &Book{version, rows} }

// Version is the book's number; PriorVersion for the nil Book.
func (b *Book) Version() int64 {
	if b == nil {
		return PriorVersion
	}
	return b.version
}

// History is what the version says was seen of exactly that key.
func (b *Book) History(k Key) (History, bool) {
	if b == nil {
		return History{}, false
	}
	h, ok := b.rows[k]
	return h, ok
}

// Len is the number of kinds of work of which the version knows something.
func (b *Book) Len() int {
	if b == nil {
		return 0
	}
	return len(b.rows)
}

// Estimate is what a kind of work is expected to take: its prior together with what the version knows.
func (b *Book) Estimate(k Key, prior Prior) Figures {
	f := figures(prior, k, b.History)
	f.Version = b.Version()
	return f
}

// Ask is what an estimate is wanted for.
type Ask struct {
	Resolution string
	Seconds    int64  // of video; ignored for models without lengths
	Provider   string // "": not known yet
	Factor     Factor // of the tenant; the zero Factor is neutral
}

// Of estimates one task under the bases of the policy. See the function Of for the ranges and errors. The
// price is the catalogue's; GPU seconds follow the seconds.
func (b *Book) Of(m *policy.Model, bases policy.Scheduling, ask Ask) (Estimate, error) {
	e, err := Of(m, bases, ask.Resolution, ask.Seconds)
	if err != nil {
		return Estimate{}, err
	}
	k := Key{Model: m.Code, Resolution: ask.Resolution, Seconds: ask.Seconds, Provider: ask.Provider}
	f := b.Estimate(k, PriorOf(m, ask.Resolution, ask.Seconds))
	e.GPUSeconds = min(e.GPUSeconds*f.MeanSeconds/e.MeanSeconds, maxSeconds)
	e.MeanSeconds, e.P95Seconds, e.Version = f.MeanSeconds, ask.Factor.Stretch(f.P95Seconds), f.Version
	if e.CostMicro, err = money(1, f.CostMicro); err != nil {
		return Estimate{}, fmt.Errorf("model %s: cost_micro: %w", m.Code, err)
	}
	// The priors were within the bound; what was learnt since is no reason to refuse a task.
	e.BaseMilli = int64(min(BasesOf(bases).milli(e.SlotUnits, e.MeanSeconds, float64(e.CostMicro), e.GPUSeconds), maxMilli))
	e.FairnessMilli = ask.Factor.Charge(e.BaseMilli)
	return e, nil
}
