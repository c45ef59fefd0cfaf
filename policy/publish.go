package policy

import (
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"fairlane/control"
)

// MaxReason is the length of a reason in characters.
const MaxReason = 2_000

// Publisher is how versions come to be.
type Publisher struct {
	store   Store
	tenants Tenants
}

// NewPublisher makes a Publisher.
func NewPublisher(store Store, tenants Tenants) *Publisher {
	return &Publisher{store: store, tenants: tenants}
}

// Publish makes the document the next version after base. It is refused with CodeInvalid and every
// broken rule, the reason's among them, or with CodeConflict when base is no longer the head (Moved
// tells which is). The version is in force on every replica within one second.
func (p *Publisher) Publish(ctx context.Context, pub Publication) (Version, error) {
	var fields []control.FieldError
	pub.Reason, fields = CleanReason(pub.Reason)
	tenants, err := p.tenants.PlanList(ctx)
	if err != nil {
		return Version{}, err
	}
	fields = append(fields, Validate(pub.Document, tenants)...)
	if err := control.Invalid(fields); err != nil {
		return Version{}, err
	}
	if pub.Base > 0 {
		head, err := p.store.Head(ctx)
		if err != nil {
			return Version{}, err
		}
		if head.Number != pub.Base {
			return Version{}, MovedError(pub.Base, head.Number)
		}
		if len(Diff(head.Document, pub.Document, tenants)) == 0 {
			return Version{}, control.Invalid([]control.FieldError{{Field: "document", Key: KeyNothingChanged}})
		}
	}
	return p.store.Publish(ctx, pub)
}

// CleanReason trims a reason and says what is wrong with it, at the field "reason". Line ends and tabs
// are allowed, other control characters are not.
func CleanReason(reason string) (string, []control.FieldError) {
	f := &faults{}
	if !utf8.ValidString(reason) {
		f.add("reason", KeyControlCharacters, nil)
		return reason, f.all()
	}
	reason = strings.ReplaceAll(reason, "\r\n", "\n") // how forms send line ends
	reason = strings.TrimFunc(reason, blankRune)
	if reason == "" {
		f.add("reason", KeyReasonRequired, nil)
	}
	if n := utf8.RuneCountInString(reason); n > MaxReason {
		f.add("reason", KeyTooLong, args{"length": int64(n), "max": int64(MaxReason)})
	}
	if strings.IndexFunc(reason, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) >= 0 {
		f.add("reason", KeyControlCharacters, nil)
	}
	return reason, f.all()
}

// blankRune tells spaces and characters that show nothing: a reason made of them says nothing.
func blankRune(r rune) bool {
	return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || r == '\u3164' || r == '\u2800'
}

// MovedError says that a version was made from another one than the head.
func MovedError(base, current int64) error {
	e := control.Errorf(control.CodeConflict, "version %d was published meanwhile; this change was made from version %d", current, base)
	e.Fields = []control.FieldError{{Field: "base_version", Key: KeyMoved, Args: args{"base": base, "current": current}}}
	return e
}

// Moved returns the head's number from a conflict of Publish.
func Moved(err error) (current int64, ok bool) {
	var e *control.Error
	if !errors.As(err, &e) || e.Code != control.CodeConflict {
		return 0, false
	}
	for _, f := range e.Fields {
		if f.Key == KeyMoved {
			current, ok = f.Args["current"].(int64)
			return current, ok
		}
	}
	return 0, false
}
