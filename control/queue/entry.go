package queue

import "github.com/google/uuid"

// Entry is what a shared index holds about one task, for whoever compares it with PostgreSQL.
type Entry struct {
	TaskID   uuid.UUID
	Lane     string // with the tenant: where it was looked for
	TenantID uuid.UUID
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
