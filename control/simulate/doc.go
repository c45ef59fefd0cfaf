// Package simulate answers "what would happen": it plays a trace of arrivals against a policy in virtual
// time. Whatever decides is the product's own code (the gate of control/admit, the planner of
// control/plan over the memory queue, the estimates of control/estimate); what stands in for the rest is
// here: the counters that claims move, a clock, and work that ends when the trace says so.
//
// # One run
//
// Events are arrivals, ends of work, the end of a task's patience, and the times at which a plan wants to
// be made again. All events of one instant are taken together, then plans are made and claimed until
// nothing more can start. After the last arrival what waits is served to its end, so that waits are those
// of all tasks; shares and utilisation are counted up to the last arrival, the horizon.
//
// # Chance
//
// A run has none: the same trace, policy and seed give the same result to the last byte. Seed 1 is the
// trace as it is. Every other seed shifts the whole stream of each tenant by up to ten minutes against the
// others, which keeps its bursts and mixes the coincidences, and multiplies each duration by a lognormal
// factor of mean 1 and standard deviation 0.25.
//
// It is pure: no I/O but the reader it is given, no clock, no goroutine. One simulation belongs to one
// goroutine; the command line and the what-if of a change set may call it.
package simulate
