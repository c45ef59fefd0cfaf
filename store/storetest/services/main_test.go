package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCommandForwardsVariablesAndExitCode(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	code := command(t.Context(), []string{"sh", "-c", `printf %s "$FAIRLANE_TEST_X" > "$0"; exit 7`, out}, []string{"FAIRLANE_TEST_X=a b&c"})
	text, err := os.ReadFile(out)
	if err != nil || code != 7 || string(text) != "a b&c" {
		t.Errorf("code %d, variable %q, %v; want 7 and %q", code, text, err, "a b&c")
	}
	if code := command(t.Context(), []string{"/nonexistent/program"}, nil); code != 1 {
		t.Errorf("a program that is not there: %d, want 1", code)
	}
}

func TestEnvFileIsReadByAShell(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "env")
	url := "postgres:///fairlane?host=%2Ftmp%2Fx&port=5432&user=fairlane"
	if err := writeEnv(path, []string{"FAIRLANE_TEST_DATABASE_URL=" + url}); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `set -a; . "$0"; env`, path).Output()
	if err != nil || !strings.Contains(string(out), "FAIRLANE_TEST_DATABASE_URL="+url+"\n") {
		t.Errorf("%v: %s", err, out)
	}
}
