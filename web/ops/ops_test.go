package ops_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"go.uber.org/goleak"

	"fairlane/web/ops"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

var metric = regexp.MustCompile(`fairlane_[a-z_]+`)

// Every alert reads metrics that the program has, waits before it fires, and says what to do.
func TestAlertsReadMetricsThatExist(t *testing.T) {
	t.Parallel()
	data, err := fs.ReadFile(ops.FS, "alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file rules
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	known := declared(t)
	seen := map[string]bool{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if seen[r.Alert] || !strings.HasPrefix(r.Alert, "Fairlane") {
				t.Errorf("%s: a name of its own that begins with Fairlane", r.Alert)
			}
			seen[r.Alert] = true
			names := metric.FindAllString(r.Expr, -1)
			if len(names) == 0 || r.For == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s lacks a part: %+v", r.Alert, r)
			}
			for _, name := range names {
				if !known[name] {
					t.Errorf("%s reads %s, which no room of ours declares", r.Alert, name)
				}
			}
		}
	}
	for _, want := range []string{"FairlaneTenantsStarve", "FairlaneStarvationNotChecked"} {
		if !seen[want] {
			t.Errorf("there is no %s", want)
		}
	}
}

// declared are the metrics that the monitor's sources name.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../../control/monitor/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	names := map[string]bool{}
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range metric.FindAllString(string(source), -1) {
			names[name] = true
		}
	}
	return names
}
