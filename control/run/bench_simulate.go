package run

import "fairlane/control/run/bench"

type benchSimulateCmd struct {
	PerHour int    `default:"1000" help:"Tasks an hour, 10 to 20000."`
	Lines   int    `default:"1000000" help:"Tasks of a long trace in which memory is measured, up to 5000000; 0: leave it out."`
	Seed    uint64 `default:"1" help:"Of the traces."`
}

// Run measures the simulator.
func (c *benchSimulateCmd) Run(e *env) error {
	if c.PerHour < 10 || c.PerHour > 20_000 || c.Lines < 0 || c.Lines > 0 && c.Lines < 10_000 || c.Lines > 5_000_000 {
		return settingError{"bench simulate", "per-hour must be 10 to 20000, lines 0 or 10000 to 5000000"}
	}
	return bench.Simulate(e.ctx, bench.Simulations{PerHour: c.PerHour, Lines: c.Lines, Seed: c.Seed}, e.out)
}
