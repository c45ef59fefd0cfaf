package provider

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Outcome is what came of a submit. There is no fourth.
type Outcome string

// The outcomes of a submit.
const (
	Accepted  Outcome = "ACCEPTED"   // the provider has the job and named it
	SurelyNot Outcome = "SURELY_NOT" // never sent, or refused: no job exists and none will
	Unknown   Outcome = "UNKNOWN"    // bytes may have left and nobody said what came of them
)

// Class sorts what went wrong into a short list.
type Class string

// The classes.
const (
	ClassNone        Class = ""
	ClassTimeout     Class = "TIMEOUT"      // no answer in time
	ClassConnection  Class = "CONNECTION"   // the connection broke after bytes may have left
	ClassUnreachable Class = "UNREACHABLE"  // no connection: name, dial, TLS
	ClassForbidden   Class = "ADDRESS"      // the address is not one that we may dial
	ClassRateLimited Class = "RATE_LIMITED" // told to slow down
	ClassRefused     Class = "REFUSED"      // content or moderation
	ClassInvalid     Class = "INVALID"      // the provider does not take such a job
	ClassAccount     Class = "ACCOUNT"      // credentials, balance, right
	ClassInternal    Class = "INTERNAL"     // the provider's own failure
	ClassBadAnswer   Class = "BAD_ANSWER"   // an answer that cannot be read
	ClassLost        Class = "LOST"         // silent past its longest run
	ClassCanceled    Class = "CANCELED"     // ended by the provider, unasked
	ClassConfig      Class = "CONFIG"       // nothing here speaks that provider's language
)

// Answer is what came of a submit.
type Answer struct {
	Outcome    Outcome
	JobID      string // for Accepted
	Class      Class  // for the others
	Code       string
	Message    string
	Retry      bool          // for SurelyNot: the same job may be tried again
	RetryAfter time.Duration // not earlier, by the provider's word; 0: not told
	Status     int           // of HTTP; 0: none came
	Raw        string
}

// ErrCannot is the answer of an adapter to what its provider cannot do.
var ErrCannot = errors.New("the provider cannot do this")

// ErrSignature is returned for a callback whose signature is missing, wrong or too old.
var ErrSignature = errors.New("callback signature is missing, wrong or too old")

// Parsed is what an adapter read in the body of an answer.
type Parsed struct {
	JobID   string
	Class   Class // "" leaves the class to the status
	Code    string
	Message string
}

// Classify tells the outcome of a submit from how far it came and what was answered. parse reads the
// body; its error means that the body cannot be read.
func Classify(c Capabilities, s Sent, parse func(status int, body []byte) (Parsed, error)) Answer {
	a := Answer{Status: s.Status, Raw: s.Raw}
	if s.Status == 0 { // no answer at all
		a.Message = errorText(s.Err)
		if !s.MayHaveLeft {
			a.Outcome, a.Class, a.Retry = SurelyNot, ClassUnreachable, true
			if errors.Is(s.Err, ErrAddress) {
				a.Class = ClassForbidden
			}
			return a
		}
		a.Outcome, a.Class = Unknown, ClassConnection
		if errors.Is(s.Err, context.DeadlineExceeded) || isTimeout(s.Err) {
			a.Class = ClassTimeout
		}
		return a
	}
	parsed, parseErr := Parsed{}, s.Err
	if s.Err == nil {
		parsed, parseErr = parse(s.Status, s.Body)
	}
	a.Code, a.Message = parsed.Code, parsed.Message
	switch {
	case s.Status >= 200 && s.Status < 300:
		if parseErr != nil || !GoodJobID(parsed.JobID) {
			a.Outcome, a.Class, a.Message = Unknown, ClassBadAnswer, "accepted, but its job id cannot be read"
			return a
		}
		a.Outcome, a.JobID, a.Class, a.Code, a.Message = Accepted, parsed.JobID, ClassNone, "", ""
	case unsettled(c, s.Status):
		a.Outcome, a.Class = Unknown, ClassInternal
	default:
		a.Outcome = SurelyNot
		a.Class, a.Retry = refusal(s.Status)
		if parsed.Class != ClassNone {
			a.Class = parsed.Class
		}
		if a.Retry {
			a.RetryAfter = s.RetryAfter
		}
	}
	return a
}

// unsettled reports whether a status leaves open whether a job exists: 5xx and gateways, redirects
// (we follow none), a request time-out, and "conflict" where it may mean that our key is taken by a
// job that we do not know of.
func unsettled(c Capabilities, status int) bool {
	switch {
	case status < 400 || status >= 500 || status == http.StatusRequestTimeout:
		return true
	case status == http.StatusConflict:
		return c.CreateIdempotent != CreatePlain
	}
	return false
}

func refusal(status int) (Class, bool) {
	switch status {
	case http.StatusTooManyRequests:
		return ClassRateLimited, true
	case http.StatusTooEarly, http.StatusLocked:
		return ClassInternal, true
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		return ClassAccount, true
	}
	return ClassInvalid, false
}

// GoodJobID reports whether a job's id can be kept and asked for: 1 to 512 visible ASCII characters.
func GoodJobID(id string) bool {
	if id == "" || len(id) > 512 {
		return false
	}
	for _, r := range id {
		if r < 0x21 || r > 0x7e {
			return false
		}
	}
	return true
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return Clean(err.Error(), 300)
}
