package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"fairlane/control"
)

// maxDepth bounds the nesting of values that are read only to be ignored.
const maxDepth = 32

// field reads one value of a body.
type field struct {
	text    *string
	number  **int64 // whole; nil stays nil where it is left out
	min     int64   // of a number; of a text the least number of characters
	max     int64
	ignored bool
}

// body returns the bytes of a JSON body, within the limit.
func (a *API) body(c *gin.Context) ([]byte, error) {
	r := c.Request
	if r.Header.Get("Content-Encoding") != "" {
		return nil, control.Errorf(codeUnsupported, "send the body without Content-Encoding")
	}
	most := a.cfg.MaxBody()
	if r.ContentLength > most {
		return nil, &http.MaxBytesError{Limit: most}
	}
	text, err := io.ReadAll(http.MaxBytesReader(c.Writer, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, err
	case err != nil:
		return nil, malformedf("", "the body broke off: it was announced longer than it came")
	}
	return text, nil
}

func jsonType(r *http.Request) error {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset, named := params["charset"]
	if err != nil || media != "application/json" || (named && !strings.EqualFold(charset, "utf-8")) {
		return control.Errorf(codeUnsupported, "send the body as application/json in UTF-8")
	}
	return nil
}

// decode reads one JSON object into the fields. Unknown and repeated keys and everything that is not
// JSON make it malformed (400); values of the wrong type or outside their range are collected (422).
func decode(text []byte, fields map[string]*field) error {
	if !utf8.Valid(text) {
		return malformedf("", "the body is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return notJSON(err, "the body must be one JSON object")
	}
	var bad []control.FieldError
	seen := make(map[string]bool, len(fields))
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return notJSON(err, "")
		}
		key, ok := t.(string)
		if !ok {
			return malformedf("", "the body is not JSON")
		}
		f, known := fields[key]
		switch {
		case !known:
			return malformedf(shown(key), "this field is not known")
		case seen[key]:
			return malformedf(key, "this field is there twice")
		}
		seen[key] = true
		if f.ignored {
			if err := skip(d); err != nil {
				return err
			}
			continue
		}
		value, err := d.Token()
		if err != nil {
			return notJSON(err, "")
		}
		if delim, ok := value.(json.Delim); ok { // a whole object or list where a plain value belongs
			if err := skipRest(d, delim); err != nil {
				return err
			}
		}
		if wrong := f.take(value); wrong != nil {
			wrong.Field = key
			bad = append(bad, *wrong)
		}
	}
	if _, err := d.Token(); err != nil {
		return notJSON(err, "")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return malformedf("", "something follows the JSON object")
	}
	return control.Invalid(bad)
}

// take stores the value or says what is wrong with it.
func (f *field) take(value json.Token) *control.FieldError {
	if f.text != nil {
		s, ok := value.(string)
		if !ok {
			return wrong("text", "text", "must be text")
		}
		n := int64(utf8.RuneCountInString(s))
		switch {
		case n < f.min:
			return wrong("required")
		case n > f.max:
			return wrong("length", "max", f.max, "got", n)
		}
		*f.text = s
		return nil
	}
	number, ok := value.(json.Number)
	if !ok {
		return wrong("text", "text", "must be a whole number")
	}
	n, ok := whole(number.String())
	switch {
	case !ok:
		return wrong("text", "text", fmt.Sprintf("must be a whole number between %d and %d", f.min, f.max))
	case n < f.min || n > f.max:
		return wrong("range", "min", f.min, "max", f.max, "got", n)
	}
	*f.number = &n
	return nil
}

func wrong(key string, args ...any) *control.FieldError {
	f := &control.FieldError{Key: key, Args: make(map[string]any, len(args)/2)}
	for i := 0; i+1 < len(args); i += 2 {
		f.Args[args[i].(string)] = args[i+1]
	}
	return f
}

// whole reads a JSON number that is a whole one, also as 5.0 or 5e0, up to 2^53.
func whole(text string) (int64, bool) {
	if len(text) > 32 {
		return 0, false
	}
	if n, err := json.Number(text).Int64(); err == nil {
		return n, true
	}
	x, err := json.Number(text).Float64()
	if err != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return 0, false
	}
	if mantissa, _, _ := strings.Cut(strings.ToLower(text), "e"); x == 0 && strings.ContainsAny(mantissa, "123456789") {
		return 0, false // too small for a float, but not nothing
	}
	return int64(x), true
}

// skip reads over one value.
func skip(d *json.Decoder) error {
	t, err := d.Token()
	if err != nil {
		return notJSON(err, "")
	}
	if delim, ok := t.(json.Delim); ok {
		return skipRest(d, delim)
	}
	return nil
}

// skipRest reads to the end of the object or list that has just begun.
func skipRest(d *json.Decoder, opened json.Delim) error {
	if opened != '{' && opened != '[' {
		return malformedf("", "the body is not JSON")
	}
	for depth := 1; depth > 0; {
		t, err := d.Token()
		if err != nil {
			return notJSON(err, "")
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > maxDepth {
				return malformedf("", "the body is nested deeper than %d", maxDepth)
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}

func notJSON(err error, otherwise string) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return malformedf("", "the body is not JSON: byte %d is wrong", syntax.Offset)
	case err != nil:
		return malformedf("", "the body is not whole JSON")
	case otherwise != "":
		return malformedf("", "%s", otherwise)
	}
	return malformedf("", "the body is not JSON")
}

// shown cuts a client's own word to what an answer should repeat.
func shown(word string) string {
	if utf8.RuneCountInString(word) > 64 {
		return string([]rune(word)[:64]) + "…"
	}
	return word
}
