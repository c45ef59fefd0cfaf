package schedule

import (
	"fairlane/control/queue"
)

// local is the index in the process's memory.
type local struct{ *queue.Memory }

// Apply brings changes to the memory. It takes whatever was checked.
func (l local) Apply(waits []queue.Item, gone []queue.Gone) error {
	for i := range waits {
		if err := l.Upsert(waits[i]); err != nil {
			return err
		}
	}
	for _, g := range gone {
		l.Remove(g.TaskID, g.Version)
	}
	return nil
}
