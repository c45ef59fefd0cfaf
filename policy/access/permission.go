package access

// Permission is the name of something that may be done. Names match whole: there are no wildcards.
type Permission string

// The permissions.
const (
	SelfUse      Permission = "self.use" // own session: sign out, language, theme, search
	OverviewRead Permission = "overview.read"
	LaneRead     Permission = "lane.read"
	PoolRead     Permission = "pool.read"
	TenantRead   Permission = "tenant.read"
	TaskRead     Permission = "task.read"
	TaskCancel   Permission = "task.cancel"
	HealthRead   Permission = "health.read"
	WallRead     Permission = "wall.read"
	PolicyRead   Permission = "policy.read" // versions, diffs, switches
	PolicyEdit   Permission = "policy.edit" // see the forms, preview a change
	PolicyPub    Permission = "policy.publish"
	AuditRead    Permission = "audit.read"

	LiveOverview Permission = "live.overview"
	LiveLanes    Permission = "live.lanes"
	LivePools    Permission = "live.pools"
	LiveTenants  Permission = "live.tenants"
	LiveQueue    Permission = "live.queue"
	LiveTask     Permission = "live.task"
	LiveHealth   Permission = "live.health"

	// What a tenant's token may do; never held by a role.
	TokenSubmit Permission = "token.task.submit"
	TokenRead   Permission = "token.task.read"
	TokenCancel Permission = "token.task.cancel"

	// What needs no rights of a person: public pages, and callers who prove themselves in the handler.
	Public Permission = "public"
)

// Permissions lists every permission that a role may hold.
var Permissions = []Permission{
	SelfUse, OverviewRead, LaneRead, PoolRead, TenantRead, TaskRead, TaskCancel, HealthRead, WallRead,
	PolicyRead, PolicyEdit, PolicyPub, AuditRead,
	LiveOverview, LiveLanes, LivePools, LiveTenants, LiveQueue, LiveTask, LiveHealth,
}

// TokenMay reports whether a tenant's token holds the permission.
func TokenMay(p Permission) bool { return p == TokenSubmit || p == TokenRead || p == TokenCancel }

// Role is a named set of permissions.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Approver Role = "approver"
	Auditor  Role = "auditor"
	Admin    Role = "admin"
	Wall     Role = "wall"
)

// Roles lists the roles.
var Roles = []Role{Viewer, Operator, Approver, Auditor, Admin, Wall}

var (
	live    = []Permission{LiveOverview, LiveLanes, LivePools, LiveTenants, LiveQueue, LiveTask, LiveHealth}
	reading = append([]Permission{SelfUse, OverviewRead, LaneRead, PoolRead, TenantRead, TaskRead, HealthRead, WallRead, PolicyRead}, live...)
	editing = with(reading, PolicyEdit, PolicyPub, TaskCancel, AuditRead)
	shipped = map[Role][]Permission{
		Viewer:   reading,
		Operator: editing,
		Approver: with(reading, AuditRead),
		Auditor:  with(reading, AuditRead),
		Admin:    editing,
		Wall:     {SelfUse, WallRead, LiveOverview, LiveLanes, LivePools, LiveTenants, LiveQueue, LiveHealth},
	}
)

// Effect is what a rule does.
type Effect string

// The effects; one deny outweighs every allow.
const (
	Allow Effect = "allow"
	Deny  Effect = "deny"
)

// Rule allows or denies a permission to a role.
type Rule struct {
	Role       Role
	Permission Permission
	Effect     Effect
}

// Shipped returns the rules with which a new database starts.
func Shipped() []Rule {
	var rules []Rule
	for _, role := range Roles {
		for _, p := range shipped[role] {
			rules = append(rules, Rule{Role: role, Permission: p, Effect: Allow})
		}
	}
	return rules
}

func with(base []Permission, more ...Permission) []Permission {
	return append(append([]Permission(nil), base...), more...)
}
