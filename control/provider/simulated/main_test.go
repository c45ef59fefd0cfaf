package simulated_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"fairlane/control/provider"
	"fairlane/control/provider/simulated"
)

// childDir makes this test binary play the hidden command of the product.
const childDir = "FAIRLANE_TEST_SIMULATED_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := simulated.Main(ctx, dir, slog.New(slog.NewTextHandler(os.Stderr, nil))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

var quiet = slog.New(slog.DiscardHandler)

const secret = "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"

// steady is a provider that never fails: one profile "p", account "a", model "m", 100 ms a job.
func steady() simulated.Config {
	return simulated.Config{
		Seed: 1, APIKey: "key", WebhookSecret: secret,
		Models:   []simulated.Model{{Code: "m", P50: 0.1, P95: 0.1, CostMicro: 420_000}},
		Profiles: []simulated.Profile{{Code: "p", Dedupe: true, Lookup: true, Signed: true, Pools: []simulated.Pool{{Account: "a", Model: "m", Concurrency: 1000}}}},
	}
}

type running struct {
	url, dir string
	cfg      simulated.Config
	stop     func()
}

func (r running) journal() string { return simulated.JournalPath(r.dir) }

// serve runs a server in dir until the test ends or stop is called.
func serve(t *testing.T, cfg simulated.Config, dir string) running {
	t.Helper()
	server, err := simulated.NewServer(cfg, dir, quiet, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, l, nil) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("server: %v", err)
		}
	})
	t.Cleanup(stop)
	return running{"http://" + l.Addr().String(), dir, cfg, stop}
}

func (r running) adapter(t *testing.T) *simulated.Adapter {
	t.Helper()
	client := provider.NewClient(provider.ClientConfig{Allow: provider.Loopback()})
	t.Cleanup(client.Close)
	a, err := simulated.NewAdapter(r.url, r.cfg, r.cfg.Profiles[0], client)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// eventually asks until ask is content; the waits are on a ticker, with a bound.
func eventually(t *testing.T, what string, ask func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	bound := time.After(20 * time.Second)
	for !ask() {
		select {
		case <-ticker.C:
		case <-bound:
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func submits(t *testing.T, path string) map[string]int {
	t.Helper()
	counts, err := simulated.SubmitsByAttempt(path)
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

func shortDir(t *testing.T) string { t.Helper(); return filepath.Join(t.TempDir(), "provider") }
