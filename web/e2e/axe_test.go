package e2e_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const axeFolder = "testdata/axe"

var axeSource = sync.OnceValues(func() (string, error) {
	source, err := os.ReadFile(filepath.Join(axeFolder, "axe.min.js"))
	return string(source), err
})

// breach is a rule that axe finds broken.
type breach struct {
	Rule, Help, Where string
}

// accessible holds the page to WCAG 2.1 A and AA as far as axe can tell. It goes in by Evaluate, since the
// page's policy lets no foreign script in.
func (b *tab) accessible() {
	b.t.Helper()
	source, err := axeSource()
	if err != nil {
		b.t.Fatal(err)
	}
	if !eval[bool](b, "typeof window.axe === 'object'") {
		eval[bool](b, source+"\n;true")
	}
	found := eval[[]breach](b, `axe.run(document, { resultTypes: ["violations"], preload: false, iframes: false,
		runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }).then((r) => r.violations.flatMap((v) =>
		v.nodes.slice(0, 4).map((n) => ({ Rule: v.id, Help: v.help, Where: n.target.join(" ") + "  " + n.html.slice(0, 160) + "  " + (n.any[0] || n.all[0] || n.none[0] || {}).message }))))`)
	for _, f := range found {
		b.t.Errorf("axe on %s (%s): %s: %s\n\t%s", eval[string](b, "location.pathname"), eval[string](b, "document.documentElement.dataset.theme || 'system'"), f.Rule, f.Help, f.Where)
	}
}

func TestAxeIsWhatItsSumsSay(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile(filepath.Join(axeFolder, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"SHA256SUMS": true}
	for lines := bufio.NewScanner(bytes.NewReader(list)); lines.Scan(); {
		sum, name, _ := strings.Cut(lines.Text(), "  ")
		data, err := os.ReadFile(filepath.Join(axeFolder, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s has another sum", name)
		}
		known[name] = true
	}
	files, err := os.ReadDir(axeFolder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f.Name()] {
			t.Errorf("%s has no sum", f.Name())
		}
	}
}
