package run

import "fairlane/control/run/bench"

type benchFairCmd struct {
	Tenants   []int  `default:"1000,10000,100000" help:"Tenants of each measurement, 10 to 1000000."`
	PerTenant int    `default:"10" help:"Waiting tasks of each tenant, 1 to 1000."`
	Seed      uint64 `default:"1" help:"Of the costs."`
}

// Run measures the plan.
func (c *benchFairCmd) Run(e *env) error {
	for _, n := range c.Tenants {
		if n < 10 || n > 1_000_000 || c.PerTenant < 1 || c.PerTenant > 1_000 || n*c.PerTenant > 10_000_000 {
			return settingError{"bench fair", "tenants must be 10 to 1000000, per-tenant 1 to 1000, and all tasks at most 10000000"}
		}
	}
	return bench.Fair(e.ctx, bench.Crowd{Tenants: c.Tenants, PerTenant: c.PerTenant, Seed: c.Seed}, e.out)
}
