package simulate

import (
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/estimate"
	"fairlane/control/plan"
	"fairlane/policy"
)

// counters are those that a snapshot reads, kept in the snapshot's own form.
type counters struct {
	lanes   map[plan.LaneGroup]plan.LaneUse
	common  map[string]int64
	pools   map[string]plan.PoolUse
	tenants map[uuid.UUID]plan.TenantUse
	inLane  map[plan.TenantLane]plan.Use
	users   map[plan.TenantUser]plan.UserUse
	debts   map[plan.TenantLane]int64
}

type tenant struct {
	index    int32
	account  policy.Tenant
	settings policy.TenantSettings
	parties  []*party
	queued   int64 // tasks
	milli    int64 // fairness milli-units that wait
	factor   estimate.Factor
	tally    tenantTally
}

type user struct {
	id     uuid.UUID
	name   string
	tenant *tenant
	queued int64
	waits  []userWait
	capped [2]bool // by kind: not one more may start
}

// userWait is how many of a user's tasks wait in a lane, by kind.
type userWait struct {
	party *party
	n     [2]int64
}

type model struct {
	code string
	kind control.Kind
	key  estimate.Key
}

type task struct {
	id       uuid.UUID
	user     *user
	party    *party
	model    *model
	kind     int
	at       int64
	duration int64
	charge   estimate.Charge
	actual   estimate.Bill // what it will turn out to have used
	p95      time.Duration
	until    int64    // the end of its patience, 0: none
	account  *account // of its lane in its group
	lent     int64    // the account's time without units because they were lent, when it came
	route    string
	band     control.Band

	// while it runs
	start    plan.Start
	attempt  uuid.UUID
	began    int64
	ends     int64
	deadline int64 // of the attempt
}

func kindOf(k control.Kind) int {
	if k == control.KindImage {
		return 0
	}
	return 1
}
