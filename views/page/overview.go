package page

import "time"

// Overview is the first page: the platform in one look.
type Overview struct {
	Live                                             Live
	Capacity, Used, Free, Over, Own, Common, Unknown int64
	QueuedTasks, QueuedMilli                         int64
	OldestAt                                         time.Time
	OldestLane                                       string
	StartsPerMinute, Running                         int64
	Succeeded, Failed, Canceled                      int64
	Lanes                                            []LaneLine
	Pools                                            []PoolLine   // leaves, at most overviewPools
	Tenants                                          []TenantLine // at most overviewTenants; nil for those who may not see every tenant
	ShowTenants                                      bool
}

// How many rows the overview shows of long lists.
const (
	OverviewPools   = 8
	OverviewTenants = 10
)
