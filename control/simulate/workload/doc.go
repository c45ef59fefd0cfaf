// Package workload makes traces for control/simulate out of published ones: who asks and when from
// ServeGen's clients, how much more or less than others from their sizes, one hostile burst after the
// other from Azure's code completion trace, and tenants that never run out of work. It is pure, and seeded:
// the same files, policy and options give the same trace. The files are embedded; others in the same form
// may be read instead.
package workload
