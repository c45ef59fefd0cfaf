package console

import (
	"context"
	"errors"
	"log/slog"
	"net/url"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/monitor"
	"fairlane/policy"
	"fairlane/policy/access"
	"fairlane/views/page"
)

// Shown is what the monitor has folded last. It answers from memory.
type Shown interface {
	State() *monitor.State
	// Look tells that a page was served from the state.
	Look()
}

// Lists reads pages of what is too long to be kept in memory.
type Lists interface {
	Tenants(ctx context.Context, q monitor.TenantQuery) ([]monitor.TenantEntry, error)
	Tasks(ctx context.Context, q monitor.TaskQuery) (monitor.TaskPage, error)
	// Task returns one with its history; control.CodeNotFound when there is none.
	Task(ctx context.Context, id uuid.UUID) (*monitor.TaskDetail, error)
	// FindTenant finds a tenant by code or id; control.CodeNotFound when there is none.
	FindTenant(ctx context.Context, text string) (monitor.TenantFace, error)
}

// Canceler cancels any tenant's task, with its audit record; changed is false where nothing was left to do.
type Canceler interface {
	CancelByOperator(ctx context.Context, task uuid.UUID, actor control.Actor, reason string) (state control.TaskState, changed bool, err error)
}

// ReadingConfig is what the reading pages need.
type ReadingConfig struct {
	Shown    Shown
	Lists    Lists
	Canceler Canceler
	Present  Present
	Explains Explains       // nil: nobody explains
	Active   monitor.Active // policy in force here
	Log      *slog.Logger
}

// Reading answers the pages that show what goes on. Their live parts are kept fresh by web/live.
type Reading struct{ cfg ReadingConfig }

// NewReading checks the configuration.
func NewReading(cfg ReadingConfig) (*Reading, error) {
	if cfg.Shown == nil || cfg.Lists == nil || cfg.Canceler == nil || cfg.Present == nil || cfg.Active == nil || cfg.Log == nil {
		return nil, errors.New("console: shown, lists, canceler, present, active and log are all needed")
	}
	return &Reading{cfg: cfg}, nil
}

// Handlers returns the handlers by their names in the route table.
func (r *Reading) Handlers() map[string]gin.HandlerFunc {
	return map[string]gin.HandlerFunc{
		"overview.show": r.overview,
		"lane.list":     r.lanes,
		"pool.list":     r.pools,
		"tenant.list":   r.tenants,
		"task.list":     r.tasks,
		"task.show":     r.task,
		"task.cancel":   r.taskCancel,
		"task.now":      r.taskNow,
		"health.show":   r.health,
		"health.starve": r.starving,
		"wall.show":     r.wall,
	}
}

// state returns what to show, and keeps it fresh for the socket that is about to open.
func (r *Reading) state() *monitor.State {
	r.cfg.Shown.Look()
	return r.cfg.Shown.State()
}

// reach is where the operator of the request holds the permission.
func reach(c *gin.Context, p access.Permission) access.Reach {
	s, _ := access.SubjectOf(c.Request.Context())
	return s.Rights.Reach(p)
}

// seesEveryTenant decides about rows of single tenants in live views (I13).
func seesEveryTenant(c *gin.Context) bool { return reach(c, access.LiveTenants).All }

func (r *Reading) document() *policy.Document {
	doc, _ := r.cfg.Active()
	if doc == nil {
		doc = &policy.Document{}
	}
	return doc
}

func laneCodes(doc *policy.Document) []string {
	codes := make([]string, len(doc.Lanes))
	for i, l := range doc.Lanes {
		codes[i] = l.Code
	}
	return codes
}

func live(s *monitor.State, topics ...monitor.Topic) page.Live {
	l := page.Live{AsOf: s.AsOf}
	for _, t := range topics {
		l.Topics = append(l.Topics, string(t))
	}
	return l
}

// address is path with the values that are not empty.
func address(path string, pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}
