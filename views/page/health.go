package page

import "time"

// Health is the state of the machine itself.
type Health struct {
	Live                       Live
	PolicyWanted, PolicyActive int64
	Stores, Replicas, Leases   []HealthLine
	Outbox, Reconcilers        []HealthLine
}

// HealthLine is one part. Code is "" when it is good, else a word of the family "health".
type HealthLine struct {
	Kind, Name, Code, Text string
	Number                 int64
	Since, Until           time.Time
}

func (h HealthLine) key() string {
	if h.Name == "" {
		return ""
	}
	return h.Kind + ":" + h.Name
}

// healthCodes are what can be wrong; each cell holds all of them and shows the one that holds.
var healthCodes = []string{"down", "expired", "late", "behind", "gone", "failed"}
