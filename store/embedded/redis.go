package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Redis is a running private server that keeps nothing on disk.
type Redis struct {
	URL string

	child    *child
	lock     *dirLock
	endpoint string
	sockets  string
	once     sync.Once
	err      error
}

// StartRedis starts the private Redis of the data directory, empty.
func StartRedis(ctx context.Context, cfg Config) (*Redis, error) {
	cfg, err := cfg.prepared()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.StartTimeout, fmt.Errorf("redis-server did not start within %v", cfg.StartTimeout))
	defer cancel()
	acc, err := childAccount()
	if err != nil {
		return nil, err
	}
	r := &Redis{endpoint: filepath.Join(cfg.DataDir, "redis.json")}
	if r.lock, err = lock(filepath.Join(cfg.DataDir, "redis.lock"), cfg.DataDir); err != nil {
		return nil, err
	}
	if err := r.start(ctx, cfg, acc); err != nil {
		stop, end := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer end()
		return nil, errors.Join(err, r.Stop(stop))
	}
	return r, nil
}

func (r *Redis) start(ctx context.Context, cfg Config, acc account) error {
	clearStale(r.endpoint)
	server, err := findRedis(ctx, cfg.ProgramDirs)
	if err != nil {
		return err
	}
	if r.sockets, err = socketDir(ctx, acc, r.endpoint); err != nil {
		return err
	}
	socket := filepath.Join(r.sockets, "redis.sock")
	logPath := filepath.Join(cfg.DataDir, "redis.log")
	log, err := openLog(logPath)
	if err != nil {
		return fmt.Errorf("data directory %s cannot be written: %w", cfg.DataDir, err)
	}
	defer log.Close()
	//nolint:gosec // found by findRedis
	cmd := exec.Command(server.path, "--port", "0", "--unixsocket", socket, "--unixsocketperm", "700",
		"--save", "", "--appendonly", "no", "--dir", r.sockets, "--daemonize", "no", "--logfile", "",
		"--maxmemory", "1gb", "--maxmemory-policy", "noeviction", "--loglevel", "warning")
	cmd.Stdout, cmd.Stderr = log, log
	if r.child, err = startChild(cmd, "redis-server", acc, syscall.SIGTERM); err != nil {
		return err
	}
	if err := r.child.awaitReady(ctx, cfg.StartTimeout, logPath, func(ctx context.Context) error { return ping(ctx, socket) }); err != nil {
		return err
	}
	r.URL = "unix://" + socket
	cfg.Logger.Info("private Redis is ready", "major", server.major, "account", acc.name)
	return endpoint{URL: r.URL, SocketDir: r.sockets, PID: r.child.cmd.Process.Pid}.write(r.endpoint)
}

func ping(ctx context.Context, socket string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "+PONG") {
		return fmt.Errorf("redis-server answers %q", line)
	}
	return nil
}

// PID is the process id of the server.
func (r *Redis) PID() int { return r.child.cmd.Process.Pid }

// Done is closed when the server has ended, wanted or not.
func (r *Redis) Done() <-chan struct{} { return r.child.done }

// Stop stops the server and waits; when ctx ends first it is killed. Further calls give the first answer.
func (r *Redis) Stop(ctx context.Context) error {
	r.once.Do(func() {
		if r.child != nil {
			r.err = r.child.stop(ctx, syscall.SIGTERM, syscall.SIGKILL, 2*time.Second)
		}
		_ = os.Remove(r.endpoint)
		if r.sockets != "" {
			_ = os.RemoveAll(r.sockets)
		}
		r.lock.release()
	})
	return r.err
}
