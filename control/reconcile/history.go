package reconcile

import (
	"context"
	"time"
)

// Historian writes the samples of the past. Every method may be called again at any time.
type Historian interface {
	// Sample writes what lanes hold now, once for each ten seconds.
	Sample(ctx context.Context) (int64, error)
	// Roll makes the minutes and hours that are due.
	Roll(ctx context.Context) (int64, error)
	// Forget deletes what is older than it is kept for, at most limit of each kind; it returns the most of one.
	Forget(ctx context.Context, limit int) (int, error)
}

// The pace of the history. Sampling twice within its step makes up for a sweep that comes late.
const (
	samplesEvery   = 5 * time.Second
	rollsEvery     = 15 * time.Second
	forgetsEvery   = 10 * time.Minute
	starvesEvery   = 15 * time.Second
	forgetAtATime  = 5_000
	forgetAtMost   = 40 // times in a row
	historySamples = "history_samples"
	historyRolls   = "history"
	historyForgets = "history_retention"
	starvation     = "starvation"
)

// Watching are the sweeps that keep the history and look for who waits too long. They find, and repair nothing.
func Watching(h Historian, starved func(context.Context) (Result, error)) []Sweep {
	return []Sweep{
		{Name: historySamples, Every: samplesEvery, Do: found(h.Sample)},
		{Name: historyRolls, Every: rollsEvery, Do: found(h.Roll)},
		{Name: historyForgets, Every: forgetsEvery, Do: func(ctx context.Context) (Result, error) {
			r, err := Batches(h.Forget, forgetAtATime, forgetAtMost)(ctx)
			return Result{Found: r.Found}, err
		}},
		{Name: starvation, Every: starvesEvery, Do: starved},
	}
}

func found(do func(context.Context) (int64, error)) func(context.Context) (Result, error) {
	return func(ctx context.Context) (Result, error) {
		n, err := do(ctx)
		return Result{Found: n}, err
	}
}
