package speed_test

import (
	"context"
	"log/slog"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fairlane/store/speed"
)

// server is a Redis of the test's own at an address that it keeps, which the test may stop.
type server struct {
	url string
	cmd *exec.Cmd
}

func start(t *testing.T, dir string) *server {
	t.Helper()
	socket := filepath.Join(dir, "redis.sock")
	s := &server{url: "unix://" + socket}
	s.cmd = exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// replica hears and tells until the test ends.
type replica struct {
	*speed.Hints
	heard chan string
	up    chan bool
}

func join(t *testing.T, url string) *replica {
	t.Helper()
	client, err := speed.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{heard: make(chan string, 1000), up: make(chan bool, 1000)}
	r.Hints = speed.NewHints(client, slog.New(slog.DiscardHandler), []string{"queue", "policy"},
		func(topic string) { r.heard <- topic }, func(up bool) { r.up <- up })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			t.Error("hints go on after their context")
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func await[T comparable](t *testing.T, from <-chan T, want T) {
	t.Helper()
	bound := time.After(20 * time.Second)
	for {
		select {
		case got := <-from:
			if got == want {
				return
			}
		case <-bound:
			t.Fatalf("%v never came", want)
		}
	}
}

func TestHintsReachEveryReplica(t *testing.T) {
	t.Parallel()
	redis := start(t, t.TempDir())
	a, b := join(t, redis.url), join(t, redis.url)
	await(t, a.heard, "") // whoever subscribes looks for himself first
	await(t, b.heard, "")
	a.Tell("policy")
	await(t, b.heard, "policy")
	await(t, a.heard, "policy")
}

// A Redis that goes and comes back: the replica says so both times, and looks for itself afterwards.
func TestTrap_D67_HintsComeBackAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	redis := start(t, dir)
	a := join(t, redis.url)
	await(t, a.up, true)
	await(t, a.heard, "")
	redis.stop()
	await(t, a.up, false)
	a.Tell("queue") // nobody hears it, nobody waits for it
	start(t, dir)
	await(t, a.up, true)
	await(t, a.heard, "")
	a.Tell("policy")
	await(t, a.heard, "policy")
}

func TestWrongAddressIsAnErrorAndAnAbsentRedisIsNot(t *testing.T) {
	t.Parallel()
	if _, err := speed.Open("http://nowhere"); err == nil {
		t.Error("an address of another kind was taken")
	}
	a := join(t, "redis://127.0.0.1:1/0")
	await(t, a.up, false)
	a.Tell("queue")
}
