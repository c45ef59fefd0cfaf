package audit

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"fairlane/control"
)

// Touch is an object, and a field of it, that an event changed beside the object that it is about.
type Touch struct {
	Kind  string `json:"kind"`
	ID    string `json:"id"`
	Field string `json:"field"`
}

// Event is one thing that somebody did or tried. Old, New and Params are anything that JSON can say;
// what looks like a secret in them is replaced before the event becomes a record.
type Event struct {
	Sequence      int64     // 1, 2, 3 … without a gap; given by the store
	At            time.Time // database clock, never earlier than the event before; given by the store
	Actor         control.Actor
	Action        Action
	Params        map[string]any
	ObjectKind    string
	ObjectID      string
	Touched       []Touch // at most 5,000
	PolicyVersion int64   // 0: none
	Old, New      any
	Reason        string
	Result        Result
	Approvers     []string
}

const (
	maxTouched = 5_000
	maxName    = 256   // characters of names, addresses and identifiers
	maxReason  = 4_000 // characters; publishing allows half of it
)

var actionForm = regexp.MustCompile(`^[a-z][a-z_]*(\.[a-z][a-z_]*)+$`)

// Check says what keeps the event from being recorded.
func (e *Event) Check() error {
	switch {
	case !actionForm.MatchString(string(e.Action)):
		return control.Errorf(control.CodeInvalid, "audit action %q is not of the form noun.verb", e.Action)
	case e.Actor.Name == "":
		return control.Errorf(control.CodeInvalid, "audit event %s without an actor", e.Action)
	case e.ObjectKind == "" || e.ObjectID == "":
		return control.Errorf(control.CodeInvalid, "audit event %s without an object", e.Action)
	case len(e.Touched) > maxTouched:
		return control.Errorf(control.CodeInvalid, "audit event %s touches %d fields, at most %d are kept", e.Action, len(e.Touched), maxTouched)
	}
	if !slices.Contains(Results, e.Result) {
		return control.Errorf(control.CodeInvalid, "audit event %s with result %q", e.Action, e.Result)
	}
	return nil
}

// clean returns the event with every text fit to be kept: valid, without control characters (line ends
// and tabs of a reason apart), bounded, without secrets.
func (e Event) clean() Event {
	e.Actor.Name = tidy(e.Actor.Name, maxName, "")
	e.Actor.SourceAddress = tidy(e.Actor.SourceAddress, maxName, "")
	e.Actor.RequestID = tidy(e.Actor.RequestID, maxName, "")
	e.ObjectKind = tidy(e.ObjectKind, maxName, "")
	e.ObjectID = tidy(e.ObjectID, maxName, "")
	e.Reason = tidy(e.Reason, maxReason, "\n\t")
	touched := make([]Touch, len(e.Touched))
	for i, t := range e.Touched {
		touched[i] = Touch{tidy(t.Kind, maxName, ""), tidy(t.ID, maxName, ""), tidy(t.Field, maxName, "")}
	}
	e.Touched = touched
	approvers := make([]string, len(e.Approvers))
	for i, a := range e.Approvers {
		approvers[i] = tidy(a, maxName, "")
	}
	e.Approvers = approvers
	// Microseconds are what the database keeps.
	e.At = e.At.UTC().Truncate(time.Microsecond)
	return e
}

func tidy(s string, most int, keep string) string {
	out := make([]rune, 0, min(len(s), most))
	for _, r := range hush(s) {
		if len(out) == most {
			break
		}
		if r == utf8.RuneError || unicode.IsControl(r) && !strings.ContainsRune(keep, r) {
			r = '\uFFFD'
		}
		out = append(out, r)
	}
	return string(out)
}
