// Package admit is the gate: what a platform service asks for is answered from the stored answer of
// its key, refused with numbers, or written as a task in one transaction. It decides on the policy in
// force, exact counters of the tenant and the user, and sums of the lanes that may be a second old. It
// knows no HTTP: web/api speaks for it, and one table here says which status a decision has.
package admit
