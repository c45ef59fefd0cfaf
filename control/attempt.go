package control

// Types of task events that tell of an attempt between its start and its end.
const (
	EventAttemptAccepted = "AttemptAccepted" // the provider has the job
	EventAttemptUnknown  = "AttemptUnknown"  // nobody knows whether the provider has it
	EventAttemptLost     = "AttemptLost"     // silent past its deadline; it still holds its slot
)
