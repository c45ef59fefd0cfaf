package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	"fairlane/control"
	"fairlane/policy/access"
	"fairlane/views"
	"fairlane/views/layout"
)

// limitBody bounds what a request may bring; what says that it brings more is refused unread.
func (e *engine) limitBody(c *gin.Context) {
	if c.Request.ContentLength > e.cfg.MaxBody {
		e.refuse(c, control.Errorf(control.CodeTooLarge, "the body is larger than %d bytes", e.cfg.MaxBody))
		return
	}
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, e.cfg.MaxBody)
	c.Next()
}

// refuseCrossSite refuses what another site makes a browser send. Requests that no browser sent (no
// Origin, no Sec-Fetch-Site) pass: they carry no cookie that was not theirs to send.
func (e *engine) refuseCrossSite(c *gin.Context) {
	if err := e.cross.Check(c.Request); err != nil {
		c.Abort()
		e.answer(c, failure{status: http.StatusForbidden, code: "CROSS_ORIGIN", key: "error.cross_origin"})
		return
	}
	c.Next()
}

// identify names the actor of audit records once the session is known.
func (e *engine) identify(c *gin.Context) {
	ctx := c.Request.Context()
	if s, ok := access.SubjectOf(ctx); ok {
		actor := access.ActorOf(ctx)
		actor.ID, actor.Name = s.Operator, s.Login
		c.Request = c.Request.WithContext(access.WithActor(ctx, actor))
	}
	c.Next()
}

// authorise decides on the route that matched, never on the address as it was written, and denies where
// none matched.
func (e *engine) authorise(c *gin.Context) {
	route, ok := e.route(c)
	if !ok {
		return // missing answers; there is no handler to reach
	}
	switch route.Auth {
	case Open, Callback:
	case Token:
		e.cfg.Token(c)
		if c.IsAborted() {
			return
		}
		if !access.TokenMay(route.Permission) {
			e.refuse(c, control.Errorf(control.CodeForbidden, "tokens may not do this"))
			return
		}
	case Display:
		if e.cfg.Display != nil {
			e.cfg.Display(c)
			if c.IsAborted() {
				return
			}
		}
		if !e.operatorMay(c, route) {
			return
		}
	case Session:
		if !e.operatorMay(c, route) {
			return
		}
	default:
		e.refuse(c, control.Errorf(control.CodeForbidden, "this route has no way in"))
		return
	}
	c.Next()
}

// operatorMay lets the request through or answers it.
func (e *engine) operatorMay(c *gin.Context, route Route) bool {
	ctx := c.Request.Context()
	subject, ok := access.SubjectOf(ctx)
	if !ok {
		e.askToSignIn(c)
		return false
	}
	if subject.Rights.May(route.Permission) {
		return true
	}
	// The first page of a wall's account is the wall: sign-in and the product's name lead to "/".
	if route.Name == "overview.show" && subject.Rights.May(access.WallRead) {
		c.Header("Cache-Control", "no-store")
		c.Redirect(http.StatusSeeOther, "/wall")
		c.Abort()
		return false
	}
	e.refuse(c, control.Errorf(control.CodeForbidden, "the permission %s is missing", route.Permission))
	return false
}

// askToSignIn sends a person who reads to the sign-in page, which leads back; everything else gets 401.
func (e *engine) askToSignIn(c *gin.Context) {
	r := c.Request
	if c.FullPath() == "/banners" { // leave the page as it is: something may be half typed on it
		e.tellSignedOut(c)
		return
	}
	reading := r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") && r.Header.Get("HX-Request") == ""
	if !reading {
		e.refuse(c, control.Errorf(control.CodeUnauthorized, "nobody is signed in"))
		return
	}
	c.Header("Cache-Control", "no-store")
	c.Redirect(http.StatusSeeOther, "/sign-in?next="+url.QueryEscape(r.URL.RequestURI()))
	c.Abort()
}

// tellSignedOut replaces the banners of an open page by the word that its session has ended, once.
func (e *engine) tellSignedOut(c *gin.Context) {
	c.Abort()
	c.Request = c.Request.WithContext(layout.With(c.Request.Context(), layout.Shell{
		Banners: []layout.Banner{{Kind: "bad", Href: "/sign-in", Text: views.Say("banner.signed_out")}},
	}))
	if err := views.Render(c.Writer, c.Request, http.StatusOK, layout.BannerBox()); err != nil {
		_ = c.Error(err)
	}
}

// missing answers what no route takes.
func (e *engine) missing(c *gin.Context) {
	if c.Writer.Status() == http.StatusMethodNotAllowed {
		e.answer(c, failure{status: http.StatusMethodNotAllowed, code: "METHOD_NOT_ALLOWED", key: "error.method"})
		return
	}
	e.answer(c, failure{status: http.StatusNotFound, code: string(control.CodeNotFound), key: "error.not_found"})
}
