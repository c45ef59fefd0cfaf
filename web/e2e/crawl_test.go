package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fairlane/web"
)

// pages are the addresses of one page of every kind. It wants a platform in which something has run.
func (p *product) pages() []string {
	pool := row[string](p, `SELECT max(resource_key) FROM resource_pool WHERE kind = 'PROVIDER'`)
	list := []string{
		"/", "/lanes", "/lanes/PAID_SHARED", "/pools", "/pools/" + url.PathEscape(pool), "/tenants", whale,
		"/tasks", "/switches", "/scheduling", "/versions", "/versions/2", "/versions/compare?from=1&to=2",
		"/audit", "/audit/" + strconv.FormatInt(row[int64](p, `SELECT max(sequence) FROM audit_event WHERE action = 'policy.publish'`), 10),
		"/health", "/wall",
	}
	for _, state := range []string{"SUCCEEDED", "QUEUED"} { // what was, and why it waits
		if task := row[*string](p, `SELECT max(task_id::text) FROM generation_task WHERE state = $1`, state); task != nil {
			list = append(list, "/tasks/"+*task)
		}
	}
	return list
}

// Every route that shows a page to somebody who is signed in is crawled.
func testPagesAreAll(t *testing.T, p *product) {
	crawled := p.pages()
	for _, r := range web.Routes {
		shows := r.Method == http.MethodGet && (r.Auth == web.Session || r.Auth == web.Display)
		if !shows || slices.Contains([]string{"shell.banners", "search.go", "live.socket", "lane.past", "tenant.past", "pool.now", "task.now", "health.starve"}, r.Name) {
			continue
		}
		shape := regexp.MustCompile("^" + regexp.MustCompile(`:\w+`).ReplaceAllString(r.Path, `[^/?]+`) + `(\?|$)`)
		if !slices.ContainsFunc(crawled, shape.MatchString) {
			t.Errorf("no page of %s is among those that the tests crawl", r.Path)
		}
	}
}

// name makes a file name of an address.
func nameOf(path string) string {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "" {
		return "overview"
	}
	if len(parts) > 1 && parts[1] != "compare" {
		return parts[0] + "-one"
	}
	return strings.Join(parts, "-")
}

// texts are what a page says: its text nodes and spoken labels, but for what somebody else wrote.
const texts = `(() => {
	const skip = "script, style, template, pre, kbd, .mono, .quote, [lang]:not(html), .brand";
	const out = [];
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const text = walk.currentNode.nodeValue.trim().replace(/\s+/g, " ");
		if (text && !walk.currentNode.parentElement.closest(skip)) out.push(text);
	}
	for (const name of ["aria-label", "title", "placeholder", "alt"]) {
		for (const el of document.body.querySelectorAll("[" + name + "]")) if (!el.closest(skip)) out.push(el.getAttribute(name));
	}
	out.push(document.title.replace(/ · Fairlane$/, ""));
	return out;
})()`

// testPages looks at every page in one language and theme: its words, its policy, its weight and what it
// looks like; closely, also at its accessibility and its layout on narrow screens.
func testPages(t *testing.T, p *product, lang, theme string, closely bool) {
	b := p.open(t, lang, theme)
	b.expect("status of 404")
	foreign := foreignWords(t, lang)
	own := p.names()
	for _, path := range append([]string{"/sign-in"}, append(p.pages(), "/nowhere")...) {
		if path == "/" {
			b.signIn("operator")
		}
		b.do(viewport(1440, 900))
		if path == "/wall" {
			b.do(viewport(1920, 1080))
		}
		b.visit(path)
		b.settled()
		for _, text := range eval[[]string](b, texts) {
			if strings.ContainsAny(text, "⟦⟧") {
				t.Errorf("%s has no text for %s", path, text)
			}
			if other, ok := foreign[text]; ok && !own[text] {
				t.Errorf("%s says %q, which is not %s; it should say %q", path, text, lang, other)
			}
			if lang == "zh" && english(text, own) && !own[text] {
				t.Errorf("%s says %q in English", path, text)
			}
			if lang == "en" && han.MatchString(text) && !own[text] {
				t.Errorf("%s says %q in Chinese", path, text)
			}
		}
		if inline := eval[int](b, `[...document.querySelectorAll("*")].filter((e) => [...e.attributes].some((a) => a.name.startsWith("on") || (a.name === "style" && e.closest("body > *:not(.wall)")))).length`); inline > 0 {
			t.Errorf("%s has %d elements with inline handlers or styles", path, inline)
		}
		if kb := eval[float64](b, `[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].reduce((n, e) => n + e.encodedBodySize, 0) / 1024`); kb > 150 {
			t.Errorf("%s loads %.0f kB, more than 150", path, kb)
		}
		b.picture(nameOf(path) + "-" + lang + "-" + theme)
		if !closely {
			continue
		}
		b.accessible()
		if path != "/wall" {
			b.fits(path)
			b.picture(nameOf(path) + "-" + lang + "-" + theme + "-narrow")
		}
	}
}

