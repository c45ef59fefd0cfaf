package run

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"fairlane/control"
	"fairlane/control/admit"
	"fairlane/control/dispatch"
	"fairlane/control/explain"
	"fairlane/control/monitor"
	"fairlane/policy"
	"fairlane/store/facts"
	"fairlane/web"
	"fairlane/web/api"
	"fairlane/web/console"
	"fairlane/web/live"
	"fairlane/web/session"
	"fairlane/web/static"
)

// web puts the engine together, and the hub's run beside it.
func (a *app) web(ctx context.Context, d *dispatch.Service) (http.Handler, func(context.Context) error, error) {
	tenants, facade, cancels := facts.NewTenants(a.api), facts.NewMonitor(a.api), facts.NewCancels(a.api)
	policies, operators := facts.NewPolicies(a.api), facts.NewOperators(a.api)
	secure := strings.HasPrefix(a.settings.PublicURL, "https://")
	sessions, err := session.New(session.Config{
		Operators: operators, Store: facts.NewSessions(a.api), Rights: a.rights, Denials: a.denials, Log: a.log, Secure: secure,
	})
	if err != nil {
		return nil, nil, err
	}
	governing, err := console.New(console.Config{
		Versions: policies, Publisher: policy.NewPublisher(policies, tenants), Tenants: tenants, Cards: facade,
		Audit: facts.NewAudits(a.api), Await: a.active.Await, Log: a.log,
		Past: facade, Present: facade, Shown: a.monitor, Active: a.inForce,
	})
	if err != nil {
		return nil, nil, err
	}
	explains := explain.New(facts.NewExplains(a.api), a.active, tenants, nil)
	reading, err := console.NewReading(console.ReadingConfig{
		Shown: a.monitor, Lists: facade, Canceler: cancels, Present: facade, Explains: explains, Active: a.inForce, Log: a.log,
	})
	if err != nil {
		return nil, nil, err
	}
	hub, err := live.New(live.Config{
		Feed: a.monitor, Rights: a.rights, Sessions: sessions, Topics: web.Topics, Objects: facade, Meter: a.metrics, Log: a.log,
		Origins: []string{a.settings.PublicURL},
	})
	if err != nil {
		return nil, nil, err
	}
	gate := admit.NewGate(admit.Config{
		Policies: a.active, Store: facts.NewAdmissions(a.api), Loads: facts.NewLoads(a.api, nil, time.Second),
		Estimates: a.estimates,
		OnDecision: func(d admit.Decision) {
			a.metrics.Admitted(string(d))
			if d == admit.Accepted || d == admit.AcceptedBestEffort {
				a.monitor.Hint(monitor.HintQueue)
			}
		},
	})
	programs := api.New(api.Config{
		Tokens: facts.NewTokens(a.api, nil), Gate: gate, Tasks: facts.NewTasks(a.api), Cancel: cancels, Explains: explains, Log: a.log, MaxBody: a.maxBody,
	})
	assets, err := static.New()
	if err != nil {
		return nil, nil, err
	}
	handlers := map[string]gin.HandlerFunc{
		"static.file":      assets.Serve,
		"preference.set":   web.SetPreference,
		"shell.banners":    web.Banners,
		"live.socket":      hub.Handle,
		"callback.receive": receiveCallback(d),
		"ops.livez":        livez,
		"ops.readyz":       a.readyz,
		"ops.metrics":      gin.WrapH(promhttp.HandlerFor(a.metrics.Registry, promhttp.HandlerOpts{})),
	}
	for _, more := range []map[string]gin.HandlerFunc{sessions.Handlers(), governing.Handlers(), reading.Handlers(), programs.Handlers()} {
		maps.Copy(handlers, more)
	}
	h, err := web.New(web.Config{
		Log: a.log, Denials: a.denials, Session: sessions.Load, Token: programs.Authenticate(), Asset: assets.URL,
		Preference: operators, Served: a.metrics.Served, Secure: secure,
		Conditions: web.PolicyConditions{Current: a.active.Current, Wanted: a.active.Wanted, Degraded: a.degraded},
	}, handlers)
	if err != nil {
		return nil, nil, err
	}
	return h, func(ctx context.Context) error { return runHub(ctx, hub) }, nil
}

// closeSockets is how long clients have to take the close code before their connections are cut.
const closeSockets = 500 * time.Millisecond

// runHub beats until ctx ends and then closes every socket with a code that lets it come back.
func runHub(ctx context.Context, hub *live.Hub) error {
	err := hub.Run(ctx)
	live, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeSockets)
	defer cancel()
	return errors.Join(err, hub.Shutdown(live))
}

// maxBody is the largest body of an API request under the policy in force.
func (a *app) maxBody() int64 {
	doc, _ := a.inForce()
	if doc == nil {
		return 1 << 20
	}
	return doc.Limits.MaxBodyBytes
}

// degraded are the modes that the monitor knows of, in the words of the pages.
func (a *app) degraded() []web.Mode {
	modes := a.monitor.State().Overview.Degraded
	out := make([]web.Mode, len(modes))
	for i, m := range modes {
		out[i] = web.Mode{Name: m.Code, Since: m.Since}
	}
	return out
}

// receiveCallback answers 204 once a callback is stored; what follows from it comes afterwards.
func receiveCallback(d *dispatch.Service) gin.HandlerFunc {
	return func(c *gin.Context) {
		attempt, err := uuid.Parse(c.Param("attempt"))
		if err != nil {
			c.Status(http.StatusNotFound)
			return
		}
		body, err := io.ReadAll(io.LimitReader(c.Request.Body, dispatch.MaxCallback+1))
		if err != nil {
			c.Status(http.StatusBadRequest)
			return
		}
		err = d.Receive(c.Request.Context(), c.Param("provider"), attempt, c.Param("token"), c.Request.Header, body)
		switch control.CodeOf(err) {
		case control.CodeNotFound:
			c.Status(http.StatusNotFound)
		case control.CodeUnauthorized:
			c.Status(http.StatusUnauthorized)
		case control.CodeTooLarge:
			c.Status(http.StatusRequestEntityTooLarge)
		case control.CodeInvalid:
			c.Status(http.StatusBadRequest)
		default:
			if err != nil {
				_ = c.Error(err)
				c.Status(http.StatusServiceUnavailable) // the provider tries again
				return
			}
			c.Status(http.StatusNoContent)
		}
	}
}
