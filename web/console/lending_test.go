package console_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"fairlane/control"
	"fairlane/policy/access"
)

const north = "/pools/provider:north:acct-1:eu:clip"

func TestLendingIsEditedAndHeldToItsRules(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(access.Operator)
	b.get("/lanes/PAID_SHARED").want(t, http.StatusOK, `name="headroom_units"`, `name="lends_to"`, "Lane codes with commas between them", "Lent units are back within")
	for _, c := range []struct{ field, value, says string }{
		{"headroom_units", "81", "Headroom 81 is more than the lane reserves (80 slot units): 1 too many"},
		{"lendable_units", "81", "Lendable 81 + headroom 0 is more than the lane reserves (80 slot units): 1 too many"},
		{"lends_to", "GONE", "“GONE” is not there"},
		{"lends_to", "PAID_SHARED", "is the lane itself"},
		{"lends_to", "STANDARD, STANDARD", "comes twice"},
		{"cooldown_seconds", "3601", "outside 0 to 3,600"},
		{"borrow_limit_units", "１", "full-width"},
	} {
		b.post("/lanes/PAID_SHARED", "base", "1", c.field, c.value).want(t, http.StatusUnprocessableEntity, c.says, `id="`+c.field+`-error"`)
	}
	b.post("/lanes/PAID_SHARED", "base", "1", "lendable_units", "40").
		want(t, http.StatusUnprocessableEntity, "A lane that lends 40 slot units needs at least 1 second here", `id="borrow_timeout_seconds-error"`)
	form := []string{"base", "1", "headroom_units", "10", "lendable_units", "40", "lends_to", "STANDARD, BEST_EFFORT", "borrow_timeout_seconds", "600", "reason", "share what is idle"}
	b.post("/lanes/PAID_SHARED", form...).want(t, http.StatusOK, "4 changes", "STANDARD, BEST_EFFORT", `name="lends_to" value="STANDARD, BEST_EFFORT"`)
	zh := s.as(access.Operator)
	zh.cookies["fl_lang"] = "zh"
	zh.post("/lanes/PAID_SHARED", form...).want(t, http.StatusOK, "借给", "借出单位的归还时限")
	b.post("/lanes/PAID_SHARED/publish", form...).want(t, http.StatusSeeOther)
	v, err := s.policies.Head(context.Background())
	check(t, err)
	l, _ := v.Document.Lane(control.LanePaid)
	if a := l.Accounts[0]; a.HeadroomUnits != 10 || a.LendableUnits != 40 || a.BorrowTimeout != 600 || !slices.Equal(a.LendsTo, []string{control.LaneStandard, control.LaneBestEffort}) {
		t.Errorf("published %+v", a)
	}
	b.get("/lanes/PAID_SHARED").want(t, http.StatusOK, `value="STANDARD, BEST_EFFORT"`)
}

func TestWhatPoolsKeepIsEditedByCodes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(access.Operator)
	b.get(north).want(t, http.StatusOK, `name="lane_minimums"`, "RECOVERY 2, PAID_SHARED 1", `name="can_look_up"`, `name="dedicated_tenants"`)
	if a := b.get("/pools/platform").want(t, http.StatusOK); strings.Contains(a.body, `name="can_look_up"`) {
		t.Error("a cap group is asked whether it can look a job up")
	}
	for _, c := range []struct{ field, value, says string }{
		{"lane_minimums", "RECOVERY", "is not a lane and its slot units"},
		{"lane_minimums", "GONE 1", "“GONE” is not there"},
		{"lane_minimums", "RECOVERY 60, PAID_SHARED 41", "Lanes would keep 101 of 100 slot units: 1 too many"},
		{"dedicated_lanes", "GONE", "“GONE” is not there"},
		{"dedicated_tenants", "nobody", "“nobody” is not there"},
		{"dedicated_tenants", "acme, acme", "comes twice"},
	} {
		b.post(north, "base", "1", c.field, c.value).want(t, http.StatusUnprocessableEntity, c.says, `id="`+c.field+`-error"`)
	}
	form := []string{"base", "1", "lane_minimums", "RECOVERY 2", "dedicated_tenants", "acme, gamma", "can_look_up.shown", "1", "can_look_up", "on", "reason", "a contract"}
	b.post(north, form...).want(t, http.StatusOK, "3 changes", "acme, gamma", "RECOVERY 2")
	b.post(north+"/publish", form...).want(t, http.StatusSeeOther)
	b.get(north).want(t, http.StatusOK, `value="acme, gamma"`)
	s.as(access.Viewer).get(north).want(t, http.StatusOK, "acme, gamma")
	b.post("/pools/provider:south:a%2F1:eu:clip", "base", "2", "dedicated_tenants", "acme").
		want(t, http.StatusUnprocessableEntity, "Tenants that may use it and find none: 1, the first is beta", `id="dedicated_tenants-error"`)
	b.post(north, "base", "2", "dedicated_tenants", "").want(t, http.StatusOK, "1 change")
	v, err := s.policies.Head(context.Background())
	check(t, err)
	p, _ := v.Document.Pool("provider:north:acct-1:eu:clip")
	if !p.CanLookUp || len(p.LaneMinimums) != 1 || len(p.DedicatedTenants) != 2 || p.DedicatedTenants[0] != s.tenants[0].ID {
		t.Errorf("published %+v", p)
	}
}

func TestSchedulingSettingsAreEdited(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(access.Operator)
	b.get("/scheduling").want(t, http.StatusOK, "Scheduling settings", `name="base_quantum_units"`, `name="repay_permille"`, `value="500"`, "0: only after the most skips")
	for _, c := range []struct{ field, value, says string }{
		{"aging_cap", "2", "2 is outside 3 to 4"},
		{"repay_permille", "901", "901 is outside 0 to 900"},
		{"earmark_timeout_seconds", "119", "119 seconds is less than the P95 of the slowest task in platform (120"},
		{"debt_task_units", "-1", "is negative"},
	} {
		b.post("/scheduling", "base", "1", c.field, c.value).want(t, http.StatusUnprocessableEntity, c.says, `id="`+c.field+`-error"`)
	}
	form := []string{"base", "1", "max_skips", "8", "debt_total_units", "900", "reason", "measured"}
	b.post("/scheduling", form...).want(t, http.StatusOK, "2 changes", "Most skips", `class="now">900<`)
	b.post("/scheduling/publish", form...).want(t, http.StatusSeeOther)
	v, err := s.policies.Head(context.Background())
	check(t, err)
	if got := v.Document.Scheduling; got.MaxSkips != 8 || got.DebtTotalUnits != 900 {
		t.Errorf("published %+v", got)
	}
	viewer := s.as(access.Viewer)
	if a := viewer.get("/scheduling").want(t, http.StatusOK, "Most skips"); slices.Contains(a.inputs(), "max_skips") {
		t.Error("a reader sees the form")
	}
	viewer.post("/scheduling/publish", form...).want(t, http.StatusForbidden)
}
