package e2e_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

// httpClient leaves no connection behind.
func httpClient(t testing.TB) *http.Client {
	client := &http.Client{Timeout: stepTimeout}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// Who may only read finds no form that would change anything, and is refused all the same.
func testReadersChangeNothing(t *testing.T, p *product, role, lang string) {
	b := p.open(t, lang, "").signIn(role)
	b.expect("status of 40[34]")
	for _, path := range p.pages() {
		b.visit(path)
		forms := eval[[]string](b, `[...document.querySelectorAll("form")].filter((f) => f.method === "post").map((f) => new URL(f.action).pathname)`)
		for _, action := range forms {
			if action != "/sign-out" && action != "/preference" {
				t.Errorf("%s finds a form to %s on %s", role, action, path)
			}
		}
	}
	before, weight := p.head(), `SELECT weight::bigint FROM tenant_scheduling_policy s JOIN tenant t USING (tenant_id) WHERE t.code = 'northlight-studios'`
	granted := row[int64](p, weight)
	b.visit(whale)
	b.picture("E09-" + role)
	since := row[int64](p, `SELECT coalesce(max(sequence), 0) FROM audit_event`)
	for _, target := range []string{whale, whale + "/publish", "/switches/publish", "/lanes/PAID_SHARED/publish"} {
		status := eval[int](b, `fetch(`+quoted(target)+`, { method: "POST", headers: { Accept: "text/html" },
			body: new URLSearchParams({ base: "`+strconv.FormatInt(before, 10)+`", at: "preview", weight: "99", reason: "mine" }) }).then((r) => r.status)`)
		if status != http.StatusForbidden {
			t.Errorf("%s posts to %s: %d", role, target, status)
		}
	}
	if p.head() != before || row[int64](p, weight) != granted {
		t.Errorf("%s changed something", role)
	}
	p.wait(t, "the denied tries of "+role+" in the audit record", 20*time.Second,
		`SELECT count(*) >= 4 FROM audit_event WHERE action = 'access.denied' AND result = 'DENIED' AND actor_name = $1 AND sequence > $2`, role, since)
}
