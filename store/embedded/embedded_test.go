package embedded

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"fairlane/store/storetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentVariable); dir != "" {
		os.Exit(parent(dir))
	}
	goleak.VerifyTestMain(m)
}

// openDir is a data directory that another account can pass through.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "fl-embedded-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T, cfg Config) *Stores {
	t.Helper()
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *Stores) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func execute(t *testing.T, url, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background()) //nolint:errcheck // a test's connection
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func setting(t *testing.T, url, name string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background()) //nolint:errcheck // a test's connection
	var value string
	if err := conn.QueryRow(t.Context(), `SELECT current_setting($1)`, name).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestStartKeepsDataOverARestart(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	before := time.Now()
	s := start(t, Config{DataDir: dir})
	first := time.Since(before)
	execute(t, s.DatabaseURL, `CREATE TABLE kept (n int)`)
	for name, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "server_encoding": "UTF8", "lc_collate": "C.UTF-8",
		"listen_addresses": "", "max_connections": "200", "TimeZone": "UTC",
	} {
		if got := setting(t, s.DatabaseURL, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	before = time.Now()
	stop(t, s)
	ended := time.Since(before)
	stop(t, s) // a second stop does nothing
	before = time.Now()
	again := start(t, Config{DataDir: dir})
	second := time.Since(before)
	execute(t, again.DatabaseURL, `INSERT INTO kept VALUES (1)`)
	storetest.Figure(t, "embedded: first start %.1f s, stop %.1f s, second start %.1f s", first.Seconds(), ended.Seconds(), second.Seconds())
}

func TestRedisIsForSpeedOnly(t *testing.T) {
	t.Parallel()
	r, err := StartRedis(t.Context(), Config{DataDir: openDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Stop(context.Background()) })
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "unix" {
		t.Fatalf("address %q: %v", r.URL, err)
	}
	for name, want := range map[string]string{"appendonly": "no", "save": "", "maxmemory-policy": "noeviction", "port": "0"} {
		if got := redisSetting(t, u.Path, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func redisSetting(t *testing.T, socket, name string) string {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("CONFIG GET " + name + "\r\n")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 512)
	n, err := conn.Read(answer)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(answer[:n]), "\r\n") // *2 $len name $len value
	if len(lines) < 5 {
		t.Fatalf("answer %q", answer[:n])
	}
	return lines[4]
}

func TestSecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	s := start(t, Config{DataDir: dir})
	if address, ok := Running(t.Context(), dir); !ok || address != s.DatabaseURL {
		t.Errorf("Running gives %q, %v", address, ok)
	}
	_, err := Start(t.Context(), Config{DataDir: dir})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("second start: %v; want ErrInUse with folder and process", err)
	}
	execute(t, s.DatabaseURL, `SELECT 1`) // the first is unharmed
	stop(t, s)
	if address, ok := Running(t.Context(), dir); ok {
		t.Errorf("after the stop Running gives %q", address)
	}
}

func TestHalfMadeClusterIsMadeAnew(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	cluster := filepath.Join(dir, clusterName)
	if err := os.MkdirAll(filepath.Join(cluster, "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cluster, "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, Config{DataDir: dir, UnsafeNoFsync: true})
	execute(t, s.DatabaseURL, `SELECT 1`)
	if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "half-made") {
		t.Errorf("notes %q; want one about the half-made database", s.Notes)
	}
}

func TestStalePIDFileOfALivingStranger(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	s := start(t, Config{DataDir: dir, UnsafeNoFsync: true})
	stop(t, s)
	// The number now belongs to this test, as numbers do in containers.
	text := strconv.Itoa(os.Getpid()) + "\n" + filepath.Join(dir, clusterName) + "\n1\n5432\n\n\n"
	if err := os.WriteFile(filepath.Join(dir, clusterName, "postmaster.pid"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	execute(t, start(t, Config{DataDir: dir, UnsafeNoFsync: true}).DatabaseURL, `SELECT 1`)
}

func TestChildThatEndsWhileStartingIsNoticed(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	s := start(t, Config{DataDir: dir, UnsafeNoFsync: true})
	stop(t, s)
	if err := os.Remove(filepath.Join(dir, clusterName, "global", "pg_control")); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	_, err := StartPostgres(t.Context(), Config{DataDir: dir, UnsafeNoFsync: true})
	if err == nil || !strings.Contains(err.Error(), "ended while starting") || time.Since(before) > 10*time.Second {
		t.Errorf("after %v: %v", time.Since(before), err)
	}
}

func TestBadMachines(t *testing.T) {
	t.Parallel()
	fake := func(t *testing.T, names map[string]string) []string {
		dir := t.TempDir()
		for name, says := range names {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho '"+says+"'\n"), 0o700); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
		}
		return []string{dir}
	}
	startPostgres := func(ctx context.Context, cfg Config) error { _, err := StartPostgres(ctx, cfg); return err }
	startRedis := func(ctx context.Context, cfg Config) error { _, err := StartRedis(ctx, cfg); return err }
	cases := []struct {
		name  string
		start func(context.Context, Config) error
		cfg   func(t *testing.T) Config
		want  []string
	}{
		{"no PostgreSQL", startPostgres, func(t *testing.T) Config { return Config{DataDir: openDir(t), ProgramDirs: fake(t, nil)} },
			[]string{"PostgreSQL 15", "Debian package postgresql", "FAIRLANE_DATABASE_URL"}},
		{"old PostgreSQL", startPostgres, func(t *testing.T) Config {
			return Config{DataDir: openDir(t), ProgramDirs: fake(t, map[string]string{"postgres": "postgres (PostgreSQL) 13.4", "initdb": ""})}
		}, []string{"PostgreSQL 13", "15 or later"}},
		{"no Redis", startRedis, func(t *testing.T) Config { return Config{DataDir: openDir(t), ProgramDirs: fake(t, nil)} },
			[]string{"redis-server 7", "Debian package redis-server", "FAIRLANE_REDIS_URL"}},
		{"neither", func(ctx context.Context, cfg Config) error { _, err := Start(ctx, cfg); return err },
			func(t *testing.T) Config { return Config{DataDir: openDir(t), ProgramDirs: fake(t, nil)} },
			[]string{"Debian package postgresql", "Debian package redis-server"}},
		{"old Redis", startRedis, func(t *testing.T) Config {
			return Config{DataDir: openDir(t), ProgramDirs: fake(t, map[string]string{"redis-server": "Redis server v=6.2.1 sha=0"})}
		}, []string{"version 6", "7 or later"}},
		{"folder is a file", startPostgres, func(t *testing.T) Config {
			path := filepath.Join(openDir(t), "file")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return Config{DataDir: path}
		}, []string{"data directory", "file", "not a directory"}},
		{"unwritable folder", startRedis, func(*testing.T) Config { return Config{DataDir: "/proc/fairlane"} },
			[]string{"data directory /proc/fairlane"}},
		{"no folder", startRedis, func(*testing.T) Config { return Config{} }, []string{"data directory"}},
		{"other major", startPostgres, func(t *testing.T) Config {
			dir := openDir(t)
			cluster := filepath.Join(dir, clusterName)
			if err := os.MkdirAll(cluster, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{madeName: "16\n", "PG_VERSION": "16\n"} {
				if err := os.WriteFile(filepath.Join(cluster, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			return Config{DataDir: dir, ProgramDirs: fake(t, map[string]string{"postgres": "postgres (PostgreSQL) 15.4", "initdb": ""})}
		}, []string{"made by PostgreSQL 16", "postgresql-16"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := c.start(t.Context(), c.cfg(t))
			if err == nil {
				t.Fatal("it started")
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}
