package facts_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"fairlane/store/facts"
)

func FuzzStorableJSON(f *testing.F) {
	for _, seed := range []string{"", " ", "null", `{"a":1}`, `{"a":"\u0000"}`, `1e999999`, `-0`, `[[[[]]]]`, `{"a":1}{"b":2}`, `"\ud800"`, `{"a`, "\xff", strings.Repeat("[", 100) + strings.Repeat("]", 100)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		out := facts.StorableJSON(raw)
		if out == "" {
			if strings.TrimSpace(string(raw)) != "" {
				t.Errorf("%q was dropped", raw)
			}
			return
		}
		var v any
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			t.Fatalf("%q became %q: %v", raw, out, err)
		}
		if strings.Contains(strings.ReplaceAll(out, `\\`, ""), `\u0000`) || strings.Contains(out, "\x00") || !utf8.ValidString(out) {
			t.Errorf("%q became %q, which jsonb refuses", raw, out)
		}
		if again := facts.StorableJSON([]byte(out)); again != out {
			t.Errorf("%q became %q, and then %q", raw, out, again)
		}
	})
}

func FuzzStorableText(f *testing.F) {
	for _, seed := range []string{"", "plain", "\x00", "\xff\xfe", "中文中文中文", strings.Repeat("é", 20)} {
		f.Add(seed, 10)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		if limit < 0 || limit > 1<<20 {
			return
		}
		out := facts.StorableText(s, limit)
		if len(out) > limit || strings.Contains(out, "\x00") || !utf8.ValidString(out) {
			t.Errorf("%q cut to %d became %q", s, limit, out)
		}
		if utf8.ValidString(s) && len(s) <= limit && !strings.Contains(s, "\x00") && out != s {
			t.Errorf("%q became %q without need", s, out)
		}
	})
}
