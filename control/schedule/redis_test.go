package schedule_test

import (
	"context"
	"log/slog"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"fairlane/control/reconcile"
	"fairlane/control/schedule"
	"fairlane/store/facts"
	"fairlane/store/speed"
)

// server is a Redis of the test's own at an address that it keeps, which the test may kill, hang and empty.
type server struct {
	t    *testing.T
	path string
	cmd  *exec.Cmd
}

func startRedis(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, path: filepath.Join(t.TempDir(), "r.sock")}
	t.Cleanup(func() {
		if s.cmd != nil {
			s.kill()
		}
	})
	s.start()
	return s
}

func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command("redis-server", "--port", "0", "--unixsocket", s.path, "--save", "", "--appendonly", "no", "--dir", filepath.Dir(s.path))
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// do runs something on the server, which may take a moment to answer after its start.
func (s *server) do(fn func(ctx context.Context, rdb *redis.Client) error) {
	s.t.Helper()
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: s.path, MaxRetries: 20, MinRetryBackoff: 20 * time.Millisecond})
	defer rdb.Close() //nolint:errcheck // of the test
	if err := fn(s.t.Context(), rdb); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) flush() {
	s.t.Helper()
	s.do(func(ctx context.Context, rdb *redis.Client) error { return rdb.FlushAll(ctx).Err() })
}

// indexes are the shared indexes in the loop's words.
type indexes struct{ *speed.QueueIndex }

func (x indexes) Open(ctx context.Context, group string, now time.Time) (schedule.Shared, error) {
	q, err := x.QueueIndex.Open(ctx, group, now)
	if err != nil {
		return nil, err
	}
	return q, nil
}

// on lets a loop of the world keep its queue on that server.
func (w *world) on(s *server, cfg schedule.Config) schedule.Config {
	w.t.Helper()
	client, err := speed.Open("unix://" + s.path)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = client.Close() })
	index := speed.NewQueueIndex(client, "", slog.New(slog.DiscardHandler), nil)
	cfg.Indexes = indexes{index}
	cfg.Rebuilder = reconcile.NewQueueIndexRebuilder(w.store.Backlogs, index, facts.NewLeases(w.facts), "test", slog.New(slog.DiscardHandler))
	return cfg
}

// watcher keeps what a loop tells.
type watcher struct {
	mu     sync.Mutex
	states []schedule.QueueState
	parked int
	moved  chan struct{}
}

func newWatcher() *watcher { return &watcher{moved: make(chan struct{}, 1)} }

func (w *watcher) Cycled(time.Duration)                       {}
func (w *watcher) Claimed(time.Duration, int, map[string]int) {}

func (w *watcher) Queued(_ string, s schedule.QueueState) {
	w.mu.Lock()
	w.states = append(w.states, s)
	w.mu.Unlock()
	w.signal()
}

func (w *watcher) Parked(_ string, n int) {
	w.mu.Lock()
	w.parked = n
	w.mu.Unlock()
	w.signal()
}

func (w *watcher) signal() {
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

// until waits until the newest state is as wanted.
func (w *watcher) until(t *testing.T, what string, want func(schedule.QueueState) bool) schedule.QueueState {
	t.Helper()
	bound := time.NewTimer(30 * time.Second)
	defer bound.Stop()
	for {
		w.mu.Lock()
		n := len(w.states)
		var s schedule.QueueState
		if n > 0 {
			s = w.states[n-1]
		}
		w.mu.Unlock()
		if n > 0 && want(s) {
			return s
		}
		select {
		case <-w.moved:
		case <-bound.C:
			t.Fatalf("%s: the queue is still at %+v", what, s)
		}
	}
}

func shared(s schedule.QueueState) bool  { return s.Runs && s.Shared && !s.Limited }
func limited(s schedule.QueueState) bool { return s.Runs && !s.Shared && s.Limited }
