package page

// PoolNow is the live part of a pool's page.
type PoolNow struct {
	Live Live
	Pool PoolLine
	Part PoolPart
}

// PoolPart is what of a pool's page is made anew when its row changes.
type PoolPart struct {
	Address     string
	Seen        string
	Earmark     *EarmarkLine
	Shards      []ShardLine
	Lanes       []PoolLaneLine
	Groups      []PoolLine // cap groups that contain it
	Members     []PoolLine // pools that it contains
	OnlyLanes   string     // dedicated to these lanes; "": to nobody
	OnlyTenants string
}

// EarmarkLine is what the scheduler keeps in the pool, ready to be shown. Task is "" for those who may
// not see it.
type EarmarkLine struct{ Units, Lane, Tenant, Task, Ends string }

// ShardLine is one row of a pool's counters.
type ShardLine struct{ No, Used, Capacity int64 }

func (s ShardLine) line() PoolLine { return PoolLine{Used: s.Used, Capacity: s.Capacity} }

// PoolLaneLine is what a lane holds in a pool, and what is kept for it.
type PoolLaneLine struct {
	Lane           string
	Used, Minimum  int64
	KeptForOthers  int64 // what other lanes' minimums still take from it
	BorrowedOfThat int64
}
