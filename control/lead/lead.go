package lead

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"
)

// ErrLost is the cause with which the context of the work ends when the lease is gone.
var ErrLost = errors.New("lease lost")

// Config names the lease. Zero durations take the defaults.
type Config struct {
	Name   string
	Holder string        // unique per process
	TTL    time.Duration // 5 s; the longest time for which nobody runs after a holder was killed
	Log    *slog.Logger
	Now    func() time.Time // monotonic; for the process's own side of the lease
	Rand   func() float64   // in [0, 1); spreads the tries of standbys
}

// Runner holds one lease for as long as it can and runs the work while it holds it.
type Runner struct {
	cfg    Config
	leases Leases
	work   func(ctx context.Context, term int64) error
}

// New makes a runner. The work gets a context that ends when the lease is lost or Run's ends, and must
// return soon after; an error that it returns is logged and the lease is tried for again.
func New(cfg Config, leases Leases, work func(ctx context.Context, term int64) error) *Runner {
	if cfg.TTL <= 0 {
		cfg.TTL = 5 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Float64
	}
	return &Runner{cfg: cfg, leases: leases, work: work}
}

// Run tries for the lease until ctx ends; it returns after the work has returned.
func (r *Runner) Run(ctx context.Context) error {
	for {
		asked := r.cfg.Now()
		term, held, err := r.leases.Acquire(ctx, r.cfg.Name, r.cfg.Holder, r.lease())
		switch {
		case err != nil && ctx.Err() == nil:
			r.cfg.Log.Warn("lease could not be asked for", "lease", r.cfg.Name, "error", err)
		case held:
			r.hold(ctx, term, asked)
		}
		// Spread, so that standbys do not ask in step. A lease that its holder let run out and this pause
		// are shorter together than the TTL.
		if !sleep(ctx, r.cfg.TTL/8+time.Duration(r.cfg.Rand()*float64(r.cfg.TTL/8))) {
			return nil
		}
	}
}

// lease is how long a lease is good from its last renewal on.
func (r *Runner) lease() time.Duration { return r.cfg.TTL * 7 / 10 }

// hold runs the work under the term that was asked for at asked.
func (r *Runner) hold(ctx context.Context, term int64, asked time.Time) {
	r.cfg.Log.Info("lease taken", "lease", r.cfg.Name, "term", term)
	work, end := context.WithCancelCause(ctx)
	defer end(nil)
	done := make(chan struct{})
	var failed error // read after done
	go func() { defer close(done); failed = r.work(work, term) }()

	// The deadline counts from before the request was sent, on the monotonic clock: the database's
	// lease cannot end earlier than that. A fifth of it is the margin for the work to stop.
	good := r.lease() * 4 / 5
	expiry := time.NewTimer(good - r.cfg.Now().Sub(asked))
	defer expiry.Stop()
	renew := time.NewTicker(r.lease() / 4)
	defer renew.Stop()
	for {
		select {
		case <-done:
			r.release(ctx, term)
			if failed != nil && work.Err() == nil {
				r.cfg.Log.Error("leased work failed", "lease", r.cfg.Name, "term", term, "error", failed)
			}
			return
		case <-expiry.C:
			r.cfg.Log.Warn("lease not renewed in time, work stopped", "lease", r.cfg.Name, "term", term)
			end(ErrLost)
			<-done
			return
		case <-renew.C:
			asked := r.cfg.Now()
			try, cancel := context.WithTimeout(work, r.lease()/4)
			kept, err := r.leases.Renew(try, r.cfg.Name, r.cfg.Holder, term, r.lease())
			cancel()
			switch {
			case err != nil:
				continue
			case !kept:
				r.cfg.Log.Warn("lease taken by another", "lease", r.cfg.Name, "term", term)
				end(ErrLost)
				<-done
				return
			}
			expiry.Reset(good - r.cfg.Now().Sub(asked))
		case <-ctx.Done():
			<-done
			r.release(ctx, term)
			return
		}
	}
}

func (r *Runner) release(ctx context.Context, term int64) {
	live, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := r.leases.Release(live, r.cfg.Name, r.cfg.Holder, term); err != nil {
		r.cfg.Log.Warn("lease not given back, it will run out", "lease", r.cfg.Name, "error", err)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
