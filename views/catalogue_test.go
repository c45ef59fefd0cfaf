package views

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// families are key prefixes whose last part comes from data, beside those that are said by Word; whoever
// owns the data tests that they are whole.
var families = []string{"rule.", "field.", "unit.", "object.", "change.", "theme.", "audit.filter_", "why_change."}

func catalogues(t *testing.T) map[Lang]map[string]any {
	t.Helper()
	entries, err := catalogueFS.ReadDir("catalogue")
	if err != nil {
		t.Fatal(err)
	}
	all := map[Lang]map[string]any{EN: {}, ZH: {}}
	for _, e := range entries {
		messages, err := readCatalogue("catalogue/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range messages {
			if _, twice := all[langOf(e.Name())][key]; twice {
				t.Errorf("%s: key %s is in another file too", e.Name(), key)
			}
			all[langOf(e.Name())][key] = value
		}
	}
	return all
}

var argument = regexp.MustCompile(`\{\{\.(\w+)\}\}`)

func TestE11_BothLanguagesHaveEveryKeyWithTheSameArguments(t *testing.T) {
	t.Parallel()
	all := catalogues(t)
	for _, lang := range Langs {
		for key, value := range all[lang] {
			other, ok := all[map[Lang]Lang{EN: ZH, ZH: EN}[lang]][key]
			if !ok {
				t.Errorf("%s is said in %s only", key, lang)
				continue
			}
			if got, want := argumentsOf(value), argumentsOf(other); !slices.Equal(got, want) {
				t.Errorf("%s: arguments %v in %s, %v in the other", key, got, lang, want)
			}
			if plural, ok := value.(map[string]any); ok {
				if _, ok := plural["other"]; !ok {
					t.Errorf("%s: no plural form \"other\" in %s", key, lang)
				}
				if _, ok := plural["one"]; ok != (lang == EN) {
					t.Errorf("%s: form \"one\" belongs to English alone", key)
				}
			}
		}
	}
	if len(all[EN]) < 100 {
		t.Fatalf("only %d keys were found", len(all[EN]))
	}
}

func argumentsOf(value any) []string {
	var texts []string
	switch v := value.(type) {
	case string:
		texts = append(texts, v)
	case map[string]any:
		for _, form := range v {
			texts = append(texts, form.(string))
		}
	}
	seen := map[string]bool{}
	for _, text := range texts {
		for _, m := range argument.FindAllStringSubmatch(text, -1) {
			seen[m[1]] = true
		}
	}
	var names []string
	for name := range seen {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// said finds keys that are said where they stand; literal finds every string that could be a key.
var (
	said    = regexp.MustCompile(`\b(?:T|N|Say|Key)\((?:ctx, )?"([a-z_]+\.[a-z_.0-9]+)"`)
	literal = regexp.MustCompile(`"([a-z_]+\.[a-z_.0-9]+)"`)
	word    = regexp.MustCompile(`\b(?:Word|options|stateBadge)\([^"]*"([a-z_]+)"`)
)

func TestE11_NoKeyIsMissingAndNoneIsUnused(t *testing.T) {
	t.Parallel()
	keys := catalogues(t)[EN]
	used := map[string]bool{}
	families := slices.Clone(families)
	for _, root := range []string{".", "../web"} {
		err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_templ.go") ||
				!strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".templ") {
				return err
			}
			source, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			for _, m := range said.FindAllSubmatch(source, -1) {
				if key := string(m[1]); keys[key] == nil && !strings.HasSuffix(key, ".") && !strings.HasSuffix(key, "_") {
					t.Errorf("%s: the catalogue has no %s", name, key)
				}
			}
			for _, m := range word.FindAllSubmatch(source, -1) {
				families = append(families, string(m[1])+".")
			}
			for _, m := range literal.FindAllSubmatch(source, -1) {
				used[string(m[1])] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for key := range keys {
		inFamily := slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(key, f) })
		if !used[key] && !inFamily {
			t.Errorf("%s is never said", key)
		}
	}
}
