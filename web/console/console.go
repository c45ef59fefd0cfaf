package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/a-h/templ"
	"github.com/gin-gonic/gin"

	"fairlane/control/monitor"
	"fairlane/policy/access"
	"fairlane/views"
)

// Config is what the console needs.
type Config struct {
	Versions  Versions
	Publisher Publisher
	Tenants   Tenants
	Cards     Cards
	Audit     Audit
	Past      Past
	Present   Present
	Shown     Shown
	Active    monitor.Active // policy in force here
	// Await returns once a version is in force in this process; nil: do not wait for it.
	Await func(ctx context.Context, number int64) error
	Log   *slog.Logger
}

// awaitAtMost bounds how long a publish waits for its version to be in force here before it answers.
const awaitAtMost = time.Second

// Console answers the editing and governing pages.
type Console struct{ cfg Config }

// New checks the configuration.
func New(cfg Config) (*Console, error) {
	if cfg.Versions == nil || cfg.Publisher == nil || cfg.Tenants == nil || cfg.Cards == nil || cfg.Audit == nil || cfg.Log == nil ||
		cfg.Past == nil || cfg.Present == nil || cfg.Shown == nil || cfg.Active == nil {
		return nil, errors.New("console: versions, publisher, tenants, cards, audit, past, present, shown, active and log are all needed")
	}
	return &Console{cfg: cfg}, nil
}

// Handlers returns the handlers by their names in the route table.
func (s *Console) Handlers() map[string]gin.HandlerFunc {
	return map[string]gin.HandlerFunc{
		"search.go":          s.searchGo,
		"lane.past":          s.lanePast,
		"tenant.past":        s.tenantPast,
		"pool.now":           s.poolNow,
		"tenant.show":        s.tenantShow,
		"tenant.preview":     s.tenantPreview,
		"tenant.publish":     s.tenantPublish,
		"lane.show":          s.laneShow,
		"lane.preview":       s.lanePreview,
		"lane.publish":       s.lanePublish,
		"pool.show":          s.poolShow,
		"pool.preview":       s.poolPreview,
		"pool.publish":       s.poolPublish,
		"switch.show":        s.switchShow,
		"switch.preview":     s.switchPreview,
		"switch.publish":     s.switchPublish,
		"scheduling.show":    s.schedulingShow,
		"scheduling.preview": s.schedulingPreview,
		"scheduling.publish": s.schedulingPublish,
		"version.list":       s.versionList,
		"version.show":       s.versionShow,
		"version.compare":    s.versionCompare,
		"audit.list":         s.auditList,
		"audit.show":         s.auditShow,
	}
}

// show writes a page, or records why it could not.
func show(c *gin.Context, status int, page templ.Component) {
	if err := views.Render(c.Writer, c.Request, status, page); err != nil {
		_ = c.Error(err)
	}
}

// may reports whether the operator of the request holds the permission for the object.
func may(c *gin.Context, p access.Permission, o access.Object) bool {
	return access.Require(c.Request.Context(), p, o) == nil
}

// seeOther leads on after something was done.
func seeOther(c *gin.Context, to string) {
	c.Header("Cache-Control", "no-store")
	c.Redirect(http.StatusSeeOther, to)
}
