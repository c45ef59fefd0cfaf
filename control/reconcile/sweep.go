package reconcile

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Sweep is one reconciler. Do finds differences and repairs them in bounded batches; calling it again
// goes on where it ended.
type Sweep struct {
	Name  string
	Every time.Duration
	Do    func(ctx context.Context) (Result, error)
}

// Result counts what one run of a sweep found and what of it was repaired.
type Result struct{ Found, Repaired int64 }

// Reports is told of every run; it returns at once.
type Reports interface {
	Ran(name string, at time.Time, r Result, err error)
}

// Sweeper runs sweeps, each on its own clock.
type Sweeper struct {
	sweeps  []Sweep
	reports Reports
	log     *slog.Logger
	now     func() time.Time
}

// New makes a sweeper; now is nil for the process's clock.
func New(sweeps []Sweep, reports Reports, log *slog.Logger, now func() time.Time) *Sweeper {
	if now == nil {
		now = time.Now
	}
	return &Sweeper{sweeps: sweeps, reports: reports, log: log, now: now}
}

// Run sweeps until ctx ends. It is the work of a lease; the term is of no use to it, since every sweep
// compares and sets on the rows that it repairs.
func (s *Sweeper) Run(ctx context.Context, _ int64) error {
	var all sync.WaitGroup
	defer all.Wait()
	for _, sweep := range s.sweeps {
		all.Go(func() { s.keep(ctx, sweep) })
	}
	return nil
}

func (s *Sweeper) keep(ctx context.Context, sweep Sweep) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		r, err := sweep.Do(ctx)
		if ctx.Err() != nil {
			return
		}
		s.reports.Ran(sweep.Name, s.now(), r, err)
		switch {
		case err != nil:
			s.log.Warn("sweep failed", "sweep", sweep.Name, "error", err)
		case r.Repaired > 0:
			s.log.Info("sweep repaired", "sweep", sweep.Name, "found", r.Found, "repaired", r.Repaired)
		}
		timer.Reset(sweep.Every)
	}
}

// Batches calls do with the limit until it handles fewer, at most most times, and sums up: the usual
// shape of a sweep whose finding is also its repair.
func Batches(do func(ctx context.Context, limit int) (int, error), limit, most int) func(context.Context) (Result, error) {
	return func(ctx context.Context) (Result, error) {
		var r Result
		for range most {
			n, err := do(ctx, limit)
			r.Found += int64(n)
			r.Repaired += int64(n)
			if err != nil || n < limit {
				return r, err
			}
		}
		return r, nil
	}
}
