// Package plan turns a snapshot of counters, the policy in force, the queue's heads and the time into
// an ordered list of starts, and for everything that did not start the gate that held it. Pure: no
// I/O, no clock, no goroutine. control/schedule feeds it and commits what it says.
package plan
