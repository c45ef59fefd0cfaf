package run

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"fairlane/control/provider/simulated"
	"fairlane/store/embedded"
	"fairlane/store/storetest"
)

// process is a real one of the program, over a data directory of its own.
type process struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	done chan error
}

// startDemo runs the demo and returns once it has said that it is ready.
func startDemo(t *testing.T, dir string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, dir: dir, done: make(chan error, 1)}
	p.cmd = exec.Command(exe, "demo", "--listen", "127.0.0.1:0", "--data-dir", dir, "--password", "life-password", "--speed", "40")
	p.cmd.Env = append(os.Environ(), asProgram+"=1")
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "Ctrl-C stops everything") {
				close(ready)
			}
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	go func() { <-read; p.done <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	select {
	case <-ready:
	case err := <-p.done:
		t.Fatalf("the demo ended before it was ready: %v", err)
	case <-time.After(90 * time.Second):
		t.Fatal("the demo was not ready within 90 s")
	}
	return p
}

// end sends the signal and waits until the process is gone.
func (p *process) end(s syscall.Signal) error {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
	select {
	case err := <-p.done:
		return err
	case <-time.After(30 * time.Second):
		p.t.Fatal("it did not end")
		return nil
	}
}

// succeeded waits until n more tasks than now have ended SUCCEEDED.
func (p *process) succeeded(n int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Minute)
	defer cancel()
	url, ok := embedded.Running(ctx, p.dir)
	if !ok {
		p.t.Fatal("the private database does not run")
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // a test's own
	first := -1
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		var now int
		if err := conn.QueryRow(ctx, `SELECT count(*) FROM generation_task WHERE state = 'SUCCEEDED'`).Scan(&now); err != nil {
			p.t.Fatalf("while waiting for %d tasks: %v", n, err)
		}
		if first < 0 {
			first = now
		}
		if now >= first+n {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.t.Fatalf("%d of %d tasks have succeeded", now-first, n)
		}
	}
}

// The demo is killed in full work, its Redis too, and started again: nothing is lost, leaked or paid twice.
func TestLife_KilledInFullWorkItGoesOnWhereItStopped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := startDemo(t, dir)
	p.succeeded(40)

	if n := killRedis(t, p.cmd.Process.Pid); n != 1 {
		t.Fatalf("killed %d private Redis servers, want 1", n)
	}
	p.succeeded(60) // I12: without Redis everything but the hints goes on

	_ = p.end(syscall.SIGKILL)
	p = startDemo(t, dir)
	p.succeeded(60)
	mustCheck(t, dir)
	if err := p.end(syscall.SIGINT); err != nil {
		t.Errorf("an ordered stop is no failure: %v", err)
	}
	mustCheck(t, dir) // starts the private database itself

	submits, err := simulated.SubmitsByAttempt(simulated.JournalPath(filepath.Join(dir, "provider")))
	if err != nil {
		t.Fatal(err)
	}
	for attempt, n := range submits {
		if n > 1 {
			t.Errorf("TestTrap_D20: attempt %s was submitted %d times", attempt, n)
		}
	}
	if len(submits) < 160 {
		t.Errorf("the journal knows of %d attempts only", len(submits))
	}
	storetest.Figure(t, "life: %d attempts over a kill of Redis and a kill -9, submitted twice: 0", len(submits))
}

func mustCheck(t *testing.T, dir string) {
	t.Helper()
	var out strings.Builder
	if code := MainContext(t.Context(), []string{"check", "--data-dir", dir}, &out, &out); code != 0 {
		t.Errorf("check ended with %d:\n%s", code, out.String())
	}
}

// killRedis kills the Redis servers that are children of the process.
func killRedis(t *testing.T, parent int) (killed int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		var pid, ppid int
		var name, state string
		if _, err := fmt.Sscan(strings.NewReplacer("(", " ", ")", " ").Replace(string(text)), &pid, &name, &state, &ppid); err != nil {
			continue
		}
		if ppid == parent && strings.HasPrefix(name, "redis") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			killed++
		}
	}
	return killed
}
