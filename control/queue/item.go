package queue

import (
	"time"

	"github.com/google/uuid"

	"fairlane/control"
)

// Item is one queued task as the index keeps it. It is frozen at admission but for Version,
// QueuedSince and EligibleAt, which a requeue sets.
type Item struct {
	TaskID      uuid.UUID
	Version     int64 // of the row; a lower one never overwrites a higher one
	TenantID    uuid.UUID
	UserID      uuid.UUID
	Lane        string
	Group       string // pool group
	Band        control.Band
	Route       string // what the task requires of a pool: model, resolution, region, consent
	Model       string
	Kind        control.Kind
	SlotUnits   int64
	CostMilli   int64 // fairness milli-units
	P95         time.Duration
	QueuedSince time.Time
	EligibleAt  time.Time
}

// Need is what the task requires of pools and accounts.
func (it *Item) Need() control.Need {
	return control.Need{Route: it.Route, Model: it.Model, Kind: it.Kind, SlotUnits: it.SlotUnits, P95: control.ClassOfP95(it.P95)}
}
