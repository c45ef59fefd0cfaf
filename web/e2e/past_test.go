package e2e_test

import (
	"testing"
	"time"
)

const (
	firstRow  = `document.querySelector(".again table.past tbody tr")?.innerText`
	hasChart  = `document.querySelectorAll(".again .chart path.area").length > 0 && document.querySelectorAll(".again table.past tbody tr").length > 0`
	sampled   = 2 * time.Minute // until the first minute of a tenant has been put together
	sameTab   = "(window.sameDocument = true)"
	isSameTab = "window.sameDocument === true"
)

// The chart of a lane has its table beside it, both follow the samples by themselves, and stop when asked
// to; the span stands in the address, so that it works without scripts too.
func testChartsFollow(t *testing.T, p *product) {
	b := p.open(t, "en", "light").signIn("operator")
	b.visit("/lanes/PAID_SHARED")
	b.within(sampled, "a chart with its table", hasChart)
	eval[bool](b, sameTab)
	b.until("a live page", isLive)
	before := eval[string](b, firstRow)
	b.until("the next sample in the table", firstRow+" !== "+quoted(before))
	if !eval[bool](b, isSameTab) {
		t.Error("the page was loaded anew")
	}
	cells := eval[[]int](b, `[...document.querySelectorAll(".again table.past tr")].map((r) => r.children.length)`)
	for _, n := range cells {
		if n != 9 {
			t.Errorf("a row of the table has %d cells, want the time and eight values: %v", n, cells)
			break
		}
	}
	if label := eval[string](b, `document.querySelector(".again .chart").getAttribute("aria-label")`); label == "" {
		t.Error("the chart says nothing to who cannot see it")
	}
	b.has("Promise of return", "Who borrows", "STANDARD", "Own", "Borrowed", "Headroom")
	b.accessible()
	b.picture("E23-lane")

	b.click("[data-live-pause]")
	b.until("the badge of the pause", `document.querySelector("#live-badge.warn")`)
	still := eval[string](b, `(() => { window.moved = 0;
		new MutationObserver((list) => { moved += list.length; }).observe(document.querySelector(".again"), { subtree: true, childList: true, characterData: true });
		return document.querySelector(".again").innerText; })()`)
	p.wait(t, "samples that the page does not show", 30*time.Second,
		`SELECT count(*) >= 2 FROM account_sample WHERE step = 10 AND lane = 'PAID_SHARED' AND at > $1`, time.Now())
	if eval[int](b, "moved") != 0 || eval[string](b, `document.querySelector(".again").innerText`) != still {
		t.Error("a paused page goes on")
	}
	b.click("[data-live-pause]")
	b.until("the samples that were missed", "moved > 0")

	b.follow(`.spans a[href$="span=3h"]`)
	b.until("the longer span", `location.search === "?span=3h" && document.querySelector('.spans a[aria-current]').innerText.includes("3 hours")`)

	b.visit(whale)
	b.within(sampled, "the tenant's charts", hasChart)
	b.until("a live page", isLive)
	b.has("Share", "Entitled", "Wait p50", "Wait p95", "Debt, fairness units", "Place in its lanes")
	figures := `document.querySelector('[data-topic^="tenant:"] .figures').innerText`
	had := eval[string](b, figures)
	b.within(time.Minute, "figures of the tenant that move", figures+" !== "+quoted(had))
	b.accessible()
	b.picture("E23-tenant")

	b.visit("/health")
	b.until("the lanes' longest waits", `document.querySelector('[data-key="starvation:BEST_EFFORT"]')`)
	b.has("Starvation, by lane", "no bound: weight 0, leftovers only")
}

// A task's page follows the task from its queue to its end, and says whether it waits.
func testTaskFollows(t *testing.T, p *product) {
	p.submit(t, p.tenantID("atlas-travel"), "user-001", "hailuo-02", 1) // not behind the backlog of a busy tenant
	id := row[string](p, `SELECT task_id::text FROM generation_task WHERE idempotency_key IS NOT NULL AND finished_at IS NULL ORDER BY task_id DESC LIMIT 1`)
	b := p.open(t, "zh", "dark").signIn("operator")
	b.visit("/tasks/" + id)
	eval[bool](b, sameTab)
	b.until("a live page", isLive)
	b.has("为什么在等待？")
	b.accessible()
	b.picture("E25-task")
	p.wait(t, "the end of the task", 3*time.Minute, `SELECT finished_at IS NOT NULL FROM generation_task WHERE task_id = $1`, id)
	words := map[string]string{"SUCCEEDED": "成功", "FAILED": "失败", "CANCELED": "已取消"}
	said := words[row[string](p, `SELECT state FROM generation_task WHERE task_id = $1`, id)]
	b.within(20*time.Second, "the end of the task on its page", `document.querySelector(".again .badge").innerText === `+quoted(said))
	b.has("它没有在等待")
	if !eval[bool](b, isSameTab) {
		t.Error("the page was loaded anew")
	}
}
