package e2e_test

import (
	"strings"
	"testing"
	"time"

	"fairlane/store/storetest"
)

// bannerMost is how soon everybody must know.
const bannerMost = 2 * time.Second

func TestE08_ClosedAdmissionIsSaidEverywhere(t *testing.T) {
	t.Parallel()
	p := start(t, storetest.New(t), t.TempDir(), "--quiet")
	operator := p.open(t, "en", "").signIn("operator")
	watchers := map[string]*tab{
		"overview": p.open(t, "zh", "").signIn("viewer"),
		"audit":    p.open(t, "en", "").signIn("auditor"),
		"wall":     p.open(t, "en", "dark").signIn("wall"),
	}
	watchers["audit"].visit("/audit")
	watchers["wall"].visit("/wall")

	operator.visit("/switches")
	flip(operator, "admission_open", "Provider outage, nothing new for now.")
	began := row[time.Time](p, `SELECT created_at FROM policy_version ORDER BY version DESC LIMIT 1`)
	for name, b := range watchers {
		b.within(stepTimeout, "the banner on "+name, banner(b.lang))
		took := time.Since(began)
		figure(t, "the banner on %s is there %s after the publish", name, took.Round(time.Millisecond))
		if took > bannerMost {
			t.Errorf("the banner on %s came after %s, more than %s", name, took, bannerMost)
		}
	}
	watchers["wall"].picture("E08-wall")
	for _, path := range p.pages() {
		operator.visit(path)
		if !eval[bool](operator, banner("en")) {
			t.Errorf("no banner on %s", path)
		}
	}
	if err := post(httpClient(t), p.url, p.token(t, p.tenantID("brightreel")), "user-001", "ray-3.2"); err == nil {
		t.Error("a task was accepted while admission is closed")
	}

	operator.visit("/switches")
	flip(operator, "admission_open", "Provider is back.")
	for name, b := range watchers {
		b.until("no banner on "+name, "!("+banner(b.lang)+")")
	}
	p.submit(t, p.tenantID("brightreel"), "user-001", "ray-3.2", 1)
}

func banner(lang string) string {
	return `[...document.querySelectorAll("#banners .banner")].some((b) => b.innerText.includes(` + quoted(admissionClosed.in(lang)) + `))`
}

// flip turns one of the platform's switches and publishes that.
func flip(b *tab, name, reason string) {
	b.t.Helper()
	b.click("#" + name)
	b.follow(preview)
	b.fill("#reason", reason)
	b.follow(publish)
	if path := eval[string](b, "location.pathname"); !strings.HasPrefix(path, "/versions/") {
		b.t.Fatalf("the switch was not published:\n%s", b.text())
	}
}
