package policy

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"fairlane/control"
)

// maxFaults bounds the list that one validation names; the rest is counted.
const maxFaults = 1_000

// faults collects broken rules.
type faults struct {
	list []control.FieldError
	more int64
}

type args = map[string]any

func (f *faults) add(path, key string, a args) {
	if len(f.list) >= maxFaults {
		f.more++
		return
	}
	f.list = append(f.list, control.FieldError{Field: path, Key: key, Args: a})
}

func (f *faults) all() []control.FieldError {
	if f.more == 0 {
		return f.list
	}
	return append(f.list, control.FieldError{Field: "", Key: KeyMoreErrors, Args: args{"count": f.more}})
}

func (f *faults) whole(path string, v, lo, hi int64, unit Unit) bool {
	if v < lo || v > hi {
		f.add(path, KeyRange, args{"value": v, "min": lo, "max": hi, "unit": string(unit)})
		return false
	}
	return true
}

func (f *faults) real(path string, v, lo, hi float64, unit Unit) bool {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		f.add(path, KeyNotANumber, args{"value": fmt.Sprint(v)})
		return false
	}
	if v < lo || v > hi {
		f.add(path, KeyRange, args{"value": v, "min": lo, "max": hi, "unit": string(unit)})
		return false
	}
	return true
}

func numbers[T any](f *faults, path string, list []number[T], of *T) {
	for _, n := range list {
		f.whole(path+"."+n.name, *n.at(of), n.min, n.max, n.unit)
	}
}

// code checks a name that programs use: letters, digits and a few marks, none of which has a meaning
// in a path, a URL, a log line or a query.
func (f *faults) code(path, v string, most int, marks string) bool {
	switch n := utf8.RuneCountInString(v); {
	case v == "":
		f.add(path, KeyRequired, nil)
		return false
	case n > most:
		f.add(path, KeyTooLong, args{"length": int64(n), "max": int64(most)})
		return false
	}
	for _, r := range v {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			continue
		}
		if strings.ContainsRune(marks, r) {
			continue
		}
		f.add(path, KeyCodeCharacters, args{"value": Printable(v, 80)})
		return false
	}
	return true
}

// text checks free text of at most most characters.
func (f *faults) text(path, v string, most int) bool {
	if n := utf8.RuneCountInString(v); n > most {
		f.add(path, KeyTooLong, args{"length": int64(n), "max": int64(most)})
		return false
	}
	if !utf8.ValidString(v) {
		f.add(path, KeyControlCharacters, nil)
		return false
	}
	for _, r := range v {
		if unicode.IsControl(r) {
			f.add(path, KeyControlCharacters, nil)
			return false
		}
	}
	return true
}

// Printable returns untrusted text so that it can be shown or logged: invalid bytes, control and
// direction characters replaced, at most most runes.
func Printable(v string, most int) string {
	out := make([]rune, 0, min(len(v), most))
	for _, r := range v {
		if len(out) == most {
			out = append(out, '…')
			break
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError {
			r = '\uFFFD'
		}
		out = append(out, r)
	}
	return string(out)
}

// CheckCode checks the code of an account by the rules of the document's codes.
func CheckCode(path, code string) []control.FieldError {
	f := &faults{}
	f.code(path, code, 64, codeMarks)
	return f.all()
}

// CheckName checks a name for people, in any script: not empty, at most most characters, none of which
// is a control character.
func CheckName(path, name string, most int) []control.FieldError {
	f := &faults{}
	if strings.TrimFunc(name, blankRune) == "" {
		f.add(path, KeyRequired, nil)
	} else {
		f.text(path, name, most)
	}
	return f.all()
}
