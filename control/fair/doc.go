// Package fair is deficit round robin with exact keys: who is next among parties with weights, when
// each pays for what it starts. Tenants inside a lane and lanes inside a pool group use the same ring.
// Pure: no I/O, no clock, no goroutine. control/plan calls it; it knows no task, pool or account.
//
// # Words
//
// A member joins at the tail of the ring and has its turn once in each round. In its turn it gets its
// quantum, and while it can pay for what it wants its visit stays open. Instead of walking rounds the
// ring computes a member's key: the round in which it can pay, and its place. The smallest key is next,
// which gives exactly the order of walked rounds.
//
// # Scale and bounds
//
// With W the largest weight in the ring, quanta and costs are scaled by W so that no division loses
// anything: quantum = base_milli × weight, cost = cost_milli × W. For base ≤ 10^7 milli, weight and
// W ≤ 10^6, cost ≤ 10^7 milli and burst ≤ 1,000 rounds:
//
//	quantum, cost     ≤ 10^13
//	carried deficit   ≤ quantum × burst ≤ 10^16
//	deficit           ≤ carried + cost + quantum < 1.1 × 10^16
//	rounds of a visit ≤ cost ÷ smallest quantum (10^3) = 10^10
//
// A deficit is never multiplied by a number of rounds: growth is cut at the rounds that reach the cap.
// Rounds add up to at most 10^10 a visit; Ring.Rebase is called by the owner before they reach 2^61,
// so that a key (round plus rounds of a visit) always fits 63 bits.
package fair
