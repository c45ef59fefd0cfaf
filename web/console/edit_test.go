package console_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"fairlane/audit"
	"fairlane/policy/access"
	"fairlane/store/facts"
)

func TestE01_WeightIsPublishedWithAReasonOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(access.Operator)
	b.get("/tenants/acme").want(t, http.StatusOK, "Acme 工作室", `name="weight"`, "from the plan", "Policy v1 in force")

	preview := b.post("/tenants/acme", "base", "1", "at", "edit", "weight", "6").
		want(t, http.StatusOK, "1 change", `class="was">2 (plan)`, `class="now">6<`, "50.0 % → <b>75.0 %</b>", "weight 6 of 8 in PAID_SHARED = 75.0 %", `name="reason"`, "Publish as version 2")
	if strings.Contains(preview.body, `name="burst_units"`) {
		t.Error("the preview carries fields that were not changed")
	}
	if s.head() != 1 {
		t.Fatal("a preview published something")
	}

	b.post("/tenants/acme/publish", "base", "1", "at", "preview", "weight", "6", "reason", " \t ").
		want(t, http.StatusUnprocessableEntity, "Please say why", `aria-invalid="true"`, "autofocus", `name="weight" value="6"`)
	if s.head() != 1 || s.weight("acme") != 2 {
		t.Fatal("a publish without a reason changed something")
	}

	bad := b.post("/tenants/acme", "base", "1", "at", "preview", "weight", "1e9", "reason", "合同加权")
	bad.want(t, http.StatusUnprocessableEntity, "not a whole number", `value="1e9"`, `name="reason" value="合同加权"`)

	done := b.post("/tenants/acme/publish", "base", "1", "at", "preview", "weight", "6", "reason", "合同加权\r\nmore")
	if done.status != http.StatusSeeOther || done.header.Get("Location") != "/versions/2" {
		t.Fatalf("publish: %d to %q\n%s", done.status, done.header.Get("Location"), done.body)
	}
	if s.weight("acme") != 6 {
		t.Fatalf("weight is %d", s.weight("acme"))
	}
	b.get("/versions/2").want(t, http.StatusOK, "Version 2", "合同加权", "operator", "75.0 %", "audit record of this version")
	rows, err := facts.NewAudits(s.db).List(context.Background(), audit.Filter{Action: audit.PolicyPublish, Version: 2}, 0, 10)
	check(t, err)
	if len(rows) != 1 || rows[0].Actor.Name != "operator" || rows[0].Actor.SourceAddress != "192.0.2.7" || rows[0].Actor.RequestID == "" {
		t.Fatalf("audit of the publish: %+v", rows)
	}
}

func TestE02_TwoEditsAreTwoRowsInBothLanguages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(access.Operator)
	for lang, word := range map[string]string{"en": "2 changes", "zh": "2 处变更"} {
		b.cookies["fl_lang"] = lang
		a := b.post("/tenants/acme", "base", "1", "weight", "5", "burst_units", "40").want(t, http.StatusOK, word)
		if n := strings.Count(a.body, "<tr data-path="); n != 2 {
			t.Errorf("%s: %d rows in the diff", lang, n)
		}
	}
}

func TestE04_Trap_D63_SecondOfTwoOperatorsGetsTheConflictWithItsText(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, second := s.as(access.Operator), s.as(access.Admin)
	first.post("/tenants/acme/publish", "base", "1", "weight", "5", "reason", "theirs").want(t, http.StatusSeeOther)
	a := second.post("/tenants/acme/publish", "base", "1", "weight", "7", "burst_units", "50", "reason", "mine, 我的原因").
		want(t, http.StatusConflict, "Version 2 was published while you worked on 1", "theirs", "mine, 我的原因", "changed by both",
			`name="weight" value="7"`, `name="burst_units" value="50"`, `name="rebase" value="2"`)
	if !strings.Contains(a.body, "<td>5</td>") || !strings.Contains(a.body, `class="mine">7`) {
		t.Errorf("the three sides are not shown\n%s", a.body)
	}
	if s.head() != 2 || s.weight("acme") != 5 {
		t.Fatal("the second publish changed something")
	}
	second.post("/tenants/acme", "base", "1", "rebase", "2", "weight", "7", "burst_units", "50", "reason", "mine, 我的原因").
		want(t, http.StatusOK, "2 changes", `class="was">5<`, "mine, 我的原因", `name="base" value="2"`)
	second.post("/tenants/acme/publish", "base", "2", "weight", "7", "burst_units", "50", "reason", "mine").want(t, http.StatusSeeOther)
	if s.weight("acme") != 7 {
		t.Fatalf("weight is %d", s.weight("acme"))
	}
}

