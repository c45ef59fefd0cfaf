package page

import "strings"

// Pools is the list of pools and of the cap groups that contain them.
type Pools struct {
	Live   Live
	Leaves []PoolLine
	Groups []PoolLine
}

func parents(p PoolLine) string { return strings.Join(p.Parents, ", ") }
