package policyfile_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"fairlane/control"
	"fairlane/control/run/policyfile"
	"fairlane/control/simulate/workload"
	"fairlane/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func text(t *testing.T) string {
	t.Helper()
	out, err := policyfile.Write(workload.Fair())
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	t.Parallel()
	yaml := text(t)
	encoded, err := policy.Encode(workload.Fair())
	if err != nil {
		t.Fatal(err)
	}
	want, err := policy.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]string{"YAML": yaml, "JSON": string(encoded), "a mark and CRLF": "\ufeff" + strings.ReplaceAll(yaml, "\n", "\r\n")} {
		f, err := policyfile.Read("p.yaml", []byte(in))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(f.Document, want) {
			t.Errorf("%s: another document came back", name)
		}
	}
}

// lineOf is the number of the line that holds the text, the n-th time from 1.
func lineOf(yaml, text string, n int) int {
	for i, l := range strings.Split(yaml, "\n") {
		if strings.Contains(l, text) {
			if n--; n == 0 {
				return i + 1
			}
		}
	}
	return 0
}

func TestBadFilesAreRefusedWithTheirLine(t *testing.T) {
	t.Parallel()
	good := text(t)
	swap := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	quantum := lineOf(good, "base_quantum_units", 1)
	for _, c := range []struct{ name, in, says string }{
		{"empty", "", "the file is empty"},
		{"only a comment", "# nothing\n", "one document is needed"},
		{"two documents", good + "---\nschema: 1\n", "one document is needed, there are 2"},
		{"a list", "- 1\n- 2\n", "wrong_type"},
		{"broken", "schema: [1\n", "p.yaml: line"},
		{"a tab", "schema: 1\nscheduling:\n\tx: 1\n", "p.yaml: line"},
		{"an unknown key", swap("base_quantum_units:", "base_quantum:"), fmt.Sprintf("p.yaml:%d: scheduling.base_quantum", quantum)},
		{"a missing key", swap("  base_quantum_units: 4\n", ""), "scheduling.base_quantum_units"},
		{"a doubled key", swap("  base_quantum_units: 4\n", "  base_quantum_units: 4\n  base_quantum_units: 5\n"), fmt.Sprintf("line %d", quantum+1)},
		{"a fraction", swap("base_quantum_units: 4", "base_quantum_units: 4.5"), fmt.Sprintf("p.yaml:%d: scheduling.base_quantum_units", quantum)},
		{"a word", swap("base_quantum_units: 4", "base_quantum_units: four"), fmt.Sprintf("p.yaml:%d: scheduling.base_quantum_units", quantum)},
		{"null", swap("base_quantum_units: 4", "base_quantum_units: ~"), fmt.Sprintf("p.yaml:%d: scheduling.base_quantum_units", quantum)},
		{"infinite", swap("base_quantum_units: 4", "base_quantum_units: .inf"), fmt.Sprintf("p.yaml: line %d: .inf is not a finite number", quantum)},
		{"NaN", swap("base_quantum_units: 4", "base_quantum_units: .nan"), fmt.Sprintf("p.yaml: line %d: .nan is not a finite number", quantum)},
		{"an anchor", swap("base_quantum_units: 4", "base_quantum_units: &q 4"), "anchors, aliases and merges are not taken"},
		{"a tag", swap("base_quantum_units: 4", "base_quantum_units: !!str 4"), "tags are not taken"},
		{"deep", "a: " + strings.Repeat("[", 40) + strings.Repeat("]", 40), "levels"},
		{"broken JSON", `{"schema": 1,`, "p.yaml"},
	} {
		_, err := policyfile.Read("p.yaml", []byte(c.in))
		if err == nil {
			t.Errorf("%s: taken", c.name)
			continue
		}
		said := err.Error()
		var told *control.Error
		if errors.As(err, &told) {
			for _, f := range told.Fields {
				said += "\n" + f.Field + ": " + f.Key
			}
		}
		if !strings.Contains(said, c.says) {
			t.Errorf("%s: %q does not say %q", c.name, said, c.says)
		}
	}
}

// The policy's rules name entries by their codes, a file has them in lines.
func TestBrokenRulesAreNamedWithTheirLine(t *testing.T) {
	t.Parallel()
	good := text(t)
	for _, c := range []struct {
		name, old, new string
		at             string
		nth            int
		field          string
	}{
		{"a weight", "  weight: 4\n", "  weight: 2000000\n", "weight: 2000000", 1, "lanes[PAID_SHARED].weight"},
		{"a cooldown", "    cooldown_seconds: 60", "    cooldown_seconds: 9000", "cooldown_seconds: 9000", 1, "lanes[ENTERPRISE_RESERVED].accounts[default].cooldown_seconds"},
		{"an aging cap", "aging_cap: 3", "aging_cap: 2", "aging_cap: 2", 1, "scheduling.aging_cap"},
		{"a pool", "  capacity_units: 100\n  preference", "  capacity_units: -1\n  preference", "capacity_units: -1", 1, "pools[provider:example:acct-1:us:short-clip].capacity_units"},
	} {
		in := strings.Replace(good, c.old, c.new, 1)
		if in == good {
			t.Fatalf("%s: the text has no %q", c.name, c.old)
		}
		f, err := policyfile.Read("p.yaml", []byte(in))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var told *control.Error
		if !errors.As(f.Check(policy.Validate(f.Document, nil)), &told) {
			t.Errorf("%s: no rule is broken", c.name)
			continue
		}
		want := fmt.Sprintf("p.yaml:%d: %s", lineOf(in, c.at, c.nth), c.field)
		found := false
		var all []string
		for _, field := range told.Fields {
			found = found || field.Field == want
			all = append(all, field.Field)
		}
		if !found {
			t.Errorf("%s: %q does not name %q", c.name, all, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	small, err := policyfile.Write(policy.Default())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(small)
	f.Add([]byte("a: &x [*x]"))
	f.Add([]byte("{\"schema\": 1}"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		file, err := policyfile.Read("f", in)
		if (file == nil) == (err == nil) {
			t.Fatal("either a file or an error")
		}
		if file == nil {
			return
		}
		again, err := policyfile.Write(file.Document)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := policyfile.Read("again", again); err != nil {
			t.Fatalf("what was written is not taken: %v", err)
		}
	})
}
