package run

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"fairlane/store/embedded"
	"fairlane/store/facts"
)

// stores are the running PostgreSQL and Redis of this process, private or given.
type stores struct {
	databaseURL string
	redisURL    string
	notes       []string
	failed      chan error // a private store that ended by itself
	postgres    *embedded.Postgres
	redis       *embedded.Redis
	watch       chan struct{} // closed by stop
}

// openStores starts what the settings leave to us.
func openStores(ctx context.Context, s *storeSettings, log *slog.Logger) (*stores, error) {
	out := &stores{databaseURL: s.DatabaseURL, redisURL: s.RedisURL, failed: make(chan error, 2), watch: make(chan struct{})}
	cfg := embedded.Config{DataDir: s.DataDir, Logger: log}
	if out.databaseURL == "" {
		pg, err := embedded.StartPostgres(ctx, cfg)
		if err != nil {
			return nil, fmt.Errorf("private PostgreSQL: %w", err)
		}
		out.postgres, out.databaseURL, out.notes = pg, pg.URL, pg.Notes
		go out.watchOver("private PostgreSQL", pg.Done())
	}
	if out.redisURL == "" {
		redis, err := embedded.StartRedis(ctx, cfg)
		if err != nil {
			out.stop()
			return nil, fmt.Errorf("private Redis: %w", err)
		}
		out.redis, out.redisURL = redis, redis.URL
	}
	return out, nil
}

// watchOver reports a private database that ended by itself: without its facts the process cannot go
// on. A private Redis may end; everything works without it.
func (s *stores) watchOver(name string, done <-chan struct{}) {
	select {
	case <-done:
		select {
		case <-s.watch:
		default:
			s.failed <- fmt.Errorf("%s ended by itself", name)
		}
	case <-s.watch:
	}
}

// stop ends the private stores; what is given stays.
func (s *stores) stop() {
	close(s.watch)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if s.redis != nil {
		_ = s.redis.Stop(ctx)
	}
	if s.postgres != nil {
		_ = s.postgres.Stop(ctx)
	}
}

// withDatabase runs fn for a command that works beside a running process or alone, on a database whose
// schema is this program's.
func withDatabase(ctx context.Context, s *storeSettings, fn func(db *facts.DB, url string) error) error {
	if err := s.check(); err != nil {
		return err
	}
	return withURL(ctx, s, func(url string) error {
		current, known, err := facts.SchemaVersion(ctx, url)
		if err != nil {
			return err
		}
		if current != known {
			return fmt.Errorf("the database has schema version %d, this program needs %d: run fairlane migrate first", current, known)
		}
		db, err := facts.Open(ctx, url, "command", 4)
		if err != nil {
			return err
		}
		defer db.Close()
		return fn(db, url)
	})
}

// withURL finds the database: the given one, the private one that somebody runs, or the private one
// started for the purpose.
func withURL(ctx context.Context, s *storeSettings, fn func(url string) error) error {
	if s.DatabaseURL != "" {
		return fn(s.DatabaseURL)
	}
	if running, ok := embedded.Running(ctx, s.DataDir); ok {
		return fn(running)
	}
	pg, err := embedded.StartPostgres(ctx, embedded.Config{DataDir: s.DataDir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("private PostgreSQL: %w", err)
	}
	defer func() {
		live, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = pg.Stop(live)
	}()
	return fn(pg.URL)
}
