package page

// Wall is the screen that nobody touches: huge figures, their age, marks beside colours.
type Wall struct {
	Overview
	Clock string // of the first rendering
}

// How many rows the wall has room for at 1080p.
const (
	WallPools   = 8
	WallTenants = 6
)
