package plan

import (
	"time"

	"github.com/google/uuid"

	"fairlane/control"
)

// LaneGroup names a lane's account in a pool group.
type LaneGroup struct{ Lane, Group string }

// TenantLane names a tenant's use inside a lane.
type TenantLane struct {
	Tenant uuid.UUID
	Lane   string
}

// TenantUser names a user of a tenant.
type TenantUser struct{ Tenant, User uuid.UUID }

// Snapshot is what one query per cycle reads: the counters that claims move. Slot units.
type Snapshot struct {
	At      time.Time // database clock
	Lanes   map[LaneGroup]LaneUse
	Common  map[string]int64 // common units used, by pool group
	Pools   map[string]PoolUse
	Tenants map[uuid.UUID]TenantUse // tenants that have heads
	InLane  map[TenantLane]Use      // the same tenants, by lane
	Users   map[TenantUser]UserUse  // users that have heads
	Debts   map[TenantLane]int64    // milli-units, of the tenants in InLane; below 0: credit
	Loans   []Loan                  // units that run on other lanes' reserves, oldest first; at most MaxLoans
}

// MaxLoans bounds Snapshot.Loans: the oldest of each lane come first in line.
const MaxLoans = 1000

// Loan is one attempt that runs on units of another lane.
type Loan struct {
	AttemptID    uuid.UUID
	Lane, Lender string
	Units        int64
}

// Lending is a change of a lane's will to lend. A lane that stops does so after the starts of its plan.
type Lending struct {
	Lane    string
	Stopped bool
}

// Repaid is debt that a tenant has paid in its visits, in milli-units; below 0: credit that was paid out.
type Repaid struct {
	TenantLane
	Milli int64
}

// Use counts tasks and slot units that run.
type Use struct{ Tasks, Units int64 }

// LaneUse is what a lane's account holds.
type LaneUse struct {
	Own, Common, Borrowed, Lent int64
	Stopped                     bool // it lends nothing for now
}

// PoolUse is what a pool's shards hold together.
type PoolUse struct {
	Used  int64
	Limit int64            // adaptive limit; -1: none
	Open  bool             // its breaker is open: nothing starts
	Lanes map[string]int64 // used units by lane, for pools with lane minimums
}

// TenantUse is a tenant's running total across lanes.
type TenantUse struct{ Use }

// UserUse is a user's running tasks, whole and per kind.
type UserUse struct{ Tasks, Image, Video int64 }

// Start is one placement that the plan asks the claim for.
type Start struct {
	TaskID      uuid.UUID
	TaskVersion int64 // the version on which the plan was made; the claim compares and sets on it
	TenantID    uuid.UUID
	UserID      uuid.UUID
	Kind        control.Kind
	Lane        string
	Group       string
	Pool        string   // leaf
	CapGroups   []string // every pool that contains the leaf, sorted
	Account     control.Account
	Lender      string // lane, for BORROWED only
	SlotUnits   int64
	CostMilli   int64 // fairness milli-units
	Free        bool  // not charged to the tenant's deficit: by its reserve, or left over; its end settles nothing
}
