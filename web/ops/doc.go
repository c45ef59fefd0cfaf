// Package ops holds what operators deploy beside the program: rules of alerts for Prometheus, read from
// the metrics of /metrics. It is data only, embedded; control/run may write it out. It knows no other room.
package ops
