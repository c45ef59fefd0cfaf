package admit

import (
	"fmt"
	"math"
	"time"

	"fairlane/control"
)

// Decision is the answer of the gate; a stable code.
type Decision string

// The decisions. The reject codes of limits that are not built yet are not listed.
const (
	Accepted              Decision = "ACCEPTED"
	AcceptedBestEffort    Decision = "ACCEPTED_BEST_EFFORT" // in a lane of weight 0: leftovers only, no promise
	UserRateLimit         Decision = "REJECT_USER_RATE_LIMIT"
	TenantRateLimit       Decision = "REJECT_TENANT_RATE_LIMIT"
	UserQueueFull         Decision = "REJECT_USER_QUEUE_FULL"
	TenantQueueFull       Decision = "REJECT_TENANT_QUEUE_FULL"
	LaneQueueFull         Decision = "REJECT_LANE_QUEUE_FULL"
	PlatformOverloaded    Decision = "REJECT_PLATFORM_OVERLOADED"
	ExpectedWaitTooLong   Decision = "REJECT_EXPECTED_WAIT_TOO_LONG"
	ResourceClassDisabled Decision = "REJECT_RESOURCE_CLASS_DISABLED"
	NotEntitled           Decision = "REJECT_NOT_ENTITLED"
)

// rule is what a decision means to an HTTP client.
type rule struct {
	status int
	after  time.Duration // Retry-After when the refusal knows nothing better; 0: none, trying again does not help
}

// rules is the one table of statuses: 202 accepted, 429 rates and queues, 403 entitlement, 503 overload and outages.
var rules = map[Decision]rule{
	Accepted:              {202, 0},
	AcceptedBestEffort:    {202, 0},
	UserRateLimit:         {429, 0}, // from the bucket; none when the limit is 0
	TenantRateLimit:       {429, 0},
	UserQueueFull:         {429, 15 * time.Second},
	TenantQueueFull:       {429, 15 * time.Second},
	LaneQueueFull:         {429, 30 * time.Second},
	ExpectedWaitTooLong:   {429, 30 * time.Second},
	NotEntitled:           {403, 0},
	ResourceClassDisabled: {503, 60 * time.Second},
	PlatformOverloaded:    {503, 30 * time.Second},
}

// Decisions lists every decision, in the order of the table's declaration.
var Decisions = []Decision{
	Accepted, AcceptedBestEffort, UserRateLimit, TenantRateLimit, UserQueueFull, TenantQueueFull,
	LaneQueueFull, PlatformOverloaded, ExpectedWaitTooLong, ResourceClassDisabled, NotEntitled,
}

// Status is the HTTP status of the decision.
func (d Decision) Status() int { return rules[d].status }

// Refusal is a request turned away, with the numbers that it was decided on.
type Refusal struct {
	Decision   Decision
	Message    string        // English, with the numbers in words
	Scope      string        // user, tenant, lane, model or platform
	Name       string        // which lane or model; "" where the caller knows
	Limit      int64         // in Unit
	Have       int64         // in Unit, before this request
	Want       int64         // in Unit, of this request
	Unit       string        // tasks, fairness_milli, slot_units, seconds, per_minute; "" where no number decides
	RetryAfter time.Duration // 0: trying again does not help before something else changes
}

func (r *Refusal) Error() string { return string(r.Decision) + ": " + r.Message }

// refuse makes a refusal with the table's Retry-After; with numbers added by the caller.
func refuse(d Decision, scope, name, format string, args ...any) *Refusal {
	return &Refusal{Decision: d, Scope: scope, Name: name, Message: fmt.Sprintf(format, args...), RetryAfter: rules[d].after}
}

func (r *Refusal) numbers(unit string, limit, have, want int64) *Refusal {
	r.Unit, r.Limit, r.Have, r.Want = unit, limit, have, want
	return r
}

// QueueFull makes the refusal of a queue cap, in tasks or in fairness milli-units. The store uses it
// for the caps that only its transaction knows exactly.
func QueueFull(d Decision, scope, name, unit string, limit, have, want int64) *Refusal {
	shownLimit, shownHave, shownWant, said := limit, have, want, unit
	if unit == UnitFairness {
		shownLimit, shownHave, shownWant, said = limit/control.Milli, (have+999)/control.Milli, (want+999)/control.Milli, "fairness units"
	}
	return refuse(d, scope, name, "this %s has %d of at most %d %s waiting, this task adds %d", scope, shownHave, shownLimit, said, shownWant).
		numbers(unit, limit, have, want)
}

// Milli turns fairness units of a limit into milli-units, without overflow.
func Milli(units int64) int64 { return min(units, math.MaxInt64/(2*control.Milli)) * control.Milli }

// The units of a refusal's numbers.
const (
	UnitTasks     = "tasks"
	UnitFairness  = "fairness_milli"
	UnitSlots     = "slot_units"
	UnitSeconds   = "seconds"
	UnitPerMinute = "per_minute"
)
