package audit

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"fairlane/control"
)

// Filter says which events are wanted; empty fields want all. It is written into addresses, so that a
// search can be kept and sent.
type Filter struct {
	Actor      string // name, exactly
	Action     Action
	ObjectKind string
	ObjectID   string // exactly; events that are about it or touched it
	Field      string // name of a setting that was changed, such as "weight"
	Result     Result
	RequestID  string
	Text       string    // words that the reason has, all of them
	From, To   time.Time // from From up to but without To; zero: open
	Version    int64     // policy version; 0: any
}

// Row is an event as it is listed and shown.
type Row struct {
	Event
	Record string   // its text, byte for byte
	Hash   [32]byte // of the chain up to it
}

const maxFilterText = 200

// ParseFilter reads a filter from the values of an address or form: actor, action, object_kind,
// object_id, field, result, request_id, text, version, from, to. Times are RFC 3339 with an offset, or a
// day (2006-01-02) or day and time (2006-01-02T15:04) of the place loc; a day as the end means that the
// whole day is wanted. Every wrong field is named.
func ParseFilter(values url.Values, loc *time.Location) (Filter, []control.FieldError) {
	var wrong []control.FieldError
	text := func(name string) string {
		v := strings.TrimSpace(values.Get(name))
		switch {
		case utf8.RuneCountInString(v) > maxFilterText:
			wrong = append(wrong, control.FieldError{Field: name, Key: "too_long", Args: map[string]any{"length": int64(utf8.RuneCountInString(v)), "max": int64(maxFilterText)}})
			return ""
		case !utf8.ValidString(v) || strings.IndexFunc(v, unicode.IsControl) >= 0:
			wrong = append(wrong, control.FieldError{Field: name, Key: "control_characters"})
			return ""
		}
		return v
	}
	f := Filter{
		Actor: text("actor"), Action: Action(text("action")), ObjectKind: text("object_kind"), ObjectID: text("object_id"),
		Field: text("field"), Result: Result(text("result")), RequestID: text("request_id"), Text: text("text"),
	}
	if f.Action != "" && !actionForm.MatchString(string(f.Action)) {
		wrong = append(wrong, control.FieldError{Field: "action", Key: "unknown", Args: map[string]any{"value": string(f.Action)}})
	}
	if f.ObjectKind != "" && !slices.Contains(Kinds, f.ObjectKind) {
		wrong = append(wrong, control.FieldError{Field: "object_kind", Key: "unknown", Args: map[string]any{"value": f.ObjectKind}})
	}
	if f.Result != "" && !slices.Contains(Results, f.Result) {
		wrong = append(wrong, control.FieldError{Field: "result", Key: "unknown", Args: map[string]any{"value": string(f.Result)}})
	}
	if v := text("version"); v != "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 1 {
			wrong = append(wrong, control.FieldError{Field: "version", Key: "not_a_number", Args: map[string]any{"value": v}})
		}
		f.Version = n
	}
	moment := func(name string, end bool) time.Time {
		v := text(name)
		if v == "" {
			return time.Time{}
		}
		at, ok := parseTime(v, loc, end)
		if !ok {
			wrong = append(wrong, control.FieldError{Field: name, Key: "not_a_date", Args: map[string]any{"value": v}})
		}
		return at
	}
	f.From, f.To = moment("from", false), moment("to", true)
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		wrong = append(wrong, control.FieldError{Field: "to", Key: "before_from"})
	}
	return f, wrong
}

// FilterArgs names the arguments of ParseFilter's message keys.
var FilterArgs = map[string][]string{
	"too_long": {"length", "max"}, "control_characters": {}, "unknown": {"value"}, "not_a_number": {"value"},
	"not_a_date": {"value"}, "before_from": {},
}

func parseTime(v string, loc *time.Location, end bool) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339Nano, v)
	if err != nil {
		// "+" of an offset that was not escaped in an address arrives as a space.
		at, err = time.Parse(time.RFC3339Nano, strings.Replace(v, " ", "+", 1))
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if err != nil {
			at, err = time.ParseInLocation(layout, v, loc)
		}
	}
	if err != nil {
		if at, err = time.ParseInLocation(time.DateOnly, v, loc); err == nil && end {
			at = at.AddDate(0, 0, 1) // the calendar's day: 23 or 25 hours where clocks are changed
		}
	}
	// Years that the database can keep.
	return at, err == nil && at.Year() >= 1 && at.Year() <= 9998
}

// Values writes the filter as ParseFilter reads it.
func (f Filter) Values() url.Values {
	v := url.Values{}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	set("actor", f.Actor)
	set("action", string(f.Action))
	set("object_kind", f.ObjectKind)
	set("object_id", f.ObjectID)
	set("field", f.Field)
	set("result", string(f.Result))
	set("request_id", f.RequestID)
	set("text", f.Text)
	if f.Version > 0 {
		set("version", strconv.FormatInt(f.Version, 10))
	}
	if !f.From.IsZero() {
		set("from", f.From.Format(time.RFC3339Nano))
	}
	if !f.To.IsZero() {
		set("to", f.To.Format(time.RFC3339Nano))
	}
	return v
}

// Places returns the terms one of which an event's index must hold for the filter's object; none when
// any object will do, or a kind alone was asked for.
func (f Filter) Places() []string {
	if f.ObjectID == "" {
		return nil
	}
	if f.ObjectKind != "" {
		return []string{objectTerm(f.ObjectKind, f.ObjectID)}
	}
	terms := make([]string, len(Kinds))
	for i, k := range Kinds {
		terms[i] = objectTerm(k, f.ObjectID)
	}
	return terms
}

// Terms returns the terms all of which an event's index must hold.
func (f Filter) Terms() []string {
	terms := Terms(f.Text)
	if f.Field != "" {
		terms = append(terms, fieldTerm(f.Field))
	}
	return terms
}
