package monitor

// TenantCard is one tenant as its own page shows it.
type TenantCard struct {
	TenantEntry
	LaneWeights int64 // sum of the weights of the active tenants of its home lane, as in force
}