func TestRebasedChangeKeepsWhatTheOthersChanged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, second := s.as(access.Operator), s.as(access.Admin)
	first.post("/tenants/acme/publish", "base", "1", "burst_units", "60", "reason", "theirs").want(t, http.StatusSeeOther)
	// The whole form of version 1 comes back: only the weight was touched, and only it may travel.
	form := []string{"base", "1", "weight", "9", "burst_units", "24", "reserved_units", "0"}
	a := second.post("/tenants/acme", form...).want(t, http.StatusConflict)
	if strings.Contains(a.body, `name="burst_units"`) {
		t.Error("the conflict page carries a field that was not changed")
	}
	second.post("/tenants/acme/publish", "base", "2", "weight", "9", "reason", "mine").want(t, http.StatusSeeOther)
	v, err := s.policies.Head(context.Background())
	check(t, err)
	got, _ := v.Document.Effective("pro", s.tenants[0].ID)
	if got.BurstUnits != 60 || got.Weight != 9 {
		t.Fatalf("burst %d weight %d", got.BurstUnits, got.Weight)
	}
}

func TestTenantGivesAFieldBackToItsPlan(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(access.Operator)
	b.post("/tenants/acme/publish", "base", "1", "weight", "5", "reason", "more").want(t, http.StatusSeeOther)
	b.get("/tenants/acme").want(t, http.StatusOK, "own value; the plan grants 2", `name="weight.reset"`)
	b.post("/tenants/acme", "base", "2", "weight", "5", "weight.reset", "on").want(t, http.StatusOK, "2 (plan)", `name="weight.reset" value="on"`)
	b.post("/tenants/acme/publish", "base", "2", "weight", "5", "weight.reset", "on", "reason", "back").want(t, http.StatusSeeOther)
	if s.weight("acme") != 2 {
		t.Fatalf("weight is %d", s.weight("acme"))
	}
	v, err := s.policies.Head(context.Background())
	check(t, err)
	if len(v.Document.Tenants) != 0 {
		t.Errorf("an empty override is left: %+v", v.Document.Tenants)
	}
}

func TestLanePoolAndSwitchesAreEdited(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(access.Operator)
	south := "/pools/provider:south:a%2F1:eu:clip"
	for i, step := range []struct{ page, shows, field, value, want string }{
		{"/lanes/PAID_SHARED", "80 of 160", "reserved_units", "100", "100 of 160"},
		{"/lanes/PAID_SHARED", "100 of 160", "paused.shown", "1", ""},
		{south, "provider:south:a/1:eu:clip", "capacity_units", "90", "100 of 190"},
		{"/switches", "Admission open", "admission_open.shown", "1", "Admission is closed"},
	} {
		b.get(step.page).want(t, http.StatusOK, step.shows)
		base := strconv.Itoa(i + 1)
		form := []string{"base", base, step.field, step.value, "reason", "step " + base}
		if step.field == "paused.shown" {
			form = append(form, "paused", "on")
		}
		b.post(step.page, form...).want(t, http.StatusOK, "1 change")
		b.post(step.page+"/publish", form...).want(t, http.StatusSeeOther)
		b.get(step.page).want(t, http.StatusOK, step.want)
	}
	b.get("/versions/3").want(t, http.StatusOK, "Lane PAID_SHARED is paused", "Admission is closed") // E08: on every page
}

func TestE03_ReservesOverCapacityAreBlockedWithTheArithmetic(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(access.Operator)
	b.post("/lanes/STANDARD", "base", "1", "reserved_units", "81").
		want(t, http.StatusUnprocessableEntity, "Lanes would reserve 161 of 160 slot units: 1 too many", `value="81"`, `id="reserved_units-error"`)
	b.post("/pools/provider:north:acct-1:eu:clip", "base", "1", "capacity_units", "10").
		want(t, http.StatusUnprocessableEntity, "Lanes would reserve 80 of 70", `id="capacity_units-error"`)
	b.post("/tenants/acme", "base", "1", "burst_units", "1", "reserved_units", "79").
		want(t, http.StatusUnprocessableEntity, `id="reserved_units-error"`, "its largest task needs 2")
	if s.head() != 1 {
		t.Fatal("something was published")
	}
}
