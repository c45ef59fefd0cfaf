package facts

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"fairlane/migrations"
)

// ErrNewerSchema says that the database was migrated by a newer program than this one.
var ErrNewerSchema = errors.New("the database is newer than this program")

// Migrate brings the database at url to the newest schema that this program knows. Each migration and its
// version row are one transaction, so that a cut at any moment leaves either both or neither and a plain
// second call goes on. A session lock lets one of several processes work while the others wait.
func Migrate(ctx context.Context, url string) (from, to int64, err error) {
	return migrate(ctx, url, func(p *goose.Provider, _, target int64) error {
		_, err := p.UpTo(ctx, target)
		return err
	})
}

// MigrateTo brings the database to exactly that version, forward or back; 0 empties it.
func MigrateTo(ctx context.Context, url string, version int64) (from, to int64, err error) {
	return migrate(ctx, url, func(p *goose.Provider, current, target int64) error {
		switch {
		case version < 0 || version > target:
			return fmt.Errorf("schema version %d: this program knows 0 to %d", version, target)
		case version == current:
			return nil
		case version < current:
			_, err := p.DownTo(ctx, version)
			return err
		}
		_, err := p.UpTo(ctx, version)
		return err
	})
}

// SchemaVersion returns the database's schema version and the newest that this program knows.
func SchemaVersion(ctx context.Context, url string) (current, known int64, err error) {
	err = withProvider(ctx, url, func(p *goose.Provider) error {
		current, known, err = p.GetVersions(ctx)
		return err
	})
	return current, known, err
}

func migrate(ctx context.Context, url string, step func(p *goose.Provider, current, target int64) error) (from, to int64, err error) {
	err = withProvider(ctx, url, func(p *goose.Provider) error {
		current, target, err := p.GetVersions(ctx)
		if err != nil {
			return err
		}
		from = current
		if current > target {
			return fmt.Errorf("%w: schema version %d, this program knows up to %d; start a newer fairlane", ErrNewerSchema, current, target)
		}
		if err := step(p, current, target); err != nil {
			return err
		}
		to, err = p.GetDBVersion(ctx)
		return err
	})
	return from, to, err
}

func withProvider(ctx context.Context, url string, fn func(*goose.Provider) error) (err error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("database url: %w", err)
	}
	cfg.RuntimeParams["application_name"] = "fairlane-migrate"
	cfg.RuntimeParams["timezone"] = "UTC"
	// A migration that cannot get its locks gives up instead of stopping every query behind it.
	cfg.RuntimeParams["lock_timeout"] = "30s"
	db := stdlib.OpenDB(*cfg)
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := newProvider(db)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if err := fn(provider); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300), lock.WithUnlockTimeout(1, 30))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, migrations.FS,
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
}
