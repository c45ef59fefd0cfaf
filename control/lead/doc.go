// Package lead runs work that only one process at a time may do. A holder has a lease with a fencing
// term on the database's clock; it stops its work a margin before the lease can expire, and a later
// holder always has a higher term, so that what a paused holder still writes can be refused.
package lead
