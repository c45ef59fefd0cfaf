// Package audit is what happened and how that is proved: the event, what never enters it, the text that
// is kept of it, the hash chain over those texts and its verification. It does no I/O of its own; the
// store appends inside the transaction of the change that an event tells of.
package audit