// settled waits until live pages have had their first frame.
func (b *tab) settled() {
	b.t.Helper()
	b.until("a live page that is live", `!document.querySelector("[data-live]") || [...document.querySelectorAll("[data-live-badge], #live-badge")].some((e) => e.classList.contains("good"))`)
}

// fits fails when the page is wider than the screen.
func (b *tab) fits(path string) {
	b.t.Helper()
	for _, size := range [][2]int64{{1440, 900}, {768, 1024}, {390, 844}} {
		b.do(viewport(size[0], size[1]))
		if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > size[0] {
			b.t.Errorf("%s is %d wide on a screen of %d: %s", path, wide, size[0], eval[string](b, `[...document.querySelectorAll("body *")]
				.filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, pre, .visually-hidden")).slice(0, 3).map((e) => e.tagName + "." + e.className).join(", ")`))
		}
	}
}

// names are what people, tenants, settings and parts of the product are called: said as they are in every
// language, whole or word by word.
func (p *product) names() map[string]bool {
	out := map[string]bool{}
	for _, name := range row[[]string](p, `SELECT array_agg(n) FROM (SELECT name AS n FROM tenant UNION SELECT code FROM tenant UNION SELECT plan_code FROM tenant
		UNION SELECT login FROM operator UNION SELECT name FROM operator UNION SELECT reason FROM policy_version UNION SELECT reason FROM audit_event
		UNION SELECT DISTINCT actor_name FROM audit_event UNION SELECT 'token:' || name FROM api_token UNION SELECT name || ' (' || code || ')' FROM tenant
		UNION SELECT jsonb_path_query(document::jsonb, 'lax $.**') #>> '{}' FROM policy_version WHERE version = 1) AS names WHERE n ~ '[^A-Z0-9_ ]'`) {
		out[name] = true
	}
	for _, part := range []string{"postgresql", "redis", "dispatch", "queue", "reconcile", "counters", "deadlines", "sessions", "estimates",
		"history", "starvation", "system", "fairlane"} {
		out[part] = true
	}
	return out
}

// foreignWords are the texts of the other language's catalogue that this one says otherwise.
func foreignWords(t *testing.T, lang string) map[string]string {
	t.Helper()
	here, there := catalogue(t, lang), catalogue(t, map[string]string{"en": "zh", "zh": "en"}[lang])
	out := map[string]string{}
	for key, text := range there {
		out[text] = here[key]
	}
	for _, text := range here {
		delete(out, text)
	}
	return out
}

func catalogue(t *testing.T, lang string) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../views/catalogue/*." + lang + ".json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no catalogue of %s: %v", lang, err)
	}
	out := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var entries map[string]any
		if err := json.Unmarshal(data, &entries); err != nil {
			t.Fatal(err)
		}
		for key, value := range entries {
			if text, ok := value.(string); ok && !strings.Contains(text, "{") {
				out[key] = text
			}
		}
	}
	return out
}

var (
	han       = regexp.MustCompile(`\p{Han}`)
	wordLatin = regexp.MustCompile(`^[a-z]{3,}$`)
)

// english tells whether a text has no Chinese and a word that is neither a name nor a code.
func english(text string, names map[string]bool) bool {
	if han.MatchString(text) {
		return false
	}
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" ,()·", r) }) {
		if wordLatin.MatchString(strings.ToLower(w)) && strings.ToUpper(w) != w && !names[w] {
			return true
		}
	}
	return false
}
