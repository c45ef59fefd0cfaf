package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Config says where private stores live.
type Config struct {
	// DataDir is created when missing. One process at a time may start stores in it.
	DataDir string
	Logger  *slog.Logger
	// StartTimeout bounds the start of each store, recovery after a crash included. Default 60 s.
	StartTimeout time.Duration
	// ProgramDirs are the folders that are searched for programs. Default: PATH and the usual folders.
	ProgramDirs []string
	// UnsafeNoFsync gives up durability against a crash of the machine. For test clusters only.
	UnsafeNoFsync bool
}

func (c Config) prepared() (Config, error) {
	if c.DataDir == "" {
		return c, errors.New("data directory: a path is needed")
	}
	abs, err := filepath.Abs(c.DataDir)
	if err != nil {
		return c, fmt.Errorf("data directory %s: %w", c.DataDir, err)
	}
	c.DataDir = abs
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.StartTimeout <= 0 {
		c.StartTimeout = 60 * time.Second
	}
	if c.ProgramDirs == nil {
		c.ProgramDirs = usualDirs()
	}
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711 // the database's account has to pass through; it may not list
	}
	if err := os.MkdirAll(c.DataDir, mode); err != nil {
		return c, fmt.Errorf("data directory %s cannot be made: %w", c.DataDir, err)
	}
	probe, err := os.CreateTemp(c.DataDir, ".probe-*")
	if err != nil {
		return c, fmt.Errorf("data directory %s cannot be written: %w", c.DataDir, err)
	}
	_ = probe.Close()
	return c, os.Remove(probe.Name())
}

// Stores is a running pair.
type Stores struct {
	DatabaseURL string
	RedisURL    string
	Notes       []string // what the person who started it should read
	Postgres    *Postgres
	Redis       *Redis
}

// Start starts both stores, or neither. The error is one line that says what to do.
func Start(ctx context.Context, cfg Config) (*Stores, error) {
	s := &Stores{}
	var group sync.WaitGroup
	var postgresErr, redisErr error
	group.Go(func() { s.Postgres, postgresErr = StartPostgres(ctx, cfg) })
	group.Go(func() { s.Redis, redisErr = StartRedis(ctx, cfg) })
	group.Wait()
	if err := both(postgresErr, redisErr); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return nil, errors.Join(err, s.Stop(stop))
	}
	s.DatabaseURL, s.RedisURL = s.Postgres.URL, s.Redis.URL
	s.Notes = s.Postgres.Notes
	return s, nil
}

// both makes one line of two errors, so that a person installs two missing programs at once.
func both(first, second error) error {
	switch {
	case first == nil:
		return second
	case second == nil || errors.Is(first, ErrInUse) || first.Error() == second.Error():
		return first
	}
	return fmt.Errorf("%w; %w", first, second)
}

// Stop stops what runs and waits for it; when ctx ends it kills. Further calls do nothing.
func (s *Stores) Stop(ctx context.Context) error {
	var group errgroup.Group
	if s.Postgres != nil {
		group.Go(func() error { return s.Postgres.Stop(ctx) })
	}
	if s.Redis != nil {
		group.Go(func() error { return s.Redis.Stop(ctx) })
	}
	return group.Wait()
}
