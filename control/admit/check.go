package admit

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"fairlane/control"
	"fairlane/policy"
)

// check finds every broken field of the request at once, and fills in the model's defaults.
func (v *view) check(r *Request) (*policy.Model, error) {
	var bad []control.FieldError
	add := func(field, key string, args map[string]any) {
		bad = append(bad, control.FieldError{Field: field, Key: key, Args: args})
	}
	text := func(field, s string, least, most int, lines bool) {
		switch n := utf8.RuneCountInString(s); {
		case !utf8.ValidString(s):
			add(field, "chars", nil)
		case n < least && n == 0:
			add(field, "required", nil)
		case n > most:
			add(field, "length", map[string]any{"max": most, "got": n})
		case !Printable(s, lines):
			add(field, "chars", nil)
		}
	}
	text("X-Fairlane-User", r.User, 1, MaxUserName, false)
	text("project", r.Project, 0, MaxProject, false)
	text("prompt", r.Prompt, 1, MaxPrompt, true)
	text("negative_prompt", r.NegativePrompt, 0, MaxPrompt, true)
	if r.DeadlineSeconds < 0 || r.DeadlineSeconds > MaxDeadlineSeconds {
		add("deadline_seconds", "range", map[string]any{"min": 1, "max": MaxDeadlineSeconds, "got": r.DeadlineSeconds})
	}
	if r.Seed != nil && (*r.Seed < 0 || *r.Seed > MaxSeed) {
		add("seed", "range", map[string]any{"min": 0, "max": MaxSeed, "got": *r.Seed})
	}
	m, ok := v.doc.Model(r.Model)
	switch {
	case r.Model == "":
		add("model", "required", nil)
	case !ok:
		add("model", "unknown", nil)
	default:
		if r.Resolution == "" && len(m.Resolutions) > 0 {
			r.Resolution = m.Resolutions[0]
		} else if r.Resolution != "" && !slices.Contains(m.Resolutions, r.Resolution) {
			add("resolution", "one_of", map[string]any{"allowed": m.Resolutions})
		}
		if r.Seconds == 0 && len(m.Seconds) > 0 {
			r.Seconds = m.Seconds[0]
		} else if r.Seconds != 0 && !slices.Contains(m.Seconds, r.Seconds) {
			add("duration_seconds", "one_of", map[string]any{"allowed": m.Seconds, "got": r.Seconds})
		}
	}
	return m, control.Invalid(bad)
}

func checkKey(key string) error {
	switch n := utf8.RuneCountInString(key); {
	case n == 0:
		return control.Invalid([]control.FieldError{{Field: "Idempotency-Key", Key: "required"}})
	case n > MaxKey:
		return control.Invalid([]control.FieldError{{Field: "Idempotency-Key", Key: "length", Args: map[string]any{"max": MaxKey, "got": n}}})
	case !Printable(key, false):
		return control.Invalid([]control.FieldError{{Field: "Idempotency-Key", Key: "chars"}})
	}
	return nil
}

// Printable tells whether s is text without control characters; lines allows tab and line ends.
// Directional overrides are refused as well: they make a name read as another. So is the replacement
// character: it is what half a surrogate pair has become.
func Printable(s string, lines bool) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, c := range s {
		if lines && (c == '\n' || c == '\r' || c == '\t') {
			continue
		}
		if unicode.IsControl(c) || c == utf8.RuneError || c == '\u2028' || c == '\u2029' || (c >= '\u202a' && c <= '\u202e') || (c >= '\u2066' && c <= '\u2069') {
			return false
		}
	}
	return true
}
