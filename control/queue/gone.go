package queue

import "github.com/google/uuid"

// Gone is a task that waits no longer, with the version of its row that says so.
type Gone struct {
	TaskID  uuid.UUID
	Version int64
}
