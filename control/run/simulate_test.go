package run

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fairlane/control/simulate"
)

// command runs the command line in a folder of its own and returns its exit code and what it wrote.
func command(ctx context.Context, args ...string) (code int, out, errOut string) {
	var stdout, stderr bytes.Buffer
	code = MainContext(ctx, args, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestSimulateComparesTwoPolicies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace.csv.gz")
	if code, _, said := command(t.Context(), "trace", "derive", "--out", trace, "--hours", "0.4", "--load", "1.2", "--clients", "8"); code != 0 {
		t.Fatal(said)
	}
	code, yaml, said := command(t.Context(), "simulate", "policy", "fair")
	if code != 0 {
		t.Fatal(said)
	}
	fair, changed := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
	other := strings.Replace(yaml, "capacity_units: 100", "capacity_units: 60", 1)
	for name, text := range map[string]string{fair: yaml, changed: other} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"simulate", "--trace", trace, "--policy", fair, "--against", changed, "--seeds", "3"}
	code, first, said := command(t.Context(), append(args, "--json")...)
	if code != 0 {
		t.Fatal(said)
	}
	var answer struct {
		Tasks       int    `json:"tasks"`
		Policies    []side `json:"policies"`
		Differences difference
	}
	if err := json.Unmarshal([]byte(first), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Policies) != 2 || len(answer.Policies[1].Results) != 3 || answer.Policies[0].Name != "a.yaml" || answer.Tasks == 0 {
		t.Fatalf("%+v", answer)
	}
	wait := answer.Differences.Overall[0].Figures["wait_p95"].Median
	if !(wait > 0) {
		t.Errorf("with 60 units instead of 100 the p95 wait moves by %v", wait)
	}
	if _, again, _ := command(t.Context(), append(args, "--json")...); again != first {
		t.Error("another run, another result")
	}
	code, table, said := command(t.Context(), args...)
	if code != 0 {
		t.Fatal(said)
	}
	for _, want := range []string{"3 seeds: median", "a.yaml: lanes", "b.yaml: tenants", "b.yaml − a.yaml: lanes", "STANDARD", "client-00 (STANDARD)", "wait p50 s", "["} {
		if !strings.Contains(table, want) {
			t.Errorf("the table does not have %q:\n%s", want, table)
		}
	}
}

func TestSimulateBesideABaseline(t *testing.T) {
	t.Parallel()
	code, table, said := command(t.Context(), "simulate", "--hours", "0.5", "--load", "1.1", "--against", "fifo", "--rows", "3")
	if code != 0 || !strings.Contains(table, "fifo − builtin:fair") || !strings.Contains(table, "(the 3 with the most tasks of ") {
		t.Errorf("%d %s\n%s", code, said, table)
	}
}

func TestSimulateLendingShowsHowItsPromiseWasKept(t *testing.T) {
	t.Parallel()
	code, table, said := command(t.Context(), "simulate", "--policy", "builtin:lending", "--from", "12", "--hours", "2", "--load", "0.95")
	if code != 0 || !strings.Contains(table, "back p50 s") || !strings.Contains(table, "kept") {
		t.Errorf("%d %s\n%s", code, said, table)
	}
}

func TestSimulateRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	_, yaml, _ := command(t.Context(), "simulate", "policy", "fair")
	broken := file("broken.yaml", strings.Replace(yaml, "aging_cap: 3", "aging_cap: 2", 1))
	line := 0
	for i, l := range strings.Split(yaml, "\n") {
		if strings.Contains(l, "aging_cap: 3") {
			line = i + 1
		}
	}
	good := simulate.Header + "\n0,a,u,clip,60,VIDEO\n"
	for _, c := range []struct {
		name string
		code int
		says string
		args []string
	}{
		{"no such trace", 2, "no such file", []string{"--trace", filepath.Join(dir, "none.csv")}},
		{"an empty trace", 1, "trace: the file is empty", []string{"--trace", file("empty.csv", "")}},
		{"a broken line", 1, "trace: line 3: 2 fields, 6 are needed", []string{"--trace", file("line.csv", good+"1,a\n")}},
		{"a negative time", 1, "trace: line 3: at_s: -1 is negative", []string{"--trace", file("negative.csv", good+"-1,a,u,clip,60,VIDEO\n")}},
		{"out of order", 1, "line 4: at_s: 4 is before 5", []string{"--trace", file("order.csv", good+"5,a,u,clip,60,VIDEO\n4,a,u,clip,60,VIDEO\n")}},
		{"an unknown model", 1, `builtin:fair: trace: line 3: model: "film" is not a model of the policy, which has 3`, []string{"--trace", file("model.csv", good+"1,a,u,film,60,VIDEO\n")}},
		{"not gzip", 1, "gzip", []string{"--trace", file("zip.csv.gz", "\x1f\x8bxxxxxxxxxxxxxxxx")}},
		{"no such policy", 2, "no such file", []string{"--policy", filepath.Join(dir, "none.yaml")}},
		{"an unknown ready policy", 2, `"odd" is not a ready policy; they are fair and lending`, []string{"--policy", "builtin:odd"}},
		{"a broken rule", 1, "broken.yaml:" + strconv.Itoa(line) + ": scheduling.aging_cap: ", []string{"--hours", "1", "--policy", broken}},
		{"a broken rule of the second", 1, "broken.yaml:" + strconv.Itoa(line) + ": scheduling.aging_cap: ", []string{"--hours", "1", "--against", broken}},
		{"broken YAML", 1, "bad.yaml: line", []string{"--policy", file("bad.yaml", "schema: [1\n")}},
		{"an unknown plan", 1, `the policy has no plan "gold"; it has tenant`, []string{"--hours", "1", "--tenants", file("plans.csv", "tenant,plan\nclient-00,gold\n")}},
		{"a tenant twice", 2, `line 3: tenant "x" is there twice`, []string{"--tenants", file("twice.csv", "tenant,plan\nx,tenant\nx,tenant\n")}},
		{"a bad header of tenants", 2, "line 1: the header must be", []string{"--tenants", file("head.csv", "a,b\n")}},
		{"no seeds", 2, "seeds must be 1 to 100", []string{"--seeds", "0"}},
		{"a bad load", 2, "load: 0 is outside 0.01 to 10", []string{"--load", "0"}},
		{"NaN hours", 2, "hours: NaN is outside", []string{"--hours", "NaN"}},
	} {
		code, out, said := command(t.Context(), append([]string{"simulate"}, c.args...)...)
		if code != c.code || !strings.Contains(said, c.says) || out != "" {
			t.Errorf("%s: exit %d, %q, wrote %q; want %d and %q", c.name, code, said, out, c.code, c.says)
		}
	}
}

func TestSimulateEndsOnAnInterrupt(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if code, out, said := command(ctx, "simulate", "--hours", "24"); code != 1 || out != "" || !strings.Contains(said, "canceled") {
		t.Errorf("%d %q %q", code, out, said)
	}
}

func TestTraceDeriveLeavesNoHalfFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "t.csv")
	if code, _, said := command(t.Context(), "trace", "derive", "--out", out, "--hours", "0.5", "--endless", "--hostile", "0.3"); code != 0 {
		t.Fatal(said)
	}
	trace, err := readTrace(out)
	if err != nil || len(trace.Arrivals) == 0 {
		t.Fatal(err)
	}
	if code, _, said := command(t.Context(), "trace", "derive", "--out", filepath.Join(dir, "none", "t.csv")); code != 1 || !strings.Contains(said, "no such file") {
		t.Errorf("%d %s", code, said)
	}
	if code, _, said := command(t.Context(), "trace", "derive", "--out", out, "--clients-file", out); code != 2 || !strings.Contains(said, `clients: line 1: no column "client_id"`) {
		t.Errorf("%d %s", code, said)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
}

func TestSimulateFairnessMakesItsTables(t *testing.T) {
	t.Parallel()
	code, out, said := command(t.Context(), "simulate", "fairness", "--hours", "0.25")
	if code != 0 || strings.Count(out, "\n| --- |") != 3 || strings.Contains(out, "BROKEN") {
		t.Errorf("%d %s\n%s", code, said, out)
	}
	if code, _, said := command(t.Context(), "simulate", "fairness", "--hours", "0"); code != 2 || !strings.Contains(said, "hours must be 0.25 to 24") {
		t.Errorf("%d %s", code, said)
	}
}
