package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const (
	stepTimeout = 40 * time.Second // of one step; the machine may be busy with other packages
	lookEvery   = 40 * time.Millisecond
)

// tab is one person's browser on one server.
type tab struct {
	t      testing.TB
	ctx    context.Context
	server *product
	lang   string

	mu       sync.Mutex
	faults   []string // what a page may never do
	expected []*regexp.Regexp
}

// watcher reports what the content security policy refused; it runs before any script of the page.
const watcher = `document.addEventListener("securitypolicyviolation", (e) =>
	reportViolation(e.violatedDirective + " " + e.blockedURI + " " + e.sourceFile + ":" + e.lineNumber + " " + e.sample));`

// open gives a tab without cookies but those of the language and, where it is not "", the theme.
func (p *product) open(t testing.TB, lang, theme string) *tab {
	t.Helper()
	b := &tab{t: t, server: p, lang: lang}
	ctx, cancel := chromedp.NewContext(startedChromium(t), chromedp.WithNewBrowserContext(), chromedp.WithListener(b.hear))
	b.ctx = ctx
	t.Cleanup(func() {
		b.mu.Lock()
		faults := b.faults
		b.mu.Unlock()
		if t.Failed() {
			b.picture("failed-" + strings.ReplaceAll(t.Name(), "/", "-"))
		}
		cancel()
		for _, f := range faults {
			t.Error(f)
		}
	})
	b.do(b.prepare, chromedp.EmulateViewport(1440, 900))
	b.cookie("fl_lang", lang)
	if theme != "" {
		b.cookie("fl_theme", theme)
	}
	return b
}

func (b *tab) prepare(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
	var none chromedp.Void
	if _, err := cdp.Call(ctx, target, runtime.AddBinding, runtime.AddBindingParams{Name: "reportViolation"}); err != nil {
		return none, err
	}
	if _, err := cdp.Call(ctx, target, cdplog.Enable, cdp.Empty{}); err != nil {
		return none, err
	}
	// A tab in the background would get neither frames nor the focus.
	if _, err := cdp.Call(ctx, target, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		return none, err
	}
	_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watcher})
	return none, err
}

// hear runs in the loop that reads the tab's messages: it may not wait.
func (b *tab) hear(event any) {
	text := ""
	switch e := event.(type) {
	case *runtime.EventBindingCalled:
		if e.Name == "reportViolation" {
			text = "content security policy: " + e.Payload
		}
	case *runtime.EventExceptionThrown:
		text = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			var parts []string
			for _, a := range e.Args {
				parts = append(parts, a.Description+string(a.Value))
			}
			text = "console: " + strings.Join(parts, " ")
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError {
			text = "log: " + e.Entry.Text + " " + e.Entry.URL
		}
	}
	if text == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, allowed := range b.expected {
		if allowed.MatchString(text) {
			return
		}
	}
	b.faults = append(b.faults, text)
}

// expect says that the pages will report this and are right to, such as a refused form.
func (b *tab) expect(pattern string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, regexp.MustCompile(pattern))
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	for i, step := range steps {
		if err := b.try(step); err != nil {
			b.t.Fatalf("step %d: %v", i+1, err)
		}
	}
}

func (b *tab) try(step chromedp.Action[chromedp.Void]) error {
	// The tab's own first call must not have a deadline, which would end the tab.
	if chromedp.FromContext(b.ctx).Target == nil {
		if err := chromedp.Do(b.ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	return chromedp.Do(ctx, step)
}

// eval returns what the expression is in the page.
func eval[T any](b *tab, js string) T {
	b.t.Helper()
	value, err := tryEval[T](b, js)
	if err != nil {
		b.t.Fatalf("%s: %v", js, err)
	}
	return value
}

func tryEval[T any](b *tab, js string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
}

// until looks until the expression is true, and says what was awaited when it never is.
func (b *tab) until(what, js string) {
	b.t.Helper()
	b.within(stepTimeout, what, js)
}

func (b *tab) within(most time.Duration, what, js string) time.Duration {
	b.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(b.ctx, most)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		// A page that is being replaced has nothing to evaluate in.
		yes, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+js+")"))
		if err == nil && yes {
			return time.Since(began)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.t.Fatalf("not within %s: %s (last error: %v)\n%s", most, what, err, b.text())
		}
	}
}

// text is what a reader sees of the page, for messages of failures.
func (b *tab) text() string {
	text, err := tryEval[string](b, `location.pathname + "\n" + (document.body ? document.body.innerText.slice(0, 3000) : "")`)
	if err != nil {
		return err.Error()
	}
	return text
}

func (b *tab) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.server.url + path))
}

// follow clicks and waits for the page that comes of it.
func (b *tab) follow(selector string) {
	b.t.Helper()
	click := chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible)
	b.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.WaitEvent(page.LoadEventFired, nil, click)(ctx, t)
		return chromedp.Void{}, err
	})
}

func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// fill replaces what stands in a field, by keys as a person does.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	eval[bool](b, "(() => { const f = document.querySelector("+quoted(selector)+"); f.focus(); f.select && f.select(); return true; })()")
	b.do(chromedp.KeyEvent(text))
}

// press sends keys to whatever has the focus.
func (b *tab) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// strike presses a key as a keyboard does: a page that takes the key for itself gets no character of it.
func (b *tab) strike(key string) {
	b.t.Helper()
	b.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		down := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Text: key}
		if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, down); err != nil {
			return chromedp.Void{}, err
		}
		_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: key})
		return chromedp.Void{}, err
	})
}

func (b *tab) cookie(name, value string) {
	b.t.Helper()
	b.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, network.SetCookie, network.SetCookieParams{Name: name, Value: value, URL: b.server.url})
		return chromedp.Void{}, err
	})
}

// signIn goes the way of the form. Every account of the demo is named after its role.
func (b *tab) signIn(role string) *tab {
	b.t.Helper()
	b.visit("/sign-in")
	b.fill("#login", role)
	b.fill("#password", password)
	b.follow("form.sign-in button[type=submit]")
	if path := eval[string](b, "location.pathname"); path == "/sign-in" {
		b.t.Fatalf("%s is not let in:\n%s", role, b.text())
	}
	return b
}

// has fails when the page's text lacks one of the parts.
func (b *tab) has(parts ...string) {
	b.t.Helper()
	text := eval[string](b, "document.body.innerText")
	for _, part := range parts {
		if !strings.Contains(text, part) {
			b.t.Errorf("%s lacks %q:\n%s", eval[string](b, "location.pathname"), part, text)
		}
	}
}

// picture keeps what the tab shows as a file.
func (b *tab) picture(name string) {
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = keep(name+".png", png)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		b.t.Logf("no picture %s: %v", name, err)
	}
}

func keep(name string, content []byte) error {
	dir := os.Getenv("FAIRLANE_TEST_ARTIFACTS")
	if dir == "" {
		dir = filepath.Join("..", "..", ".build", "e2e")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), content, 0o600)
}

// quoted is a string as JavaScript writes it.
func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(fmt.Sprint("a string that is no JSON: ", err))
	}
	return string(out)
}
