package embedded

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// The test program plays the parent of the stores when this names a data directory.
const parentVariable = "FAIRLANE_TEST_EMBEDDED_PARENT"

type pids struct{ Postgres, Redis int }

// parent starts the stores, says so on its output and waits to be killed.
func parent(dir string) int {
	s, err := Start(context.Background(), Config{DataDir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, note := range s.Notes {
		fmt.Fprintln(os.Stderr, note)
	}
	if err := json.NewEncoder(os.Stdout).Encode(pids{s.Postgres.PID(), s.Redis.PID()}); err != nil {
		return 1
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // the test closes it
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		return 1
	}
	return 0
}

func runParent(t *testing.T, dir, program string, credential *syscall.Credential) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), parentVariable+"="+dir, "HOME=/", "TMPDIR=/tmp")
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

func readPIDs(t *testing.T, out io.Reader) pids {
	t.Helper()
	var p pids
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&p); err != nil {
		t.Fatalf("the parent did not start the stores: %v", err)
	}
	return p
}

func awaitGone(t *testing.T, pid int) {
	t.Helper()
	await(t, fmt.Sprintf("process %d to end", pid), func() bool {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		return err != nil || isZombie(string(stat))
	})
}

// isZombie: nobody in a container may reap orphans; one that has ended counts as gone.
func isZombie(stat string) bool {
	for i := len(stat) - 1; i >= 0; i-- {
		if stat[i] == ')' {
			return len(stat) > i+2 && stat[i+2] == 'Z'
		}
	}
	return false
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("waited 20 s in vain for %s", what)
		case <-tick.C:
		}
	}
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBothDieWithAKilledParent(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	cmd, out := runParent(t, dir, self(t), nil)
	p := readPIDs(t, out)
	kill(t, cmd)
	// No waiting here: a start right after the kill has to cope with a server that is still stopping.
	execute(t, start(t, Config{DataDir: dir}).DatabaseURL, `SELECT 1`)
	awaitGone(t, p.Postgres)
	awaitGone(t, p.Redis)
}

func TestKilledWhileInitialising(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	cmd, _ := runParent(t, dir, self(t), nil)
	await(t, "initdb to write", func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, clusterName+".new-*", "global", "*"))
		return len(found) > 0
	})
	kill(t, cmd)
	if made(filepath.Join(dir, clusterName)) {
		t.Fatal("the cluster was finished before the kill")
	}
	execute(t, start(t, Config{DataDir: dir}).DatabaseURL, `SELECT 1`)
	if left, _ := filepath.Glob(filepath.Join(dir, clusterName+".new-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAsANormalUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		execute(t, start(t, Config{DataDir: openDir(t)}).DatabaseURL, `SELECT 1`)
		return
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	gid, _ := strconv.Atoi(nobody.Gid)
	dir := openDir(t)
	program := filepath.Join(dir, "parent")
	copyFile(t, self(t), program)
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(data, uid, gid); err != nil {
		t.Fatal(err)
	}
	cmd, out := runParent(t, data, program, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}) //nolint:gosec // ids of an account
	p := readPIDs(t, out)
	kill(t, cmd)
	awaitGone(t, p.Postgres)
	awaitGone(t, p.Redis)
	for _, name := range []string{"postgres.json", "redis.json"} { // what the next start would do
		clearStale(filepath.Join(data, name))
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o755); err != nil { //nolint:gosec // a program for another account
		t.Fatal(err)
	}
}

func TestRootDataDirOutOfReachGoesElsewhere(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		// Only root has an account beside its own; a normal user's unreachable folder is an error.
		dir := filepath.Join(openDir(t), "closed")
		if err := os.Mkdir(dir, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := Start(t.Context(), Config{DataDir: dir}); err == nil {
			t.Error("it started in a closed folder")
		}
		return
	}
	closed := filepath.Join(openDir(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	s := start(t, Config{DataDir: closed, UnsafeNoFsync: true})
	execute(t, s.DatabaseURL, `CREATE TABLE kept (n int)`)
	pointer, err := os.ReadFile(filepath.Join(closed, pointerName))
	if err != nil {
		t.Fatal(err)
	}
	home := string(pointer[:len(pointer)-1])
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	if len(s.Notes) != 1 || filepath.Dir(home) != farRoot {
		t.Errorf("notes %q, cluster in %s; want a note and a folder in %s", s.Notes, home, farRoot)
	}
	if address, ok := Running(t.Context(), closed); !ok || address != s.DatabaseURL {
		t.Errorf("Running gives %q, %v", address, ok)
	}
	stop(t, s)
	// The pointer wins: opening the folder later must not start an empty database.
	if err := os.Chmod(closed, 0o711); err != nil { //nolint:gosec // the point of the test
		t.Fatal(err)
	}
	execute(t, start(t, Config{DataDir: closed, UnsafeNoFsync: true}).DatabaseURL, `INSERT INTO kept VALUES (1)`)
}
