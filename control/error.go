package control

import (
	"errors"
	"fmt"
)

// Code is the stable code of an error that users may see.
type Code string

// The codes. Admission's own refusals are in control/admit.
const (
	CodeInvalid      Code = "INVALID"      // a field is wrong; Fields says which
	CodeNotFound     Code = "NOT_FOUND"    //
	CodeConflict     Code = "CONFLICT"     // somebody changed it meanwhile
	CodeForbidden    Code = "FORBIDDEN"    // known, but not allowed
	CodeUnauthorized Code = "UNAUTHORIZED" // not known
	CodeTooLarge     Code = "TOO_LARGE"    //
	CodeIllegalMove  Code = "ILLEGAL_MOVE" // the state machine forbids it
	CodeIdemConflict Code = "KEY_REUSED"   // same idempotency key, other body
	CodeIdemBusy     Code = "KEY_BUSY"     // same idempotency key, still in progress
	CodeUnavailable  Code = "UNAVAILABLE"  // a part that is needed is away; try again
	CodeRateLimited  Code = "RATE_LIMITED" //
	CodeFenced       Code = "FENCED"       // the caller's fencing token or term is not the current one
)

// FieldError is one broken rule beside the field that broke it. Key and Args name a message of the
// catalogue, so that it can be said in the reader's language; Field is a path such as "tenants[3].weight".
type FieldError struct {
	Field string         `json:"field"`
	Key   string         `json:"key"`
	Args  map[string]any `json:"args,omitempty"`
}

// Error is what users may see. Everything else is logged with the request id and shown as "internal".
type Error struct {
	Code    Code
	Message string // English; pages say it by Code and Fields in the reader's language
	Fields  []FieldError
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Errorf makes an Error with a message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid makes a CodeInvalid error out of field errors; nil when there is none.
func Invalid(fields []FieldError) error {
	if len(fields) == 0 {
		return nil
	}
	return &Error{Code: CodeInvalid, Message: fmt.Sprintf("%d field(s) are wrong, first %s: %s", len(fields), fields[0].Field, fields[0].Key), Fields: fields}
}

// CodeOf returns the code of the Error that err wraps, or "" when it wraps none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
