package e2e_test

import (
	"net"
	"strconv"
	"testing"
	"time"

	"fairlane/store/storetest"
)

func itoa(n int) string { return strconv.Itoa(n) }

const (
	lostMost = 5 * time.Second // until a page says that it is cut off
	backMost = 40 * time.Second
)

// shown is what the live parts of a page say, but for times that move on by themselves.
const shown = `[...document.querySelectorAll("[data-live] [data-topic]")].map((row) => row.dataset.topic + " " + row.dataset.key + ": " +
	[...row.querySelectorAll("[data-field]")].filter((f) => !["since", "wait"].includes(f.dataset.as))
		.map((f) => f.dataset.field + "=" + (f.hidden ? "-" : f.innerText.trim() || f.firstElementChild?.getAttribute("aria-label"))).join(" ")).join("\n")`

const (
	cutOff = "WebSocket|ERR_|htmx:|status of 50[234]" // what a page may say when its server is away
	isLive = `document.querySelector("#live-badge.good")`
)

func testPause(t *testing.T, p *product) {
	b, other := p.open(t, "en", "").signIn("viewer"), p.open(t, "zh", "").signIn("viewer")
	for _, x := range []*tab{b, other} {
		x.until("a live page", isLive)
	}
	eval[bool](b, `(() => {
		window.moves = [];
		new MutationObserver((list) => moves.push(...list.map((m) => m.target.parentElement?.outerHTML.slice(0, 120) || m.type)))
			.observe(document.querySelector("[data-live]"), { subtree: true, childList: true, characterData: true, attributes: true });
		return true;
	})()`)
	b.until("a page that moves", "moves.length > 3")
	b.click("[data-live-pause]")
	b.until("the badge of the pause", `document.querySelector("#live-badge.warn")`)
	eval[bool](b, "(moves.length = 0, true)")
	before := eval[string](other, shown)
	for range 3 { // three changes that the other reader sees
		other.until("a change elsewhere", shown+" !== "+quoted(before))
		before = eval[string](other, shown)
	}
	if moved := eval[[]string](b, "moves"); len(moved) > 0 {
		t.Errorf("%d changes while paused, first %s", len(moved), moved[0])
	}
	b.picture("E23-paused")
	b.click("[data-live-pause]")
	b.until("a page that moves again", "moves.length > 3")
	b.until("the badge of the live page", isLive)
}

func TestE20_E21_CutPagesSaySoAndComeBackWhole(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	db, dir := storetest.New(t), t.TempDir()
	p := start(t, db, dir, "--quiet", "--listen", address)
	line := newWire(t, address)
	through := *p
	through.url = "http://" + line.address()

	b := through.open(t, "en", "").signIn("viewer")
	b.expect(cutOff)
	b.until("a live page", isLive)
	p.submit(t, p.tenantID("northlight-studios"), "user-001", "ray-3.2", 5)
	p.submit(t, p.tenantID("brightreel"), "user-001", "gen4_turbo", 5)

	t.Log("E21: the connection breaks while tasks run")
	said := lost(b, line.cut)
	b.has(disconnected.en)
	p.wait(t, "tasks that end meanwhile", time.Minute, `SELECT count(*) >= 3 FROM generation_task WHERE finished_at IS NOT NULL`)
	line.mend()
	b.within(backMost, "a page that has come back", isLive)
	same(t, p, b)

	t.Log("E20: the connection goes silent")
	silent := lost(b, line.silence)
	line.cut()
	line.mend()
	b.within(backMost, "a page that has come back", isLive)

	t.Log("E20: the server ends and starts again")
	direct := p.open(t, "zh", "").signIn("viewer")
	direct.expect(cutOff)
	direct.until("a live page", isLive)
	eval[bool](direct, "window.sameDocument = true")
	ended := lost(direct, p.stop)
	direct.has(disconnected.zh)
	direct.picture("E20-lost")
	p = start(t, db, dir, "--quiet", "--listen", address)
	p.submit(t, p.tenantID("northlight-studios"), "user-001", "ray-3.2", 3)
	direct.within(backMost, "a page that has come back", isLive)
	same(t, p, direct)
	if !eval[bool](direct, "window.sameDocument === true") {
		t.Error("the page was loaded anew")
	}
	figure(t, "cut off is said after: cut %s, silent %s, ended %s", said.Round(time.Millisecond), silent.Round(time.Millisecond), ended.Round(time.Millisecond))
}

// lost breaks something and returns how long after it the page said that it is cut off, by the page's own
// clock, which is that of this machine.
func lost(b *tab, breaks func()) time.Duration {
	b.t.Helper()
	eval[bool](b, `(() => {
		const badge = document.querySelector("#live-badge");
		window.lostAt = 0;
		new MutationObserver(() => { if (!lostAt && badge.classList.contains("bad")) lostAt = Date.now(); }).observe(badge, { attributes: true });
		return true;
	})()`)
	began := time.Now()
	breaks()
	b.until("a page that says it is cut off", "window.lostAt")
	took := time.UnixMilli(eval[int64](b, "lostAt")).Sub(began)
	if took > lostMost {
		b.t.Errorf("the page says after %s that it is cut off, more than %s", took, lostMost)
	}
	return took
}

// same waits until everything has come to rest and compares the page with one that was just loaded.
func same(t *testing.T, p *product, b *tab) {
	t.Helper()
	p.wait(t, "everything at rest", time.Minute, `SELECT count(*) = 0 FROM generation_task WHERE finished_at IS NULL`)
	fresh := p.open(t, b.lang, "").signIn("viewer")
	fresh.expect(cutOff) // it stays open while the server ends
	fresh.until("a live page", isLive)
	want := ""
	deadline := time.Now().Add(backMost)
	for time.Now().Before(deadline) {
		want = eval[string](fresh, shown)
		if eval[string](b, shown) == want {
			return
		}
	}
	t.Errorf("the page that was cut shows\n%s\na fresh one\n%s", eval[string](b, shown), want)
}

// freeAddress is below the ports that outgoing connections take, so that it is still free after a restart.
func freeAddress(t testing.TB) string {
	t.Helper()
	for port := 21000 + time.Now().Nanosecond()%9000; port < 32000; port++ {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		var listen net.ListenConfig
		l, err := listen.Listen(t.Context(), "tcp", address)
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return address
	}
	t.Fatal("no free port below 32000")
	return ""
}
