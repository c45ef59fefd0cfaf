package plan

import (
	"time"

	"github.com/google/uuid"
)

// Status is what a planner remembers from cycle to cycle, for people: pages show it, nothing decides by it.
type Status struct {
	At       time.Time      `json:"at"` // of the last cycle
	Version  int64          `json:"version"`
	Lanes    []LaneStatus   `json:"lanes"`
	Tenants  []TenantStatus `json:"tenants"` // with waiting heads, at most the number asked for
	Earmarks []Earmark      `json:"earmarks"`
}

// LaneStatus is a lane's place in the ring of lanes.
type LaneStatus struct {
	Lane         string    `json:"lane"`
	DeficitMilli int64     `json:"deficit_milli"`
	Waiting      int       `json:"waiting"`                // tenants with unparked heads
	Unmet        int64     `json:"unmet,omitempty"`        // smallest slots that wait for lane units alone; 0: none
	Stopped      bool      `json:"stopped,omitempty"`      // it lends nothing for now
	StoppedSince time.Time `json:"stopped_since,omitzero"` //
}

// TenantStatus is a tenant's place in its lane's ring. Milli-units.
type TenantStatus struct {
	Tenant       uuid.UUID `json:"tenant"`
	Lane         string    `json:"lane"`
	DeficitMilli int64     `json:"deficit_milli"`
	DebtMilli    int64     `json:"debt_milli"` // below 0: credit
}

// Earmark keeps units of a pool for a task that was passed over too often.
type Earmark struct {
	Pool   string    `json:"pool"`
	Task   uuid.UUID `json:"task"`
	Tenant uuid.UUID `json:"tenant"`
	Lane   string    `json:"lane"`
	Units  int64     `json:"units"`
	Until  time.Time `json:"until"`
}
