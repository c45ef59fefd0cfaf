package facts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"fairlane/control"
)

// MinServerVersion is the oldest PostgreSQL that the SQL is written for.
const MinServerVersion = 150000

const (
	acquireTimeout = 10 * time.Second
	txAttempts     = 6
)

// DB is one bounded set of connections. Every role of the process (API, scheduler, dispatch,
// reconcilers) has one of its own, so that none can starve another.
type DB struct {
	pool *pgxpool.Pool
}

// Open connects to the database at url with at most maxConns connections and checks its version.
// The error names what is wrong: address, right, version.
func Open(ctx context.Context, url, name string, maxConns int32) (*DB, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", err)
	}
	cfg.MaxConns = maxConns
	cfg.MaxConnIdleTime = 5 * time.Minute
	cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	cfg.AfterConnect = registerUUID
	params := cfg.ConnConfig.RuntimeParams
	params["application_name"] = "fairlane-" + name
	params["timezone"] = "UTC"
	params["statement_timeout"] = "60s"
	params["lock_timeout"] = "10s"
	params["idle_in_transaction_session_timeout"] = "30s"
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	db := &DB{pool: pool}
	var version int
	if err := pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::int`).Scan(&version); err != nil {
		pool.Close()
		return nil, fmt.Errorf("database: %w", err)
	}
	if version < MinServerVersion {
		pool.Close()
		return nil, fmt.Errorf("database: PostgreSQL %d.%d is too old, 15 or later is needed", version/10000, version%10000)
	}
	return db, nil
}

// Close returns all connections; it waits for those in use.
func (db *DB) Close() { db.pool.Close() }

// Ping tells whether the database answers.
func (db *DB) Ping(ctx context.Context) error { return db.pool.Ping(ctx) }

// Tx runs fn in one transaction and commits. A serialization failure or a deadlock, at COMMIT too,
// runs the whole of fn again, at most txAttempts times with a short growing pause; fn must therefore
// touch nothing but tx and what it returns.
func (db *DB) Tx(ctx context.Context, fn func(pgx.Tx) error) error {
	var err error
	for attempt := range txAttempts {
		if attempt > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(attempt*attempt) * 3 * time.Millisecond):
			}
		}
		if err = db.once(ctx, fn); !retryable(err) {
			return away(err)
		}
	}
	return away(fmt.Errorf("gave up after %d tries: %w", txAttempts, err))
}

func (db *DB) once(ctx context.Context, fn func(pgx.Tx) error) error {
	conn, err := db.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		// The request may be gone; the rollback must still reach the server.
		live, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		_ = tx.Rollback(live)
	}()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// acquire waits at most acquireTimeout for a free connection.
func (db *DB) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, acquireTimeout)
	defer cancel()
	conn, err := db.pool.Acquire(limited)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, &control.Error{Code: control.CodeUnavailable, Message: "no database connection was free in time"}
	}
	return conn, err
}

// pipeline runs statements that only read, in one round trip.
func (db *DB) pipeline(ctx context.Context, b *pgx.Batch) error {
	conn, err := db.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return conn.SendBatch(ctx, b).Close()
}

func retryable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}
