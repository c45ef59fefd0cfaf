package plan

// Gate names what holds a waiting task, in the order in which they are tried. Those that a claim can
// refuse by have the claim's words.
type Gate string

// The gates.
const (
	GateNotEligible Gate = "NOT_ELIGIBLE" // its time has not come
	GateTask        Gate = "TASK"         // refused: no longer queued at that version
	GateNeverFits   Gate = "NEVER_FITS"   // larger than every candidate pool, its tenant's maximum or its lane
	GateLane        Gate = "LANE"         // paused, switched off or without an account in the group
	GateTenant      Gate = "TENANT"       // unknown, suspended, or at its maximum of tasks or units
	GateUser        Gate = "USER"         // the user is at a cap
	GateAccount     Gate = "ACCOUNT"      // the lane has no units left, own or common
	GatePool        Gate = "POOL"         // no candidate pool has room
	GateTurn        Gate = "TURN"         // it could start; others go first, or the batch was full
)
