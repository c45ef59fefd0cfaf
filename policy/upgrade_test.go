package policy_test

import (
	"regexp"
	"strings"
	"testing"

	"fairlane/control"
	"fairlane/policy"
)

// oldText is the sample as a build that knew schema 1 wrote it.
func oldText(t *testing.T) string {
	t.Helper()
	text := strings.Replace(encode(t, sample()), `"schema":2`, `"schema":1`, 1)
	later := regexp.MustCompile(`"(headroom_units|lendable_units|borrow_timeout_seconds|cooldown_seconds|borrow_limit_units|earmark_after_seconds|` +
		`earmark_timeout_seconds|repay_permille|debt_task_units|debt_total_units|can_look_up|lends_to|lane_minimums|dedicated_lanes|dedicated_tenants)":[^,}]*`)
	text = later.ReplaceAllString(text, "")
	return regexp.MustCompile(`,+([,}])`).ReplaceAllString(text, "$1")
}

func TestDocumentOfSchema1GoesOnAsItDid(t *testing.T) {
	t.Parallel()
	text := oldText(t)
	for _, gone := range []string{"lends_to", "debt", "cooldown"} {
		if strings.Contains(text, gone) {
			t.Fatalf("%s is in %s", gone, text)
		}
	}
	got, err := policy.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if want := encode(t, sample()); encode(t, got) != want {
		t.Errorf("got  %s\nwant %s", encode(t, got), want)
	}
	if rows := policy.Diff(got, sample(), nil); len(rows) != 0 {
		t.Errorf("differs: %+v", rows)
	}
	wantNone(t, policy.Validate(got, tenants(8)))
	next := apply(t, got, policy.SetLane(control.LanePaid, "weight", "7"))
	if rows := policy.Diff(got, next, nil); len(rows) != 1 {
		t.Errorf("one edit is %d rows: %+v", len(rows), rows)
	}
}

// What a document of schema 1 says of the later fields is kept, zeros too.
func TestSchema1KeepsWhatItSays(t *testing.T) {
	t.Parallel()
	text := strings.Replace(oldText(t), `"schema":1,"scheduling":{`, `"schema":1,"scheduling":{"repay_permille":0,"debt_total_units":7,`, 1)
	got, err := policy.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if s := got.Scheduling; s.RepayPermille != 0 || s.DebtTotalUnits != 7 || s.DebtTaskUnits != 50 {
		t.Errorf("%+v", s)
	}
}
