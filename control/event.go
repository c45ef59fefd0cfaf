package control

// Types of task events beside those that the outbox carries too. A task's history is told in them.
const (
	EventTaskProviderSucceeded = "TaskProviderSucceeded" // the provider has delivered
	EventTaskSucceeded         = "TaskSucceeded"
	EventTaskFailed            = "TaskFailed"
	EventTaskExpired           = "TaskExpired"     // deadline passed in the queue; also on TopicQueue
	EventAttemptReleased       = "AttemptReleased" // an attempt ended after its task had moved on
)

// Types of task events that tell of an attempt between its start and its end.
const (
	EventAttemptAccepted = "AttemptAccepted" // the provider has the job
	EventAttemptUnknown  = "AttemptUnknown"  // nobody knows whether the provider has it
	EventAttemptLost     = "AttemptLost"     // silent past its deadline; it still holds its slot
)

// Error codes that the platform itself gives to tasks.
const (
	ErrorDeadline = "DEADLINE" // deadline_at passed in the queue
)
