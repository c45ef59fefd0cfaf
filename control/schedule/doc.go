// Package schedule is the loop of one pool group: heads, snapshot, plan, claim. One process at a time
// runs it, under a lease; what it remembers ends with the term.
//
// The loop is also the indexer. What waits is kept in an Index, which the loop fills and then follows by
// the outbox's events: "look at this task". An event is acknowledged after the index has what it tells,
// so that a loop which dies in between, or a successor, applies it again. Rows have versions, and an older
// one changes nothing: order and repetition do not matter.
//
// With shared indexes configured the Index lies in Redis and the process holds heads only: a term begins
// without reading all that waits. Without them, and while they are away, it lies in the process, filled
// from PostgreSQL page by page.
//
//	shared ──(no answer, or lost)──> local, limited ──(answers for Hold, and rebuilt)──> shared
//	open ──(answers, but not built)──> local ──(rebuilt)──> shared
//
// Limited means smaller batches, longer gaps and lanes marked pause_when_degraded paused. While the mender
// has the shared index rebuilt, the loop writes every event to both. Whatever the index says, the claim
// decides on the rows: an index can make the loop late or unfair for a moment, never wrong.
package schedule
