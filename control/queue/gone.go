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
