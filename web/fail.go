package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"fairlane/control"
	"fairlane/policy/access"
	"fairlane/views"
	"fairlane/views/page"
)

// failure is an error as it is told.
type failure struct {
	status int
	code   string
	key    views.Key
	detail string // English, for programs
	fields []control.FieldError
}

var statuses = map[control.Code]failure{
	control.CodeInvalid:      {status: http.StatusUnprocessableEntity, key: "error.invalid"},
	control.CodeNotFound:     {status: http.StatusNotFound, key: "error.not_found"},
	control.CodeConflict:     {status: http.StatusConflict, key: "error.conflict"},
	control.CodeForbidden:    {status: http.StatusForbidden, key: "error.forbidden"},
	control.CodeUnauthorized: {status: http.StatusUnauthorized, key: "error.unauthorized"},
	control.CodeTooLarge:     {status: http.StatusRequestEntityTooLarge, key: "error.too_large"},
	control.CodeIllegalMove:  {status: http.StatusConflict, key: "error.conflict"},
	control.CodeIdemConflict: {status: http.StatusUnprocessableEntity, key: "error.invalid"},
	control.CodeIdemBusy:     {status: http.StatusConflict, key: "error.conflict"},
	control.CodeUnavailable:  {status: http.StatusServiceUnavailable, key: "error.unavailable"},
	control.CodeRateLimited:  {status: http.StatusTooManyRequests, key: "error.rate_limited"},
	control.CodeFenced:       {status: http.StatusConflict, key: "error.conflict"},
}

// failureOf maps an error to what may be told of it. known is false for what must be logged.
func failureOf(err error) (f failure, known bool) {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		err = control.Errorf(control.CodeTooLarge, "the body is larger than %d bytes", large.Limit)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(err, control.Errorf(control.CodeUnavailable, "the answer took too long"))
	}
	var told *control.Error
	if errors.As(err, &told) {
		if f, ok := statuses[told.Code]; ok {
			f.code, f.detail, f.fields = string(told.Code), told.Message, told.Fields
			return f, true
		}
	}
	return failure{status: http.StatusInternalServerError, code: "INTERNAL", key: "error.internal"}, false
}

// fail answers for handlers that recorded an error instead of answering themselves.
func (e *engine) fail(c *gin.Context) {
	c.Next()
	if len(c.Errors) == 0 {
		return
	}
	err := c.Errors.Last().Err
	f, known := failureOf(err)
	if !known && c.Request.Context().Err() == nil {
		e.cfg.Log.ErrorContext(c.Request.Context(), "request failed", "error", err, "route", c.FullPath(),
			"request_id", access.ActorOf(c.Request.Context()).RequestID)
	}
	if f.status == http.StatusForbidden {
		e.noteDenied(c)
	}
	if !c.Writer.Written() {
		e.answer(c, f)
	}
}

// refuse answers with an error of the engine's own and stops the chain; fail does the rest.
func (e *engine) refuse(c *gin.Context, err error) {
	_ = c.Error(err)
	c.Abort()
}

// noteDenied hands an attempt without the right to it to the audit record.
func (e *engine) noteDenied(c *gin.Context) {
	if route, ok := e.route(c); ok {
		ctx := c.Request.Context()
		e.cfg.Denials.Denied(ctx, access.ActorOf(ctx), string(route.Permission), route.Method+" "+route.Path)
	}
}

// problem is application/problem+json with a stable code, of the form that openapi.yaml describes.
type problem struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail,omitempty"`
	Instance  string       `json:"instance"`
	Code      string       `json:"code"`
	RequestID string       `json:"request_id"`
	Errors    []fieldError `json:"errors,omitempty"`
}

type fieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// problemOf says f in English.
func problemOf(r *http.Request, f failure) problem {
	p := problem{Type: "urn:fairlane:problem:" + f.code, Title: http.StatusText(f.status), Status: f.status, Detail: f.detail,
		Instance: r.URL.Path, Code: f.code, RequestID: access.ActorOf(r.Context()).RequestID}
	for _, x := range f.fields {
		p.Errors = append(p.Errors, fieldError{x.Field, views.Rule(context.Background(), x.Key, x.Args)})
	}
	return p
}

func (e *engine) answer(c *gin.Context, f failure) {
	ctx := c.Request.Context()
	if f.status == http.StatusServiceUnavailable || f.status == http.StatusTooManyRequests {
		c.Header("Retry-After", "2")
	}
	if forPrograms(c.Request) {
		body, err := json.Marshal(problemOf(c.Request, f))
		if err != nil { // only strings and numbers
			panic(err)
		}
		c.Header("Cache-Control", "no-store")
		c.Data(f.status, "application/problem+json", body)
		return
	}
	model := page.ErrorPage{Status: f.status, Text: views.Say(f.key), RequestID: access.ActorOf(ctx).RequestID}
	for _, field := range f.fields {
		model.Fields = append(model.Fields, page.FieldText{Field: field.Field, Key: field.Key, Args: field.Args})
	}
	if err := views.Render(c.Writer, c.Request, f.status, page.Error(model)); err != nil {
		if ctx.Err() == nil {
			e.cfg.Log.ErrorContext(ctx, "error page failed", "error", err)
		}
		c.Data(f.status, "text/plain; charset=utf-8", []byte(http.StatusText(f.status)+"\n"))
	}
}

// forPrograms reports whether the caller reads problem documents rather than pages.
func forPrograms(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/v1/") || strings.HasPrefix(r.URL.Path, "/callbacks/") ||
		strings.Contains(r.Header.Get("Accept"), "json")
}
