package control

import "github.com/google/uuid"

// Head is a waiting task as the queue shows it to the planner.
type Head struct {
	Ref         int // the queue's own handle, valid until the task leaves the queue
	TaskID      uuid.UUID
	Version     int64
	UserID      uuid.UUID
	Band        Band
	Need        int    // what it requires; the queue's Need gives it in full
	CostMilli   int64  // fairness milli-units
	QueuedSince int64  // microseconds since the Unix epoch
	Arrival     uint32 // counts what came into the queue; goes round
	First       bool   // the oldest of its band and route; false: a later one inside the scan window
}

// Need is what a task requires of pools and accounts. Tasks of one need are interchangeable for
// everything but their order, cost and user.
type Need struct {
	Route     string
	Model     string
	Kind      Kind
	SlotUnits int64
	P95       P95Class // whether it may run on units that are lent
}
