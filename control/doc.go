// Package control holds the words that every other room speaks: tasks, attempts, reservations,
// their states and legal moves, and the errors that users may see. It decides nothing and does no I/O.
//
// Amounts: slot units are whole (what pools and lanes hold), fairness units are milli-units
// (what deficit round robin charges), cost and price are micro-units of the platform's currency.
package control
