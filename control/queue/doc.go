// Package queue is the port to what waits: heads by lane, tenant, band and route. The memory adapter is
// filled from PostgreSQL; adapters share one conformance suite. A queue is an index, never a fact.
package queue
