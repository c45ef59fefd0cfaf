// Package estimate is the cost model: what a request is expected to take in slot units, seconds and
// money, and the fairness milli-units that follow. Pure: no I/O, no clock. It is not a meter: what a
// job really took is recorded by its completion.
package estimate
