package simulated_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairlane/control/provider"
	"fairlane/control/provider/simulated"
)

func launch(t *testing.T, dir string, cfg simulated.Config) simulated.Launch {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := simulated.Stop(context.Background(), dir); err != nil {
			t.Error(err)
		}
	})
	return simulated.Launch{Dir: dir, Exe: exe, Args: []string{"-test.run=^$"}, Env: []string{childDir + "=" + dir, "GORACE=atexit_sleep_ms=0"}, Config: cfg}
}

func pid(t *testing.T, dir string) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "control.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct{ PID int }
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	return c.PID
}

func TestEnsureFindsWhatRunsAndStartsWhatDoesNot(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	cfg := steady()
	cfg.APIKey, cfg.WebhookSecret = "", ""
	cfg.Models[0].P50, cfg.Models[0].P95 = 3000, 3000
	l := launch(t, dir, cfg)
	first, err := simulated.Ensure(t.Context(), l)
	if err != nil || !first.Started || first.Config.APIKey == "" || first.Config.WebhookSecret == "" {
		t.Fatalf("%+v %v", first, err)
	}
	list, closeAll, err := first.Providers()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll()
	if _, err := provider.NewRegistry(list...); err != nil {
		t.Fatal(err)
	}
	s := submission("k")
	job := list[0].Adapter.Submit(t.Context(), s)
	if job.Outcome != provider.Accepted {
		t.Fatalf("%+v", job)
	}
	child := pid(t, dir)
	if sid, err := getsid(child); err != nil || sid != child {
		t.Errorf("session %d of process %d, %v: it would get our terminal's signals", sid, child, err)
	}
	second, err := simulated.Ensure(t.Context(), l)
	if err != nil || second.Started || second.URL != first.URL || pid(t, dir) != child {
		t.Fatalf("found %+v %v", second, err)
	}

	// kill -9 of the provider: the next one goes on with its jobs, at the same address.
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	third, err := simulated.Ensure(t.Context(), l)
	if err != nil || !third.Started || third.URL != first.URL || third.Config.APIKey != first.Config.APIKey {
		t.Fatalf("after kill -9: %+v %v", third, err)
	}
	if st, err := list[0].Adapter.Status(t.Context(), provider.Job{ID: job.JobID}); err != nil || st.State != provider.JobRunning {
		t.Errorf("%+v %v", st, err)
	}

	// Another config replaces it.
	l.Config.Seed = 99
	fourth, err := simulated.Ensure(t.Context(), l)
	if err != nil || !fourth.Started || fourth.URL != first.URL {
		t.Fatalf("with another config: %+v %v", fourth, err)
	}
	began := time.Now()
	if err := simulated.Stop(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("stopping took %v", took)
	}
	if err := simulated.Stop(t.Context(), dir); err != nil {
		t.Errorf("stopped again: %v", err)
	}
	if n := submits(t, simulated.JournalPath(dir))[s.AttemptID.String()]; n != 1 {
		t.Errorf("%d submits", n)
	}
}

// A busy machine makes it slow: it is found all the same. One that hangs for good is replaced, and stopped.
func TestAServerThatHangs(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	l := launch(t, dir, steady())
	if _, err := simulated.Ensure(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	child := pid(t, dir)
	pause := func() {
		t.Helper()
		stopped := pid(t, dir)
		if err := syscall.Kill(stopped, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		for { // the signal takes effect a moment later
			stat, err := os.ReadFile("/proc/" + strconv.Itoa(stopped) + "/stat")
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(stat), ") T ") {
				return
			}
		}
	}
	pause()
	wake := time.AfterFunc(1200*time.Millisecond, func() { _ = syscall.Kill(child, syscall.SIGCONT) })
	if slow, err := simulated.Ensure(t.Context(), l); err != nil || slow.Started || pid(t, dir) != child {
		t.Errorf("slow: %+v %v", slow, err)
	}
	wake.Stop()
	pause()
	if again, err := simulated.Ensure(t.Context(), l); err != nil || !again.Started || pid(t, dir) == child {
		t.Errorf("hanging: %+v %v", again, err)
	}
	pause()
	began := time.Now()
	if err := simulated.Stop(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 2500*time.Millisecond {
		t.Errorf("stopping took %v", took)
	}
}

func TestEnsureSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	l := launch(t, dir, steady())
	l.Env = []string{childDir + "=/no/such/place"}
	if _, err := simulated.Ensure(t.Context(), l); err == nil || !strings.Contains(err.Error(), "/no/such/place") {
		t.Errorf("%v", err)
	}
	l = launch(t, dir, steady())
	l.Config.Models[0].P50 = -1
	if _, err := simulated.Ensure(t.Context(), l); err == nil || !strings.Contains(err.Error(), "models[0].p50_seconds") {
		t.Errorf("%v", err)
	}
	l = launch(t, dir, steady())
	l.Exe = "/no/such/program"
	if _, err := simulated.Ensure(t.Context(), l); err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("%v", err)
	}
}

// A control file whose pid and port have gone to others harms nobody.
func TestStopLeavesStrangersAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stranger := serve(t, steady(), t.TempDir())
	text := `{"pid":` + itoa(os.Getpid()) + `,"id":"x","url":"` + stranger.url + `"}`
	if err := os.WriteFile(filepath.Join(dir, "control.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := simulated.Stop(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if err := simulated.Stop(t.Context(), filepath.Join(dir, "nothing")); err != nil {
		t.Error(err)
	}
}

// Keep brings back a server that died.
func TestKeepStartsItAgain(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	l := launch(t, dir, steady())
	if _, err := simulated.Ensure(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- simulated.Keep(ctx, l, quiet) }()
	dead := pid(t, dir)
	if err := syscall.Kill(dead, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another server", func() bool { return pid(t, dir) != dead })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

func getsid(pid int) (int, error) {
	sid, _, errno := syscall.Syscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(sid), nil
}
