package audit_test

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlane/audit"
)

func TestTerms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"More weight, for ACME-7!", []string{"more", "weight", "for", "acme", "7"}},
		{"more more", []string{"more"}},
		{"客户促销", []string{"客", "户", "客户", "促", "户促", "销", "促销"}},
		{"给A公司 x2", []string{"给", "a", "公", "司", "公司", "x2"}},
		{"a\u0301b", []string{"a\u0301b"}},
	} {
		if got := audit.Terms(c.text); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %q", c.text, got)
		}
	}
}

// E14: a Chinese word inside a reason is found, whatever stands around it.
func TestE14_ATextIsFoundByItsParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		han := rapid.StringOfN(rapid.SampledFrom([]rune("客户促销审计员周末高峰")), 1, 4, -1)
		word := rapid.OneOf(han, rapid.StringMatching(`[a-z0-9]{1,9}`)).Draw(t, "word")
		text := rapid.StringMatching(`[a-z ]{0,9}`).Draw(t, "before") + " " + word + " " + han.Draw(t, "after")
		if r := []rune(word); r[0] > 127 {
			text = han.Draw(t, "glued") + word + han.Draw(t, "glued too")
		}
		terms := audit.Terms(text)
		for _, q := range audit.Terms(word) {
			if !slices.Contains(terms, q) {
				t.Fatalf("%q is not found in %q: %q", word, text, terms)
			}
		}
	})
}
