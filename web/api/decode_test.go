package api

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"fairlane/control"
	"fairlane/control/admit"
)

func FuzzDecodeTask(f *testing.F) {
	for _, seed := range []string{
		`{"model": "clip", "prompt": "a fox"}`, `{"model": "clip", "prompt": "x", "seed": 1e3, "duration_seconds": 5, "project": "p", "cost": [{"a": [1]}]}`,
		`{}`, `[]`, `{"model": {"model": {}}}`, `{"seed": 1e999999}`, `{"a`, "\xff", `{"prompt": "\ud800"}`, `{"model": "a"}{`, `{"cost": ` + strings.Repeat("[", 40),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var r admit.Request
		err := decodeTask(text, &r)
		if err != nil {
			if control.CodeOf(err) != control.CodeInvalid {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if !utf8.Valid(text) {
			t.Fatalf("took invalid UTF-8: %q", text)
		}
		if utf8.RuneCountInString(r.Model) > 64 || utf8.RuneCountInString(r.Prompt) > admit.MaxPrompt || utf8.RuneCountInString(r.Project) > admit.MaxProject {
			t.Fatalf("over-long: %+v", r)
		}
		if r.Seconds < 0 || r.Seconds > 3600 || r.DeadlineSeconds < 0 || r.DeadlineSeconds > admit.MaxDeadlineSeconds || (r.Seed != nil && (*r.Seed < 0 || *r.Seed > admit.MaxSeed)) {
			t.Fatalf("out of range: %+v", r)
		}
	})
}

func FuzzIdempotencyKey(f *testing.F) {
	for _, seed := range []string{`"a"`, "a", `"\""`, `"\\"`, `"`, "", `a"b`, "\x00", strings.Repeat("k", 300)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		key, err := idempotencyKey(http.Header{headerKey: {value}})
		if err != nil {
			var m malformed
			if !errors.As(err, &m) {
				t.Fatalf("%q: %v", value, err)
			}
			return
		}
		if len(key) < 1 || len(key) > admit.MaxKey || !admit.Printable(key, false) {
			t.Fatalf("%q became %q", value, key)
		}
		if quoted, err := idempotencyKey(http.Header{headerKey: {`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`}}); err != nil || quoted != key {
			t.Fatalf("%q quoted is %q: %v", key, quoted, err)
		}
	})
}

func TestWholeNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"5": 5, "-0": 0, "5.0": 5, "5e0": 5, "1e2": 100, "0.5e1": 5, "0e-400": 0, "0.0": 0, "9007199254740991": 1<<53 - 1, "-7": -7} {
		if got, ok := whole(text); !ok || got != want {
			t.Errorf("%s = %d %v", text, got, ok)
		}
	}
	for _, text := range []string{"5.5", "1e-1", "1e-400", "-1E-999", "1e400", "9223372036854775808", "1e17", strings.Repeat("1", 40)} {
		if got, ok := whole(text); ok {
			t.Errorf("%s was taken as %d", text, got)
		}
	}
}
