// Package plan turns a snapshot of counters, the policy in force, the queue's heads and the time into
// an ordered list of starts, and tells for everything that did not start the gate that held it. Pure:
// no I/O, no clock, no goroutine. control/schedule feeds it and commits what it says.
//
// # Words
//
// A party is a tenant inside a lane; it is in the lane's ring while it has heads that are not parked.
// Parked are tasks that are not eligible yet, that never fit, or whose user is at a cap. An entry is the
// oldest head of a need among a party's heads, in the order in which they are tried; the first that
// fits is the one that would start. A start falls in a phase: reserve, share, over or leftover.
//
// # How a start is found
//
// Each lane offers its next start, and the lanes' ring decides among the offers. Inside a lane, entries
// stand by need, because all entries of a need fit or none does: when a pool is full, one look tells it
// for every tenant that waits for it. A stand orders its entries by place for the phases that go round
// and by exact key for those that pay (control/fair), so that a start costs a few looks and one
// rekeying of its own tenant, however many others wait. A tenant with several needs has an entry in
// each stand, and a later one counts only while no earlier one fits; that is looked at when it comes to
// the front, and whatever is passed over for that reason is looked at again when the stand in front of
// it becomes full. The tests hold all of this against a model that walks literal rounds over lists.
//
// # Counters
//
// The planner mirrors the counters that claims move. Lanes and pools are read in full each cycle;
// tenants and users are asked for while they run something, and when they are new or a claim has
// contradicted the mirror. The claim decides: a mirror that is behind costs a refusal, never a limit.
package plan
