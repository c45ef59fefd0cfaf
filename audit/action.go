package audit

// Action is what somebody did. Pages say it in the reader's language from the action and its
// parameters; Actions names those.
type Action string

// The actions.
const (
	PolicyPublish   Action = "policy.publish"
	SessionSignIn   Action = "session.sign_in"
	SessionRefused  Action = "session.refused"
	SessionSignOut  Action = "session.sign_out"
	SessionRevoke   Action = "session.revoke"
	AccessDenied    Action = "access.denied"
	OperatorAdd     Action = "operator.add"
	OperatorChange  Action = "operator.change"
	OperatorDisable Action = "operator.disable"
	RuleChange      Action = "access.change"
	TokenAdd        Action = "token.add"
	TokenRevoke     Action = "token.revoke"
	TenantOnboard   Action = "tenant.onboard"
	TenantSuspend   Action = "tenant.suspend"
	TenantResume    Action = "tenant.resume"
	TaskCancel      Action = "task.cancel"
	AttemptResolve  Action = "attempt.resolve"
	CountersRebuilt Action = "counters.rebuilt"
	ReconcileRun    Action = "reconcile.run"
)

// Actions names the parameters of every action.
var Actions = map[Action][]string{
	PolicyPublish:   {"version", "base", "changes", "digest"},
	SessionSignIn:   {"login"},
	SessionRefused:  {"login", "why"},
	SessionSignOut:  {"login"},
	SessionRevoke:   {"login"},
	AccessDenied:    {"permission", "route", "count", "seconds"},
	OperatorAdd:     {"login", "roles"},
	OperatorChange:  {"login"},
	OperatorDisable: {"login"},
	RuleChange:      {"role", "permission", "effect"},
	TokenAdd:        {"name"},
	TokenRevoke:     {"name"},
	TenantOnboard:   {"code", "plan", "users"},
	TenantSuspend:   {"code"},
	TenantResume:    {"code"},
	TaskCancel:      {"state"},
	AttemptResolve:  {"state"},
	CountersRebuilt: {"counter", "key", "before", "after"},
	ReconcileRun:    {"reconciler", "found", "repaired"},
}

// Result is how it ended.
type Result string

// The results.
const (
	OK      Result = "OK"
	Denied  Result = "DENIED"  // without the right to it
	Refused Result = "REFUSED" // with the right, against a rule
	Failed  Result = "FAILED"
)

// Results lists every result.
var Results = []Result{OK, Denied, Refused, Failed}

// Kinds of objects that events are about.
const (
	KindPolicy   = "policy"
	KindSession  = "session"
	KindRoute    = "route"
	KindOperator = "operator"
	KindRole     = "role"
	KindToken    = "token"
	KindTenant   = "tenant"
	KindTask     = "task"
	KindAttempt  = "attempt"
	KindCounter  = "counter"
	KindSweeper  = "reconciler"
	KindLane     = "lane"
	KindPool     = "pool"
	KindPlan     = "plan"
	KindSwitches = "switches"
)

// Kinds lists every kind of object, those that events only touch among them.
var Kinds = []string{
	KindPolicy, KindTenant, KindLane, "lane_account", KindPool, "pool_group", KindPlan, "model", "routing", "limits", KindSwitches,
	"scheduling", KindTask, KindAttempt, KindOperator, KindRole, KindSession, KindToken, KindRoute, KindCounter, KindSweeper,
}
