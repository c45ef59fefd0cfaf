package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"fairlane/migrations"
	"fairlane/store/facts"
)

const (
	databaseVariable = "FAIRLANE_TEST_DATABASE_URL"
	redisVariable    = "FAIRLANE_TEST_REDIS_URL"

	// templateLock is the key of the advisory lock under which a template is made.
	templateLock = 0x66_61_69_72
	stepTimeout  = 60 * time.Second
)

// Database is one test's own; it is dropped when the test ends.
type Database struct {
	URL  string
	Name string
	Pool *pgxpool.Pool // at most 8 connections; closed when the test ends
}

// New returns a database with all migrations applied.
func New(t testing.TB) *Database {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	server := variable(t, databaseVariable)
	template, err := ensureTemplate(ctx, server)
	if err != nil {
		t.Fatalf("template database: %v", err)
	}
	return create(ctx, t, server, template)
}

// Empty returns a database without tables.
func Empty(t testing.TB) *Database {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	return create(ctx, t, variable(t, databaseVariable), "template0")
}

func variable(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run the tests with `make test`, or start servers for them with `make services`", name)
	}
	return value
}

func create(ctx context.Context, t testing.TB, server, template string) *Database {
	t.Helper()
	db := &Database{Name: "t_" + strings.ReplaceAll(uuid.NewString(), "-", "")}
	var err error
	if db.URL, err = withName(server, db.Name); err != nil {
		t.Fatal(err)
	}
	if err := admin(ctx, server, `CREATE DATABASE `+db.Name+` TEMPLATE `+template); err != nil {
		t.Fatalf("test database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
		defer cancel()
		if err := admin(ctx, server, `DROP DATABASE IF EXISTS `+db.Name+` WITH (FORCE)`); err != nil {
			t.Errorf("test database: %v", err)
		}
	})
	cfg, err := pgxpool.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 8
	if db.Pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closePool(t, db.Pool) })
	return db
}

// closePool names a connection that a test kept, instead of waiting for it for ever.
func closePool(t testing.TB, pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() { pool.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(15 * time.Second):
		t.Errorf("%d connections of the test's pool were never given back", pool.Stat().AcquiredConns())
	}
}

var template struct {
	sync.Mutex
	name string
}

// ensureTemplate returns the template for this state of the migrations and makes it when it is missing.
func ensureTemplate(ctx context.Context, server string) (string, error) {
	template.Lock()
	defer template.Unlock()
	if template.name != "" {
		return template.name, nil
	}
	hash, err := migrationsHash()
	if err != nil {
		return "", err
	}
	name := "template_" + hash
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the lock goes with the session
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, templateLock); err != nil {
		return "", err
	}
	var exists bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&exists); err != nil {
		return "", err
	}
	if !exists {
		if err := makeTemplate(ctx, conn, server, name); err != nil {
			return "", err
		}
	}
	template.name = name
	return name, nil
}

// makeTemplate gives the name only to a finished one, which nobody may then connect to: a clone needs that.
func makeTemplate(ctx context.Context, conn *pgx.Conn, server, name string) error {
	making := name + "_making"
	url, err := withName(server, making)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `DROP DATABASE IF EXISTS `+making+` WITH (FORCE)`); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `CREATE DATABASE `+making+` TEMPLATE template0`); err != nil {
		return err
	}
	if _, _, err := facts.Migrate(ctx, url); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `ALTER DATABASE `+making+` WITH ALLOW_CONNECTIONS false`); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `ALTER DATABASE `+making+` RENAME TO `+name)
	return err
}

func migrationsHash() (string, error) {
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range names { // Glob sorts
		text, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

func withName(server, name string) (string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme == "" {
		return "", fmt.Errorf("%s must be a postgres:// address", databaseVariable)
	}
	u.Path = "/" + name
	return u.String(), nil
}

func admin(ctx context.Context, server, statement string) error {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the statement's own answer counts
	_, err = conn.Exec(ctx, statement)
	return err
}
