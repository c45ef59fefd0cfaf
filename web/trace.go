package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/policy/access"
)

const requestIDHeader = "X-Request-Id"

// statusGone is logged and counted, as nginx does, when the caller hung up before the answer: what its
// handler could then not do is nobody's fault here.
const statusGone = 499

// recover turns a panic of anything below into a logged 500.
func (e *engine) recover(c *gin.Context) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(cause)
		}
		e.cfg.Log.ErrorContext(c.Request.Context(), "handler panicked", "panic", cause, "route", c.FullPath(),
			"request_id", access.ActorOf(c.Request.Context()).RequestID, "stack", string(debug.Stack()))
		c.Abort()
		if !c.Writer.Written() {
			e.answer(c, failure{status: http.StatusInternalServerError, code: "INTERNAL", key: "error.internal"})
		}
	}()
	c.Next()
}

// trace gives the request its id, remembers the peer and writes one line when the request is over. The
// line names the route and not the address, since addresses hold tokens and names.
func (e *engine) trace(c *gin.Context) {
	began := e.cfg.Now()
	id := c.GetHeader(requestIDHeader)
	if !validRequestID(id) {
		fresh, err := uuid.NewV7()
		if err != nil {
			fresh = uuid.New()
		}
		id = fresh.String()
	}
	peer := peerOf(c.Request)
	c.Header(requestIDHeader, id)
	ctx := access.WithActor(c.Request.Context(), control.Actor{Name: "anonymous", SourceAddress: peer, RequestID: id})
	c.Request = c.Request.WithContext(ctx)
	finished := false
	defer func() {
		status := c.Writer.Status()
		if !finished {
			status = http.StatusInternalServerError // a panic is on its way to recover
		}
		if finished && status >= http.StatusInternalServerError && errors.Is(c.Request.Context().Err(), context.Canceled) {
			status = statusGone
		}
		level := slog.LevelInfo
		switch {
		case status == http.StatusServiceUnavailable: // closed by an operator, full, or waiting for a store that says so itself
			level = slog.LevelWarn
		case status >= http.StatusInternalServerError:
			level = slog.LevelError
		case status == http.StatusNoContent && c.FullPath() == "/banners": // every open page asks every second
			level = slog.LevelDebug
		}
		took := e.cfg.Now().Sub(began)
		if e.cfg.Served != nil {
			e.cfg.Served(c.FullPath(), c.Request.Method, status, took)
		}
		e.cfg.Log.Log(ctx, level, "request", "method", c.Request.Method, "route", c.FullPath(), "status", status,
			"bytes", max(c.Writer.Size(), 0), "seconds", took.Round(time.Microsecond).Seconds(),
			"peer", peer, "request_id", id, "operator", access.ActorOf(c.Request.Context()).Name)
	}()
	c.Next()
	finished = true
}

// peerOf is the address of the connection. Headers that claim another are not believed.
func peerOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

func validRequestID(id string) bool {
	if len(id) < 8 || len(id) > 64 {
		return false
	}
	for _, b := range []byte(id) {
		switch {
		case b >= '0' && b <= '9', b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b == '-', b == '_', b == '.':
		default:
			return false
		}
	}
	return true
}
