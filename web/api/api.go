package api

import (
	"context"
	_ "embed"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"fairlane/control"
	"fairlane/control/admit"
	"fairlane/policy/access"
)

// Spec is the OpenAPI 3.1 description that is served and tested against.
//
//go:embed openapi.yaml
var Spec []byte

// defaultMaxBody is the largest body in bytes where the configuration names none.
const defaultMaxBody = 1 << 20

// Config is what the API is made of.
type Config struct {
	Tokens   Tokens
	Gate     Gate
	Tasks    Tasks
	Cancel   Canceler
	Explains Explains
	MaxBody  func() int64 // bytes, as the policy in force says; nil: 1 MiB. The engine's own limit holds beside it.
	Log      *slog.Logger
}

// API holds the handlers.
type API struct{ cfg Config }

// New makes the API.
func New(cfg Config) *API {
	if cfg.MaxBody == nil {
		cfg.MaxBody = func() int64 { return defaultMaxBody }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &API{cfg: cfg}
}

// Handlers are the handlers by the names of the route table. All but api.openapi expect Authenticate
// to have run.
func (a *API) Handlers() map[string]gin.HandlerFunc {
	return map[string]gin.HandlerFunc{
		"api.openapi":     a.openapi,
		"api.task.create": a.create,
		"api.task.list":   a.list,
		"api.task.get":    a.get,
		"api.task.why":    a.why,
		"api.task.cancel": a.cancel,
	}
}

const principalKey = "fairlane.principal"

// Authenticate is the way in for tokens: it puts the principal into the request or answers 401.
func (a *API) Authenticate() gin.HandlerFunc {
	return func(c *gin.Context) {
		scheme, secret, _ := strings.Cut(c.GetHeader("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || len(c.Request.Header.Values("Authorization")) != 1 {
			a.problem(c, control.Errorf(control.CodeUnauthorized, "send one header Authorization: Bearer flt_…"))
			return
		}
		limited, cancel := bounded(c)
		defer cancel()
		who, err := a.cfg.Tokens.Principal(limited, strings.TrimSpace(secret))
		if err != nil {
			a.problem(c, err)
			return
		}
		c.Set(principalKey, who)
		ctx := c.Request.Context()
		c.Request = c.Request.WithContext(access.WithActor(ctx, actorOf(c, who, "")))
	}
}

// principal returns who asks; a route that forgot Authenticate answers 401 and false.
func (a *API) principal(c *gin.Context) (admit.Principal, bool) {
	if who, ok := c.Value(principalKey).(admit.Principal); ok {
		return who, true
	}
	a.problem(c, control.Errorf(control.CodeUnauthorized, "no token was checked for this request"))
	return admit.Principal{}, false
}

// answerTime bounds what a request may wait for; after it the client is told to come back.
const answerTime = 15 * time.Second

func bounded(c *gin.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Request.Context(), answerTime)
}

// actorOf names the token, and the user on whose behalf it acts, for histories and logs. The address is
// the peer's as the engine saw it.
func actorOf(c *gin.Context, who admit.Principal, user string) control.Actor {
	actor := access.ActorOf(c.Request.Context())
	actor.ID, actor.Name = who.TokenID, "token:"+who.TokenName
	if user != "" {
		actor.Name += " user:" + user
	}
	return actor
}

func (a *API) openapi(c *gin.Context) {
	c.Header("Cache-Control", "public, max-age=300")
	c.Data(http.StatusOK, "application/yaml", Spec)
}
