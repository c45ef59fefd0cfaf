package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"fairlane/control"
	"fairlane/control/admit"
	"fairlane/policy/access"
)

// The codes of this room beside those of control and of admission.
const (
	codeUnsupported control.Code = "UNSUPPORTED_MEDIA"
	codeInternal    control.Code = "INTERNAL"
)

// statuses is the one table of control's codes; decisions of admission carry their own.
var statuses = map[control.Code]int{
	control.CodeInvalid:      http.StatusUnprocessableEntity,
	control.CodeNotFound:     http.StatusNotFound,
	control.CodeConflict:     http.StatusConflict,
	control.CodeForbidden:    http.StatusForbidden,
	control.CodeUnauthorized: http.StatusUnauthorized,
	control.CodeTooLarge:     http.StatusRequestEntityTooLarge,
	control.CodeIllegalMove:  http.StatusConflict,
	control.CodeIdemConflict: http.StatusUnprocessableEntity,
	control.CodeIdemBusy:     http.StatusConflict,
	control.CodeUnavailable:  http.StatusServiceUnavailable,
	control.CodeRateLimited:  http.StatusTooManyRequests,
	control.CodeFenced:       http.StatusConflict,
	codeUnsupported:          http.StatusUnsupportedMediaType,
}

// The Retry-After of errors that pass by themselves.
var retries = map[control.Code]time.Duration{
	control.CodeIdemBusy:    time.Second,
	control.CodeUnavailable: 5 * time.Second,
	control.CodeRateLimited: 5 * time.Second,
}

// malformed is a request that cannot even be read: 400 where INVALID otherwise is 422.
type malformed struct{ cause *control.Error }

func (m malformed) Error() string { return m.cause.Error() }

func (m malformed) Unwrap() error { return m.cause }

func malformedf(field, format string, args ...any) error {
	e := control.Errorf(control.CodeInvalid, format, args...)
	if field != "" {
		e.Fields = []control.FieldError{{Field: field, Key: "text", Args: map[string]any{"text": e.Message}}}
	}
	return malformed{e}
}

// problem is RFC 9457 with this product's extensions.
type problem struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail"`
	Instance  string       `json:"instance"`
	Code      string       `json:"code"`
	RequestID string       `json:"request_id"`
	Errors    []fieldError `json:"errors,omitempty"`
	Limit     *limit       `json:"limit,omitempty"`
}

type fieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

type limit struct {
	Scope string `json:"scope"`
	Name  string `json:"name"`
	Unit  string `json:"unit"`
	Limit int64  `json:"limit"`
	Have  int64  `json:"have"`
	Want  int64  `json:"want"`
}

// problem answers with what may be told of err and stops the chain. What may not be told is logged.
func (a *API) problem(c *gin.Context, err error) {
	p := problem{Instance: c.Request.URL.Path, RequestID: access.ActorOf(c.Request.Context()).RequestID}
	var after time.Duration
	var no *admit.Refusal
	var large *http.MaxBytesError
	var known *control.Error
	switch {
	case errors.As(err, &no):
		p.Code, p.Status, p.Detail, after = string(no.Decision), no.Decision.Status(), no.Message, no.RetryAfter
		if no.Unit != "" {
			p.Limit = &limit{Scope: no.Scope, Name: no.Name, Unit: no.Unit, Limit: no.Limit, Have: no.Have, Want: no.Want}
		}
	case errors.As(err, &large):
		p.Code, p.Status, p.Detail = string(control.CodeTooLarge), http.StatusRequestEntityTooLarge, tooLarge(large.Limit)
	case errors.As(err, &known) && statuses[known.Code] != 0:
		p.Code, p.Status, p.Detail, after = string(known.Code), statuses[known.Code], known.Message, retries[known.Code]
		var unread malformed
		if errors.As(err, &unread) {
			p.Status = http.StatusBadRequest
		}
		for _, f := range known.Fields {
			p.Errors = append(p.Errors, fieldError{Field: f.Field, Message: say(f)})
		}
		if known.Code == control.CodeInvalid && len(p.Errors) > 0 {
			p.Detail = summary(p.Errors)
		}
		if known.Code == control.CodeUnauthorized {
			c.Header("WWW-Authenticate", `Bearer realm="fairlane"`)
		}
	case errors.Is(err, context.DeadlineExceeded):
		p.Code, p.Status, p.Detail, after = string(control.CodeUnavailable), http.StatusServiceUnavailable, "the answer took too long", 5*time.Second
	default:
		p.Code, p.Status, p.Detail = string(codeInternal), http.StatusInternalServerError, "something went wrong here; the request id finds it in the log"
		if c.Request.Context().Err() == nil {
			a.cfg.Log.ErrorContext(c.Request.Context(), "api request failed", "error", err, "route", c.FullPath(), "request_id", p.RequestID)
		}
	}
	p.Type, p.Title = "urn:fairlane:problem:"+p.Code, http.StatusText(p.Status)
	if after > 0 {
		c.Header("Retry-After", strconv.FormatInt(seconds(after), 10))
	}
	body, err := json.Marshal(p)
	if err != nil { // only strings and numbers
		panic(err)
	}
	c.Abort()
	c.Header("Cache-Control", "no-store")
	c.Data(p.Status, "application/problem+json", body)
}

// seconds rounds up: who comes back after them must not be too early. At least 1.
func seconds(d time.Duration) int64 { return max(int64(math.Ceil(d.Seconds())), 1) }

func tooLarge(limit int64) string { return fmt.Sprintf("the body is larger than %d bytes", limit) }

func summary(errs []fieldError) string {
	said := make([]string, 0, 3)
	for i, e := range errs {
		if i == 3 {
			said = append(said, fmt.Sprintf("and %d more", len(errs)-i))
			break
		}
		said = append(said, e.Field+": "+e.Message)
	}
	return strings.Join(said, "; ")
}

// say puts a field error into words. The keys are those of control/admit and of this room.
func say(f control.FieldError) string {
	switch f.Key {
	case "required":
		return "is required"
	case "length":
		return fmt.Sprintf("may have %v characters at most, has %v", f.Args["max"], f.Args["got"])
	case "chars":
		return "has control or directional characters, or is not valid UTF-8"
	case "range":
		return fmt.Sprintf("must be between %v and %v, is %v", f.Args["min"], f.Args["max"], f.Args["got"])
	case "one_of":
		return fmt.Sprintf("must be one of %v", f.Args["allowed"])
	case "unknown":
		return "is not known"
	case "text":
		return fmt.Sprint(f.Args["text"])
	}
	return f.Key
}
