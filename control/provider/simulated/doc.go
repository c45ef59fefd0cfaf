// Package simulated is a provider of our own: a server that behaves as real ones do, with their
// durations, failures, refusals, overloads, lost answers and unreliable callbacks, and the adapter that
// speaks to it over real HTTP. The demo and the tests use it; its journal says, for every submit that
// it took on (and would have charged), for which attempt it was, so that a second one can be seen.
//
// The server runs as a process of its own (Main), outlives a restart of its parent (Ensure finds it
// again) and goes on with its jobs after its own restart: they are replayed from the journal.
package simulated
