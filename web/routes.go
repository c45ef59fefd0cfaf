package web

import (
	"net/http"

	"fairlane/policy/access"
)

// Auth is how the caller of a route proves who it is.
type Auth string

// The ways to prove oneself.
const (
	Open     Auth = "public"   // nobody needs to
	Session  Auth = "session"  // an operator's session
	Token    Auth = "token"    // a tenant's API token; Config.Token checks it
	Callback Auth = "callback" // an unguessable token in the address; the handler checks it
	Display  Auth = "display"  // a wall's display token, else a session; Config.Display checks the token
)

// Route is one row of the table: no request reaches a handler except through it.
type Route struct {
	Name       string
	Method     string
	Path       string
	Permission access.Permission
	Auth       Auth
}

const (
	get  = http.MethodGet
	post = http.MethodPost
)

// Routes is the table of all routes. A row without a permission, a handler without a row and a row
// without a handler stop the start.
var Routes = []Route{
	{"static.file", get, "/static/*file", access.Public, Open},
	{"ops.livez", get, "/livez", access.Public, Open},
	{"ops.readyz", get, "/readyz", access.Public, Open},
	{"ops.metrics", get, "/metrics", access.Public, Open},

	{"session.form", get, "/sign-in", access.Public, Open},
	{"session.start", post, "/sign-in", access.Public, Open},
	{"session.end", post, "/sign-out", access.SelfUse, Session},
	{"preference.set", post, "/preference", access.Public, Open},
	{"shell.banners", get, "/banners", access.SelfUse, Session},
	{"search.go", get, "/search", access.SelfUse, Session},

	{"overview.show", get, "/", access.OverviewRead, Session},
	{"lane.list", get, "/lanes", access.LaneRead, Session},
	{"pool.list", get, "/pools", access.PoolRead, Session},
	{"tenant.list", get, "/tenants", access.TenantRead, Session},
	{"task.list", get, "/tasks", access.TaskRead, Session},
	{"task.show", get, "/tasks/:task", access.TaskRead, Session},
	{"task.now", get, "/tasks/:task/now", access.TaskRead, Session},
	{"task.cancel", post, "/tasks/:task/cancel", access.TaskCancel, Session},
	{"health.show", get, "/health", access.HealthRead, Session},
	{"health.starve", get, "/health/starving", access.HealthRead, Session},
	{"wall.show", get, "/wall", access.WallRead, Display},
	{"live.socket", get, "/live", access.SelfUse, Display},

	{"lane.show", get, "/lanes/:lane", access.LaneRead, Session},
	{"lane.past", get, "/lanes/:lane/past", access.LaneRead, Session},
	{"lane.preview", post, "/lanes/:lane", access.PolicyEdit, Session},
	{"lane.publish", post, "/lanes/:lane/publish", access.PolicyPub, Session},
	{"pool.show", get, "/pools/:pool", access.PoolRead, Session},
	{"pool.now", get, "/pools/:pool/now", access.PoolRead, Session},
	{"pool.preview", post, "/pools/:pool", access.PolicyEdit, Session},
	{"pool.publish", post, "/pools/:pool/publish", access.PolicyPub, Session},
	{"tenant.show", get, "/tenants/:tenant", access.TenantRead, Session},
	{"tenant.past", get, "/tenants/:tenant/past", access.TenantRead, Session},
	{"tenant.preview", post, "/tenants/:tenant", access.PolicyEdit, Session},
	{"tenant.publish", post, "/tenants/:tenant/publish", access.PolicyPub, Session},
	{"switch.show", get, "/switches", access.PolicyRead, Session},
	{"switch.preview", post, "/switches", access.PolicyEdit, Session},
	{"switch.publish", post, "/switches/publish", access.PolicyPub, Session},
	{"scheduling.show", get, "/scheduling", access.PolicyRead, Session},
	{"scheduling.preview", post, "/scheduling", access.PolicyEdit, Session},
	{"scheduling.publish", post, "/scheduling/publish", access.PolicyPub, Session},

	{"version.list", get, "/versions", access.PolicyRead, Session},
	{"version.compare", get, "/versions/compare", access.PolicyRead, Session},
	{"version.show", get, "/versions/:version", access.PolicyRead, Session},
	{"audit.list", get, "/audit", access.AuditRead, Session},
	{"audit.show", get, "/audit/:sequence", access.AuditRead, Session},

	{"api.openapi", get, "/v1/openapi.yaml", access.Public, Open},
	{"api.task.create", post, "/v1/tasks", access.TokenSubmit, Token},
	{"api.task.list", get, "/v1/tasks", access.TokenRead, Token},
	{"api.task.get", get, "/v1/tasks/:id", access.TokenRead, Token},
	{"api.task.why", get, "/v1/tasks/:id/why", access.TokenRead, Token},
	{"api.task.cancel", post, "/v1/tasks/:id/cancel", access.TokenCancel, Token},
	{"callback.receive", post, "/callbacks/:provider/:attempt/:token", access.Public, Callback},
}

// Topics is the permission of each topic of the live socket; a topic that is not here is refused.
// "task" stands for task:<id>, "tenant" for tenant:<id>.
var Topics = map[string]access.Permission{
	"overview": access.LiveOverview,
	"lanes":    access.LiveLanes,
	"pools":    access.LivePools,
	"tenants":  access.LiveTenants,
	"queue":    access.LiveQueue,
	"task":     access.LiveTask,
	"tenant":   access.LiveTenants,
	"health":   access.LiveHealth,
}
