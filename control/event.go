package control

// Types of task events beside those that the outbox carries too. A task's history is told in them.
const (
	EventTaskProviderSucceeded = "TaskProviderSucceeded" // the provider has delivered
	EventTaskSucceeded         = "TaskSucceeded"
	EventTaskFailed            = "TaskFailed"
	EventTaskExpired           = "TaskExpired"     // deadline passed in the queue; also on TopicQueue
	EventAttemptReleased       = "AttemptReleased" // an attempt ended after its task had moved on
)

// Error codes that the platform itself gives to tasks.
const (
	ErrorDeadline = "DEADLINE" // deadline_at passed in the queue
)
