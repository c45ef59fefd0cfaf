package e2e_test

import (
	"testing"
	"time"

	"fairlane/store/storetest"
)

// The path that the product is for: sign in, change a weight with a reason, and see the new version, its
// audit record and, on pages that are open elsewhere, the share that follows from it.
func TestWeightEditIsSeenLive(t *testing.T) {
	t.Parallel()
	// At speed 1 a job takes minutes: the two tenants have work for as long as the test looks.
	p := start(t, storetest.New(t), t.TempDir(), "--quiet", "--speed", "1")
	whaleID := p.tenantID("northlight-studios")
	p.submit(t, whaleID, "user-001", "ray-3.2", 6)
	p.submit(t, p.tenantID("xinghe-yingye"), "user-001", "ray-3.2", 6)
	row := `[data-topic=tenants][data-key="` + whaleID.String() + `"]`
	cell := func(field string) string {
		return `document.querySelector('` + row + ` [data-field=` + field + `]')?.innerText.trim()`
	}
	before := "60.0 %" // 12 of 12 + 8
	for _, step := range []struct{ lang, weight, entitled, next string }{
		{"en", "24", "75.0 %", "/versions/3"}, {"zh", "72", "90.0 %", "/versions/4"},
	} {
		overview, tenants := p.open(t, step.lang, "light").signIn("viewer"), p.open(t, step.lang, "dark").signIn("auditor")
		tenants.visit("/tenants?q=northlight")
		for _, b := range []*tab{overview, tenants} {
			b.until("the share of the weight in force", cell("entitled")+` === "`+before+`"`)
			eval[bool](b, "window.sameDocument = true")
		}

		editor := p.open(t, step.lang, "").signIn("operator")
		editor.visit(whale)
		editor.fill("#weight", step.weight)
		editor.follow(preview)
		reason := "Launch week 发布周 " + step.lang
		editor.fill("#reason", reason)
		editor.picture("path-preview-" + step.lang)
		editor.follow(publish)
		published := time.Now()
		if path := eval[string](editor, "location.pathname"); path != step.next {
			t.Fatalf("the publish led to %s:\n%s", path, editor.text())
		}
		for _, b := range []*tab{overview, tenants} {
			b.until("the new weight and share", cell("weight")+` === "`+step.weight+`" && `+cell("entitled")+` === "`+step.entitled+`"`)
			figure(t, "%s: a new share is shown %s after its publish was answered", step.lang, time.Since(published).Round(time.Millisecond))
			if !eval[bool](b, "window.sameDocument === true") {
				t.Error("the page was loaded anew")
			}
		}
		overview.picture("path-overview-" + step.lang)
		editor.has(reason)
		editor.picture("path-version-" + step.lang)

		editor.follow(`main a[href^="/audit?"]`)
		editor.has(reason, publishedAction.in(step.lang), "operator")
		editor.follow(`main tbody a[href^="/audit/"]`)
		editor.has(reason, publishedAction.in(step.lang), "operator", "127.0.0.1")
		editor.picture("path-audit-" + step.lang)
		before = step.entitled
	}
	if n := auditOf(p, 4); n != 1 {
		t.Errorf("%d audit records of version 4", n)
	}
}

func auditOf(p *product, version int64) int64 {
	return row[int64](p, `SELECT count(*) FROM audit_event WHERE action = 'policy.publish' AND policy_version = $1 AND actor_name = 'operator' AND result = 'OK'`, version)
}
