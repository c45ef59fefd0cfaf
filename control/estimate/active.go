package estimate

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// ActiveConfig configures an Active. Zero values take the defaults.
type ActiveConfig struct {
	Poll    time.Duration // how often the head is read; 1 s
	Timeout time.Duration // of one read; 3 s
	Log     *slog.Logger
}

// Active is the version of the estimates in force in this process. Versions are taken whole or not at
// all; while the store is away the last one stays in force.
type Active struct {
	source Source
	cfg    ActiveConfig
	book   atomic.Pointer[Book]
}

// NewActive makes an Active that knows the priors only, until it has read a version.
func NewActive(source Source, cfg ActiveConfig) *Active {
	if cfg.Poll <= 0 {
		cfg.Poll = time.Second
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 3 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Active{source: source, cfg: cfg}
}

// Book is the version in force; nil, which knows the priors only, before the first was read.
func (a *Active) Book() *Book { return a.book.Load() }

// Refresh reads the newest version when it is not in force yet.
func (a *Active) Refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Timeout)
	defer cancel()
	head, err := a.source.HeadVersion(ctx)
	if err != nil {
		return fmt.Errorf("read the number of the newest estimates: %w", err)
	}
	if b := a.Book(); b != nil && b.Version() >= head {
		return nil
	}
	book, err := a.source.Book(ctx, head)
	if err != nil {
		return fmt.Errorf("read estimates %d: %w", head, err)
	}
	a.book.Store(book)
	return nil
}

// Run follows the head until ctx ends.
func (a *Active) Run(ctx context.Context) error {
	ticker := time.NewTicker(a.cfg.Poll)
	defer ticker.Stop()
	ill := false
	for {
		err := a.Refresh(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !ill {
			a.cfg.Log.WarnContext(ctx, "newest estimates not in force", "in_force", a.Book().Version(), "error", err)
		}
		ill = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
