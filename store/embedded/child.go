package embedded

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// child is one running program with an owner: the goroutine that started it waits for it.
type child struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // valid once done is closed
}

// startChild runs cmd as acc in a process group of its own (Ctrl-C in a terminal must reach only us: the
// stores stop last) and has the kernel send onDeath to it when this process dies.
func startChild(cmd *exec.Cmd, name string, acc account, onDeath syscall.Signal) (*child, error) {
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/", "TZ=UTC", "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: acc.credential, Setpgid: true, Pdeathsig: onDeath}
	c := &child{name: name, cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The signal follows the death of the starting thread, so that thread has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			c.err = cmd.Wait()
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s cannot be started: %w", name, err)
	}
	return c, nil
}

// stop sends the signals one after another until the program has ended: each but the first after its
// share of the time that is left, SIGKILL when ctx ends.
func (c *child) stop(ctx context.Context, gentle, firm syscall.Signal, patience time.Duration) error {
	_ = c.cmd.Process.Signal(gentle) // it may have ended; the wait below tells
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-c.done:
			return nil
		case <-timer.C:
			_ = c.cmd.Process.Signal(firm)
		case <-ctx.Done():
			_ = c.cmd.Process.Kill()
			<-c.done
			return fmt.Errorf("%s did not stop in time and was killed: %w", c.name, context.Cause(ctx))
		}
	}
}

// awaitReady asks ready until it says yes, the program ends, or the time is over.
func (c *child) awaitReady(ctx context.Context, timeout time.Duration, logPath string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not ready within %v", timeout))
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			return fmt.Errorf("%s ended while starting (%s): %s", c.name, c.cmd.ProcessState, lastLine(logPath))
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %s", c.name, context.Cause(ctx), lastLine(logPath))
		case <-tick.C:
			try, stop := context.WithTimeout(ctx, 2*time.Second)
			err := ready(try)
			stop()
			if err == nil {
				return nil
			}
		}
	}
}

const maxLog = 4 << 20

// openLog opens a child's log for appending and starts it anew when it has grown.
func openLog(path string) (*os.File, error) {
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		flags |= os.O_TRUNC
	}
	return os.OpenFile(path, flags, 0o600)
}

// lastLine is the end of a log, for an error message.
func lastLine(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return "no log"
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > 2048 {
		_, _ = file.Seek(-2048, io.SeekEnd)
	}
	text, _ := io.ReadAll(io.LimitReader(file, 2048))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.Contains(lines[i], "FATAL") || strings.Contains(lines[i], "PANIC") || strings.Contains(lines[i], "error") {
			return lines[i] + " (see " + path + ")"
		}
	}
	return lines[len(lines)-1] + " (see " + path + ")"
}
