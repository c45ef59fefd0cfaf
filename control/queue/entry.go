package queue

import "github.com/google/uuid"

// Entry is what a shared index holds about one task, for whoever compares it with PostgreSQL.
type Entry struct {
	TaskID uuid.UUID
	Held   bool   // the index says that the task waits
	Whole  bool   // what it holds can be read, and the task stands in its place
	Item   Item   // zero unless Held and Whole
	Gone   int64  // version up to which the task was removed; -1: it was not
	Mark   string // what a repair compares and sets on
}

// Repair sets what the index holds about a task, if it still is what the entry has shown.
type Repair struct {
	Entry
	Present *Item // what waits in PostgreSQL; nil: nothing does
}
