package queue

import "github.com/google/uuid"

// Gone is a task that waits no longer, with the version of its row that says so. Lane and tenant say
// where an index holds it; without them it must be looked for.
type Gone struct {
	TaskID   uuid.UUID
	Version  int64
	Lane     string
	TenantID uuid.UUID
}

// Events are changes of what waits, as the outbox tells them: "look at this task", with what was seen.
type Events struct {
	IDs   []uuid.UUID // of the outbox rows, to be acknowledged once all is applied
	Waits []Item
	Gone  []Gone
}
