package e2e_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// controls are the things that a key must reach, in the order of the document.
const controls = `[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
	.filter((e) => e.tabIndex >= 0 && !e.disabled && e.type !== "hidden" && e.checkVisibility({ visibilityProperty: true }))`

func testKeyboard(t *testing.T, p *product) {
	b := p.open(t, "en", "").signIn("operator")
	b.visit(whale)
	b.until("a live page", isLive)
	eval[bool](b, `(document.querySelector("[data-live-pause]").click(), true)`) // lists may grow and shrink while they are live
	b.until("the badge of the pause", `document.querySelector("#live-badge.warn")`)
	count := eval[int](b, "(window.order = "+controls+").length")
	if count < 20 {
		t.Fatalf("only %d controls", count)
	}
	for i := range count {
		b.press(kb.Tab)
		type at struct {
			Index   int
			What    string
			Visible bool
		}
		got := eval[at](b, `(() => {
			const e = document.activeElement, s = getComputedStyle(e);
			return { Index: order.indexOf(e), What: e.outerHTML.slice(0, 120),
				Visible: (s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1) || s.boxShadow !== "none" };
		})()`)
		if got.Index != i {
			t.Fatalf("tab %d leads to control %d: %s; expected %s", i+1, got.Index, got.What, eval[string](b, "order["+itoa(i)+"].outerHTML.slice(0, 120)"))
		}
		if !got.Visible {
			t.Errorf("the focus on %s cannot be seen", got.What)
		}
	}
	b.press(kb.Tab)
	if left := eval[bool](b, "document.activeElement === document.body || document.activeElement === order[0]"); !left {
		t.Error("the focus is caught on the page: " + eval[string](b, "document.activeElement.outerHTML.slice(0, 120)"))
	}

	// Shortcuts are off while somebody types.
	b.fill("#weight", "1/?")
	if got := eval[string](b, "document.activeElement.id + document.activeElement.value + document.getElementById('help').open"); got != "weight1/?false" {
		t.Errorf("typing into the weight gave %q", got)
	}
	eval[bool](b, "(document.activeElement.blur(), true)")
	b.strike("?")
	b.until("the help", "document.getElementById('help').open")
	b.picture("E10-help")
	b.press(kb.Escape)
	b.until("the help closed", "!document.getElementById('help').open")
	b.strike("/")
	b.until("the search box with the focus", "document.activeElement.id === 'search'")
	b.press("xinghe-yingye\r")
	b.until("the tenant that was searched", "location.pathname === '/tenants/xinghe-yingye'")
	// Everything of the main path works by keys alone.
	b.fill("#weight", "9")
	b.press("\r")
	b.until("the preview", "document.querySelector('table.diff')")
	if !eval[bool](b, "document.activeElement.id === 'reason'") {
		t.Error("the preview does not begin at the reason")
	}
}

// A switch of language or theme in the middle of an edit loses nothing that was typed.
func testLanguageSwitch(t *testing.T, p *product) {
	b := p.open(t, "en", "light").signIn("operator")
	b.visit(whale)
	b.fill("#weight", "31")
	b.follow("button[name=set_lang][value=zh]")
	state := func() string {
		return eval[string](b, "[document.documentElement.lang.slice(0, 2), document.documentElement.dataset.theme, location.pathname, document.querySelector('#weight').value].join(' ')")
	}
	if got, want := state(), "zh light "+whale+" 31"; got != want {
		t.Errorf("after the language: %q, want %q", got, want)
	}
	b.follow("button[name=set_theme]")
	if got, want := state(), "zh dark "+whale+" 31"; got != want {
		t.Errorf("after the theme: %q, want %q", got, want)
	}
	b.follow(preview)
	b.fill("#reason", "原因")
	b.follow("button[name=set_lang][value=en]")
	if got := eval[string](b, "document.documentElement.lang.slice(0, 2) + document.querySelector('#reason').value + document.querySelectorAll('table.diff tbody tr').length"); got != "en原因1" {
		t.Errorf("the preview after the language: %q", got)
	}
	b.visit("/tenants?q=studio&lane=PAID_SHARED")
	b.follow("button[name=set_lang][value=zh]")
	if got := eval[string](b, "location.pathname + location.search"); !strings.HasSuffix(got, "/tenants?q=studio&lane=PAID_SHARED") {
		t.Errorf("the address became %q", got)
	}
}
