package run

import (
	"bufio"
	"bytes"
	"encoding/json"
	"testing"

	"fairlane/control/run/bench"
)

// A small run of the benchmark shows that it measures every page, and ratios where there is a baseline.
func TestBenchPageMeasuresEveryPage(t *testing.T) {
	t.Parallel()
	var out, errOut bytes.Buffer
	if code := MainContext(t.Context(), []string{"bench", "page", "--tenants", "40", "--queued", "400", "--runs", "10"}, &out, &errOut); code != 0 {
		t.Fatalf("code %d: %s", code, errOut.String())
	}
	seen, ratios := map[string]bool{}, 0
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		var r bench.Result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		name, _ := r.Params["page"].(string)
		if r.Name != "page" || r.Value <= 0 || name == "" || seen[name] {
			t.Errorf("line %s", lines.Text())
		}
		seen[name] = true
		if r.Baseline != "" {
			ratios++
			if r.Ratio <= 0 || r.BaselineValue <= 0 {
				t.Errorf("no ratio in %s", lines.Text())
			}
		}
	}
	if len(seen) < 10 || ratios < 3 {
		t.Errorf("%d pages, %d ratios", len(seen), ratios)
	}
}
