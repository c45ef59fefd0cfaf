// Package explain answers, for one waiting task, why it waits: the gates that control/plan tries, with
// their numbers, its place among the others as a range, and the least that would have to change for it to
// start now. It rebuilds what the scheduler would see of that task from PostgreSQL, so that any replica
// can answer; it decides nothing and changes nothing.
package explain
