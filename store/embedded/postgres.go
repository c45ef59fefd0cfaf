package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	role     = "fairlane"
	database = "fairlane"
)

// Postgres is a running private server.
type Postgres struct {
	URL   string
	Notes []string

	child    *child
	lock     *dirLock
	endpoint string
	sockets  string
	once     sync.Once
	err      error
}

// StartPostgres starts the private PostgreSQL of the data directory and makes its cluster when there is none.
func StartPostgres(ctx context.Context, cfg Config) (*Postgres, error) {
	cfg, err := cfg.prepared()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.StartTimeout, fmt.Errorf("PostgreSQL did not start within %v", cfg.StartTimeout))
	defer cancel()
	acc, err := childAccount()
	if err != nil {
		return nil, err
	}
	home, err := locate(ctx, cfg.DataDir, acc)
	if err != nil {
		return nil, err
	}
	if err := claimHome(ctx, home, cfg.DataDir, acc); err != nil {
		return nil, err
	}
	p := &Postgres{endpoint: filepath.Join(home, "postgres.json")}
	if p.lock, err = lock(filepath.Join(home, "postgres.lock"), cfg.DataDir); err != nil {
		return nil, err
	}
	if err := p.start(ctx, cfg, home, acc); err != nil {
		stop, end := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer end()
		return nil, errors.Join(err, p.Stop(stop))
	}
	if home != cfg.DataDir {
		p.Notes = append(p.Notes, fmt.Sprintf("The database lies in %s, because the account %s that runs it cannot reach %s.", home, acc.name, cfg.DataDir))
	}
	return p, nil
}

func (p *Postgres) start(ctx context.Context, cfg Config, home string, acc account) error {
	clearStale(p.endpoint)
	cluster := filepath.Join(home, clusterName)
	major := 0
	if made(cluster) {
		var err error
		if major, err = clusterMajor(cluster); err != nil {
			return err
		}
	}
	server, err := findPostgres(ctx, cfg.ProgramDirs, major)
	if err != nil {
		return err
	}
	if major == 0 {
		note, err := makeCluster(ctx, cfg, home, server, acc)
		if err != nil {
			return err
		}
		if note != "" {
			p.Notes = append(p.Notes, note)
		}
	} else if err := vacate(ctx, cluster); err != nil {
		return err
	}
	if p.sockets, err = socketDir(ctx, acc, p.endpoint); err != nil {
		return err
	}
	logPath := filepath.Join(home, "postgres.log")
	log, err := openLog(logPath)
	if err != nil {
		return fmt.Errorf("data directory %s cannot be written: %w", home, err)
	}
	defer log.Close()
	cmd := exec.Command(server.path, settings(cfg, cluster, p.sockets)...) //nolint:gosec // found by findPostgres
	cmd.Stdout, cmd.Stderr = log, log
	if p.child, err = startChild(cmd, "PostgreSQL", acc, syscall.SIGINT); err != nil {
		return err
	}
	if err := p.child.awaitReady(ctx, cfg.StartTimeout, logPath, func(ctx context.Context) error { return ensureDatabase(ctx, p.sockets) }); err != nil {
		return err
	}
	p.URL = socketURL(p.sockets, database)
	cfg.Logger.Info("private PostgreSQL is ready", "cluster", cluster, "major", server.major, "account", acc.name)
	return endpoint{URL: p.URL, SocketDir: p.sockets, PID: p.child.cmd.Process.Pid}.write(p.endpoint)
}

// settings suit a small machine; what is not named keeps the server's default, fsync included.
func settings(cfg Config, cluster, sockets string) []string {
	args := []string{"-D", cluster}
	set := []string{
		"listen_addresses=", "unix_socket_directories=" + sockets, "unix_socket_permissions=0700", "port=5432",
		"max_connections=200", "shared_buffers=96MB", "work_mem=4MB", "maintenance_work_mem=32MB",
		"max_wal_size=512MB", "checkpoint_timeout=15min", "wal_compression=on", "jit=off", "huge_pages=off",
		"max_parallel_workers_per_gather=0", "autovacuum_naptime=15s", "timezone=UTC", "log_timezone=UTC",
		"log_min_messages=log", "log_checkpoints=off", "logging_collector=off", "log_destination=stderr",
	}
	if cfg.UnsafeNoFsync {
		set = append(set, "fsync=off", "synchronous_commit=off", "full_page_writes=off")
	} else {
		set = append(set, "fsync=on", "synchronous_commit=on", "full_page_writes=on")
	}
	for _, s := range set {
		args = append(args, "-c", s)
	}
	return args
}

func socketURL(sockets, name string) string {
	query := url.Values{"host": {sockets}, "port": {"5432"}, "user": {role}, "sslmode": {"disable"}}
	return "postgres:///" + name + "?" + query.Encode()
}

// ensureDatabase answers nil when the server takes connections and the database exists.
func ensureDatabase(ctx context.Context, sockets string) error {
	conn, err := pgx.Connect(ctx, socketURL(sockets, "postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing depends on it
	var exists bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, database).Scan(&exists); err != nil || exists {
		return err
	}
	_, err = conn.Exec(ctx, `CREATE DATABASE `+database)
	return err
}

// PID is the process id of the server.
func (p *Postgres) PID() int { return p.child.cmd.Process.Pid }

// Done is closed when the server has ended, wanted or not.
func (p *Postgres) Done() <-chan struct{} { return p.child.done }

// Stop shuts the server down fast (clients are disconnected, everything committed is on disk) and waits.
// When ctx ends first it is killed; the next start recovers. Further calls give the first one's answer.
func (p *Postgres) Stop(ctx context.Context) error {
	p.once.Do(func() {
		if p.child != nil {
			p.err = p.child.stop(ctx, syscall.SIGINT, syscall.SIGQUIT, 10*time.Second)
		}
		_ = os.Remove(p.endpoint)
		if p.sockets != "" {
			_ = os.RemoveAll(p.sockets)
		}
		p.lock.release()
	})
	return p.err
}

// Running returns the address of the private database that some process runs for this data directory;
// false when none does.
func Running(ctx context.Context, dataDir string) (string, bool) {
	abs, err := filepath.Abs(dataDir)
	if err != nil {
		return "", false
	}
	acc, err := childAccount()
	if err != nil {
		return "", false
	}
	home, err := locate(ctx, abs, acc)
	if err != nil || !held(filepath.Join(home, "postgres.lock")) {
		return "", false
	}
	e, err := readEndpoint(filepath.Join(home, "postgres.json"))
	return e.URL, err == nil && e.URL != ""
}
