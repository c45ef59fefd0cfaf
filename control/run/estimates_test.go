package run

import (
	"bytes"
	"strings"
	"testing"

	"fairlane/control/estimate"
	"fairlane/store/facts"
	"fairlane/store/storetest"
)

func TestEstimatesShowHowTheyDid(t *testing.T) {
	t.Parallel()
	base := storetest.New(t)
	show := func() string {
		t.Helper()
		var out bytes.Buffer
		if code := MainContext(t.Context(), []string{"estimates", "--database-url", base.URL}, &out, &out); code != 0 {
			t.Fatalf("ended with %d:\n%s", code, out.String())
		}
		return out.String()
	}
	if got := show(); !strings.Contains(got, "version 1, 0 kinds of work") || !strings.Contains(got, "no task has succeeded yet") {
		t.Errorf("a new database:\n%s", got)
	}
	if _, err := base.Pool.Exec(t.Context(), `
		INSERT INTO estimate_sample (attempt_id, model_code, resolution, clip_seconds, provider, used_seconds, held_seconds, expected_seconds, expected_p95_seconds, charged_units, used_units)
		SELECT gen_random_uuid(), 'clip', '720p', 5, 'a', 120, CASE WHEN n <= 4 THEN 200 ELSE 130 END, 60, 150, 2000, 4000 FROM generate_series(1, 40) n`); err != nil {
		t.Fatal(err)
	}
	db, err := facts.Open(t.Context(), base.URL, "test", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	priors := func(estimate.Key) estimate.Prior { return estimate.Prior{MeanSeconds: 60, P95Seconds: 150} }
	if n, err := facts.NewEstimates(db).Fold(t.Context(), priors, 100, estimate.MovedShare); n != 40 || err != nil {
		t.Fatalf("%d samples, %v", n, err)
	}
	got := show()
	for _, want := range []string{"version 2, 2 kinds of work", "clip", "40", "2.0", "10.0 %"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
}
