package page

import "time"

// Health is the state of the machine itself.
type Health struct {
	Live                       Live
	PolicyWanted, PolicyActive int64
	Stores, Replicas, Leases   []HealthLine
	Outbox, Reconcilers        []HealthLine
	Starvation                 []HealthLine
	Starved                    StarvedPart
}

// StarvedPart lists who waits longer than the bound; it is made anew when the detector has looked.
type StarvedPart struct {
	Address, Seen string
	Rows          []StarvedLine
	Hidden        int64
}

// HealthLine is one part. Code is "" or "idle" when it is good, else a word of the family "health". Text is a
// name, or a word of the family that belongs to the kind, or an error in the words of the program.
type HealthLine struct {
	Kind, Name, Code, Text string
	Number                 int64
	Since, Until           time.Time
	Bound                  int64 // seconds; 0: none
}

func (h HealthLine) key() string {
	if h.Name == "" {
		return ""
	}
	return h.Kind + ":" + h.Name
}

// exempts are why no bound holds for a lane.
var exempts = []string{"WEIGHT_ZERO", "PAUSED", "STOPPED", "NO_BOUND"}

// queueWhys are why a queue does not lie in Redis.
var queueWhys = []string{"away", "building"}

// healthCodes are what can be wrong; each cell holds all of them and shows the one that holds.
var healthCodes = []string{"down", "expired", "late", "behind", "gone", "failed", "starved", "limited"}

const healthIdle = "idle"

func (h HealthLine) good() bool { return h.Code == "" || h.Code == healthIdle }
