package web

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"fairlane/policy/access"
)

type engine struct {
	cfg    Config
	routes map[string]Route // by method and path
	cross  *http.CrossOriginProtection
}

// New builds the engine over the table Routes. It fails when a row has no handler, a handler no row, or a
// row no permission.
func New(cfg Config, handlers map[string]gin.HandlerFunc) (http.Handler, error) {
	return newEngine(cfg, Routes, handlers)
}

func newEngine(cfg Config, table []Route, handlers map[string]gin.HandlerFunc) (*gin.Engine, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if err := checkTable(table, handlers); err != nil {
		return nil, err
	}
	e := &engine{cfg: cfg, routes: map[string]Route{}, cross: http.NewCrossOriginProtection()}
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	if err := g.SetTrustedProxies(nil); err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	g.HandleMethodNotAllowed = true
	g.ContextWithFallback = true
	g.RedirectTrailingSlash = false // another spelling of a path is another path
	g.RedirectFixedPath = false
	g.UseRawPath = true // pool keys may hold what a path must escape
	g.Use(e.recover, e.trace, e.headers, e.reader, e.fail, e.limitBody, e.refuseCrossSite, cfg.Session, e.identify, e.authorise, e.shell)
	g.NoRoute(e.missing)
	g.NoMethod(e.missing)
	for _, r := range table {
		e.routes[r.Method+" "+r.Path] = r
		g.Handle(r.Method, r.Path, handlers[r.Name])
		if r.Method == http.MethodGet && r.Name != "live.socket" {
			e.routes[http.MethodHead+" "+r.Path] = r
			g.Handle(http.MethodHead, r.Path, handlers[r.Name])
		}
	}
	return g, nil
}

// checkTable holds the table and the handlers to each other.
func checkTable(table []Route, handlers map[string]gin.HandlerFunc) error {
	seen := map[string]bool{}
	for _, r := range table {
		switch {
		case seen[r.Name]:
			return fmt.Errorf("web: two routes are named %s", r.Name)
		case handlers[r.Name] == nil:
			return fmt.Errorf("web: route %s has no handler", r.Name)
		case !permitted(r):
			return fmt.Errorf("web: route %s: permission %q does not go with auth %q", r.Name, r.Permission, r.Auth)
		}
		seen[r.Name] = true
	}
	for name := range handlers {
		if !seen[name] {
			return fmt.Errorf("web: handler %s has no route", name)
		}
	}
	return nil
}

// permitted reports whether the row names a permission that its way to prove oneself can give.
func permitted(r Route) bool {
	switch r.Auth {
	case Open, Callback:
		return r.Permission == access.Public
	case Token:
		return access.TokenMay(r.Permission)
	case Session, Display:
		return slices.Contains(access.Permissions, r.Permission)
	}
	return false
}

// route is the row that matched; false where none did.
func (e *engine) route(c *gin.Context) (Route, bool) {
	r, ok := e.routes[c.Request.Method+" "+c.FullPath()]
	return r, ok && c.FullPath() != ""
}
