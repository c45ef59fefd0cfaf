package e2e_test

import (
	"strconv"
	"testing"

	"fairlane/store/storetest"
)

// whale is the demo's largest tenant: its own weight of 12 beside four times 8 in its lane.
const whale = "/tenants/northlight-studios"

const (
	preview = "form#edit .actions button.primary" // of the form; on the preview it publishes
	publish = preview
	again   = "form#edit button[name=step][value=edit]"
)

func testReasonIsNeededAndSurvives(t *testing.T, p *product, lang string) {
	b := p.open(t, lang, "").signIn("operator")
	b.expect("status of 422")
	before, records := p.head(), row[int64](p, `SELECT count(*) FROM audit_event WHERE action = 'policy.publish'`)

	b.visit(whale)
	b.fill("#weight", "24")
	b.follow(preview)
	b.has(changes1.in(lang), publishAs.in(lang))
	b.follow(publish)
	b.until("the error beside the reason", `document.querySelector(".field.wrong #reason[aria-invalid=true]") && document.querySelector("#reason-error")`)
	b.has(reasonNeeded.in(lang))
	if focus := eval[string](b, "document.activeElement.id"); focus != "reason" {
		t.Errorf("the focus is on %q, not on the reason", focus)
	}
	if described := eval[string](b, `document.querySelector("#reason").getAttribute("aria-describedby") || ""`); described != "reason-error" {
		t.Errorf("the reason is described by %q", described)
	}
	b.picture("E01-" + lang)
	b.accessible()
	if p.head() != before || row[int64](p, `SELECT count(*) FROM audit_event WHERE action = 'policy.publish'`) != records {
		t.Fatal("a publish without a reason changed something")
	}

	reason := "合同续签 <b>2027</b> & “more”\nsecond line"
	eval[bool](b, "(document.querySelector('#reason').value = "+quoted(reason)+", true)")
	b.follow(again)
	if got := eval[string](b, "document.querySelector('#weight').value"); got != "24" {
		t.Errorf("back in the form the weight is %q", got)
	}
	b.fill("#weight", "1e9")
	b.follow(preview)
	b.until("the error beside the weight", `document.querySelector(".field.wrong #weight[aria-invalid=true]")`)
	b.has(notWhole.in(lang))
	if got := eval[string](b, "document.querySelector('#weight').value"); got != "1e9" {
		t.Errorf("what was typed became %q", got)
	}
	b.fill("#weight", "16")
	b.follow(preview)
	if got := eval[string](b, "document.querySelector('#reason').value"); got != reason {
		t.Errorf("the reason became %q", got)
	}
	if p.head() != before {
		t.Fatal("something was published")
	}
}

func testTwoEditsAreTwoRows(t *testing.T, p *product, lang string) {
	b := p.open(t, lang, "").signIn("operator")
	b.visit(whale)
	b.fill("#weight", "24")
	b.fill("#burst_units", "20")
	b.follow(preview)
	b.has(changes2.in(lang))
	type diff struct{ Path, Before, After, Share string }
	rows := eval[[]diff](b, `[...document.querySelectorAll("table.diff tbody tr")].map((r) => ({
		Path: r.dataset.path, Before: r.cells[2].innerText.trim(), After: r.cells[3].innerText.trim(), Share: r.cells[4].innerText.trim() }))`)
	if len(rows) != 2 {
		t.Fatalf("%d rows for two edits: %+v", len(rows), rows)
	}
	for i, want := range []struct{ before, after, share string }{{"12", "24", "27.3 % → 42.9 %"}, {"30", "20", ""}} {
		r := rows[i]
		if r.Before[:2] != want.before || r.After[:2] != want.after {
			t.Errorf("row %d: %s → %s, want %s → %s", i+1, r.Before, r.After, want.before, want.after)
		}
		if want.share != "" && (len(r.Share) < len(want.share) || r.Share[:len(want.share)] != want.share) {
			t.Errorf("row %d: share %q, want %q", i+1, r.Share, want.share)
		}
	}
	b.picture("E02-" + lang)
}

func TestE04_SecondOfTwoOperatorsLosesNothing(t *testing.T) {
	t.Parallel()
	p := start(t, storetest.New(t), t.TempDir(), "--quiet")
	first, second := p.open(t, "en", "").signIn("operator"), p.open(t, "zh", "").signIn("admin")
	second.expect("status of 409")
	for _, b := range []*tab{first, second} {
		b.visit(whale)
	}
	first.fill("#weight", "20")
	second.fill("#weight", "14")
	second.fill("#max_running_tasks", "66")
	for _, b := range []*tab{first, second} {
		b.follow(preview)
	}
	first.fill("#reason", "theirs: more for the launch")
	mine := "我的原因：合同约定"
	second.fill("#reason", mine)
	first.follow(publish)
	first.until("the new version", `location.pathname === "/versions/3"`)
	second.follow(publish)
	second.has(conflictTitle.zh, "theirs: more for the launch", changedByBoth.zh)
	if got := eval[string](second, "document.querySelector('#reason').value"); got != mine {
		t.Errorf("the reason became %q", got)
	}
	sides := eval[[][]string](second, `[...document.querySelectorAll(".three-way tbody tr")].map((r) => [...r.cells].slice(2, 5).map((c) => c.innerText.trim()))`)
	if len(sides) != 2 || sides[0][0] != "12" || sides[0][1] != "20" || sides[0][2] != "14" || sides[1][2] != "66" {
		t.Errorf("base, theirs, mine: %v", sides)
	}
	second.picture("E04-conflict")
	second.accessible()
	if w := row[int64](p, `SELECT weight FROM tenant_scheduling_policy s JOIN tenant t USING (tenant_id) WHERE t.code = 'northlight-studios'`); w != 20 {
		t.Fatalf("the weight is %d after the conflict", w)
	}

	second.follow("form#edit button[name=rebase]")
	second.has(changes2.zh)
	if got := eval[string](second, "document.querySelector('#reason').value"); got != mine {
		t.Errorf("carried over, the reason became %q", got)
	}
	second.follow(publish)
	second.until("the version after", `location.pathname === "/versions/4"`)
	second.has(mine)
	if w := row[int64](p, `SELECT weight FROM tenant_scheduling_policy s JOIN tenant t USING (tenant_id) WHERE t.code = 'northlight-studios'`); w != 14 {
		t.Errorf("the weight is %d in the end", w)
	}
	if n := row[int64](p, `SELECT count(*) FROM audit_event WHERE action = 'policy.publish'`); n != p.head() {
		t.Errorf("%d records of %s versions", n, strconv.FormatInt(p.head(), 10))
	}
}
