package lead

import "strings"

// QueueIndex begins the names of the leases under which a group's queue index is compared or rebuilt.
const QueueIndex = "queue-index/"

// Brief tells whether a lease of that name is held only while a pass runs, so that it is no fault when
// nobody holds it. All others are held as long as any process lives.
func Brief(name string) bool { return strings.HasPrefix(name, QueueIndex) }
