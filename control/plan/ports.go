package plan

import (
	"time"

	"github.com/google/uuid"

	"fairlane/control"
)

// Queue is what the planner reads of the waiting tasks of its pool group; control/queue says what each
// method promises.
type Queue interface {
	Advance(now time.Time, changed func(backlog int, lane string, tenant uuid.UUID, empty bool)) time.Time
	Heads(backlog, scan int, skip func(need int) bool, yield func(control.Head))
	Hide(ref int, task uuid.UUID, hidden bool)
	Park(tenant, user uuid.UUID, kinds ...control.Kind)
	Need(need int) control.Need
}
