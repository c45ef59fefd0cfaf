// Package crashpoint names the instants at which a crash must be harmless. A build with the tag
// "crashpoint" kills the process with SIGKILL at the point that FAIRLANE_CRASHPOINT names
// ("name" or "name:n" for the n-th hit); every other build does nothing there.
package crashpoint
