package queue

import (
	"time"

	"github.com/google/uuid"
)

// Entry is what a shared index holds about one task, for whoever compares it with PostgreSQL.
type Entry struct {
	TaskID   uuid.UUID
	Lane     string // with the tenant: where it was looked for
	TenantID uuid.UUID
	Place    int    // of the index's own
	Held     bool   // the index says that the task waits
	Whole    bool   // what it holds can be read, and the task stands in its place
	Item     Item   // zero unless Held and Whole
	Gone     int64  // version up to which the task was removed; -1: it was not
	Mark     string // what a repair compares and sets on
}

// Repair sets what the index holds about a task, if it still is what the entry has shown.
type Repair struct {
	Entry
	Present *Item // what waits in PostgreSQL; nil: nothing does
}

// Cursor is a place in a walk over all that an index holds; the zero value begins one.
type Cursor struct {
	Slot   int
	At     uint64
	Tasks  int64 // of the slot, so far
	Milli  int64 // their fairness milli-units
	Writes int64 // of the slot when its walk began
	Done   bool  // nothing is left
}

// Kinds of differences between an index and what waits.
const (
	DiffersMissing = "missing"   // it waits and is not in the index
	DiffersExtra   = "extra"     // it is in the index and does not wait
	DiffersDamaged = "damaged"   // it cannot be read, or does not stand where it should
	DiffersOlder   = "older"     // the index has an older version
	DiffersNewer   = "newer"     // the index has a version that never was, or is no more
	DiffersFields  = "different" // the same version with other contents
)

// Differs says how an entry differs from what waits, nil for nothing; "" when it does not. What waits
// must have been read after the entry: whoever writes an index has read the row before.
func (e *Entry) Differs(row *Item) string {
	switch {
	case row == nil && e.Held:
		return DiffersExtra
	case row == nil:
		return ""
	case !e.Held:
		return DiffersMissing
	case !e.Whole:
		return DiffersDamaged
	case e.Item.Version < row.Version:
		return DiffersOlder
	case e.Item.Version > row.Version:
		return DiffersNewer
	case !same(e.Item, *row):
		return DiffersFields
	}
	return ""
}

// same compares to the precision that an index keeps: microseconds, the P95 in milliseconds.
func same(a, b Item) bool {
	for _, it := range []*Item{&a, &b} {
		it.P95 = it.P95.Truncate(time.Millisecond)
		it.QueuedSince, it.EligibleAt = it.QueuedSince.Truncate(time.Microsecond).UTC(), it.EligibleAt.Truncate(time.Microsecond).UTC()
	}
	return a == b
}
