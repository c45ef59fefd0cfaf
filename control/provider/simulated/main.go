package simulated

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// beacon is what a running server leaves in its directory for those who look for it.
type beacon struct {
	PID    int    `json:"pid"`
	ID     string `json:"id"` // random; /healthz answers with it, so that another's port or pid is not taken for ours
	URL    string `json:"url"`
	Digest string `json:"digest"` // of the config that it runs with
}

const (
	// idleExit ends a server that nobody has asked anything for so long: its parent is gone for good.
	// The jobs stay in the journal.
	idleExit = time.Hour
	// lockWait is how long a server waits for the one before it to let go of the journal.
	lockWait = 5 * time.Second
)

func controlPath(dir string) string { return filepath.Join(dir, "control.json") }

// Main runs a server with the config in dir until ctx ends. It is the whole of the hidden command that
// Ensure starts.
func Main(ctx context.Context, dir string, log *slog.Logger) error {
	cfg, err := readConfig(dir)
	if err != nil {
		return err
	}
	server, err := openServer(ctx, cfg, dir, log)
	if err != nil {
		return err
	}
	listener, err := listen(cfg, dir)
	if err != nil {
		_ = server.Close()
		return err
	}
	me := beacon{PID: os.Getpid(), ID: randomText(), URL: "http://" + listener.Addr().String(), Digest: cfg.digest()}
	if err := writeFile(controlPath(dir), me); err != nil {
		_ = listener.Close()
		_ = server.Close()
		return err
	}
	var asked atomic.Int64
	running, stop := context.WithCancel(ctx)
	defer stop()
	idle := time.AfterFunc(idleExit, stop)
	defer idle.Stop()
	server.asked = func() {
		if asked.Add(1)%16 == 1 {
			idle.Reset(idleExit)
		}
	}
	log.Info("simulated provider listens", "url", me.URL)
	return server.Run(running, listener, func(mux *http.ServeMux) {
		mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
			server.asked()
			writeJSON(w, http.StatusOK, map[string]string{"id": me.ID})
		})
	})
}

func openServer(ctx context.Context, cfg Config, dir string, log *slog.Logger) (*Server, error) {
	bound, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for {
		server, err := NewServer(cfg, dir, log, nil)
		if err == nil || !locked(err) {
			return server, err
		}
		select {
		case <-bound.Done():
			return nil, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// listen takes the port of the run before, where it is still free: addresses that others hold stay right.
func listen(cfg Config, dir string) (net.Listener, error) {
	if before, err := readControl(dir); err == nil {
		if u, err := url.Parse(before.URL); err == nil && u.Port() != "" {
			host, port, err := net.SplitHostPort(cfg.Listen)
			if err == nil && port == "0" {
				if l, err := net.Listen("tcp", net.JoinHostPort(host, u.Port())); err == nil {
					return l, nil
				}
			}
		}
	}
	return net.Listen("tcp", cfg.Listen)
}

func locked(err error) bool {
	return errors.Is(err, syscall.EWOULDBLOCK)
}

func readControl(dir string) (beacon, error) {
	var c beacon
	raw, err := os.ReadFile(controlPath(dir))
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, fmt.Errorf("%s: %w", controlPath(dir), err)
	}
	return c, nil
}

// writeFile replaces a file as a whole; it may hold secrets.
func writeFile(path string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, append(raw, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

func randomText() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
