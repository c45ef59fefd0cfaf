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

	// A busy machine may be late once; a product that is late is late each time.
	for try := 1; ; try++ {
		slowest := closeAdmission(t, p, operator, watchers)
		if slowest <= bannerMost {
			break
		}
		if try == 3 {
			t.Fatalf("the last banner came after %s, more than %s, in each of %d tries", slowest, bannerMost, try)
		}
		openAdmission(operator, watchers)
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

	openAdmission(operator, watchers)
	p.submit(t, p.tenantID("brightreel"), "user-001", "ray-3.2", 1)
}

// closeAdmission turns the switch off and returns how long after the publish the last page said so.
func closeAdmission(t *testing.T, p *product, operator *tab, watchers map[string]*tab) (slowest time.Duration) {
	t.Helper()
	for _, b := range watchers {
		eval[bool](b, `(() => {
			window.saidAt = 0;
			const look = () => { if (!saidAt && `+banner(b.lang)+`) saidAt = Date.now(); };
			new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
			return true;
		})()`)
	}
	operator.visit("/switches")
	flip(operator, "admission_open", "Provider outage, nothing new for now.")
	published := row[time.Time](p, `SELECT created_at FROM policy_version ORDER BY version DESC LIMIT 1`)
	for name, b := range watchers {
		b.until("the banner on "+name, "window.saidAt")
		took := time.UnixMilli(eval[int64](b, "saidAt")).Sub(published).Round(time.Millisecond)
		figure(t, "the banner on %s is there %s after the publish", name, took)
		slowest = max(slowest, took)
	}
	return slowest
}

func openAdmission(operator *tab, watchers map[string]*tab) {
	operator.t.Helper()
	operator.visit("/switches")
	flip(operator, "admission_open", "Provider is back.")
	for name, b := range watchers {
		b.until("no banner on "+name, "!("+banner(b.lang)+")")
	}
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
