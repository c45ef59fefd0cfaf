package audit

import (
	"strings"
	"unicode"
)

const (
	maxTerms = 4_000
	maxWord  = 64
)

// Terms returns what a text is found by: its words in lower case, and for Han (and kana and hangul)
// every character and every two that follow each other, since such text has no spaces. A question finds
// a text when all terms of the question are among those of the text.
func Terms(text string) []string {
	seen := map[string]bool{}
	var out []string
	add := func(rs []rune) {
		if t := string(rs); t != "" && !seen[t] && len(out) < maxTerms {
			seen[t] = true
			out = append(out, t)
		}
	}
	var word []rune
	var last rune // the Han character just before, 0: none
	flush := func() {
		if len(word) > maxWord {
			word = word[:maxWord]
		}
		add(word)
		word = word[:0]
	}
	for _, r := range strings.ToLower(text) {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			flush()
			add([]rune{r})
			if last != 0 {
				add([]rune{last, r})
			}
			last = r
			continue
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r):
			word = append(word, r)
		default:
			flush()
		}
		last = 0
	}
	flush()
	return out
}

// Index returns everything that the event is found by beside its own columns: the terms of its reason,
// and every object and field that it is about or touched.
func (e *Event) Index() []string { return append(Terms(e.Reason), e.places()...) }

func (e *Event) places() []string {
	terms := []string{objectTerm(e.ObjectKind, e.ObjectID)}
	seen := map[string]bool{terms[0]: true}
	add := func(t string) {
		if !seen[t] {
			seen[t] = true
			terms = append(terms, t)
		}
	}
	for _, t := range e.Touched {
		add(objectTerm(t.Kind, t.ID))
		if t.Field != "" {
			add(fieldTerm(t.Field))
		}
	}
	return terms
}

// Words hold letters and digits only, so that the colon keeps these apart from them.
func objectTerm(kind, id string) string { return "o:" + kind + "/" + id }

func fieldTerm(field string) string { return "f:" + field }
