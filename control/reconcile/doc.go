// Package reconcile looks for what nobody is going to do any more: deadlines that passed in the queue,
// keys past their life, counters that differ from their rows. One process at a time sweeps, each sweep in
// bounded batches. A sweep finds before it repairs; what it may release is only what is known to have ended.
// The history of samples is kept by sweeps as well, and the starvation detector is one: these repair nothing.
package reconcile
