package workload

import (
	"fmt"

	"fairlane/control"
	"fairlane/control/simulate"
	"fairlane/policy"
)

// Units is how many slot units the ready policies have.
const Units = 100

// HostileRunning is how many tasks the hostile tenant of the ready policies may run.
const HostileRunning = 10

// clientsNamed is how many clients the ready policies name; the published day has 73.
const clientsNamed = 80

// Weight is the weight that the ready policies give to a client by its rank: 1, 2, 4, 1, 2, 4 …
func Weight(rank int) int64 { return 1 << (rank % 3) }

// EndlessWeights are those of the tenants that never run out of work.
var EndlessWeights = []int64{1, 2, 4}

// Policies are the ready ones by name.
var Policies = map[string]func() *policy.Document{"fair": Fair, "lending": Lending}

// Fair is one lane for everyone, so that nothing but weights decides: 100 units, three models of 45, 70
// and 125 seconds whose pools could each take most of them, and tenants of weight 1, 2 and 4.
func Fair() *policy.Document {
	d := base()
	lane(d, control.LaneStandard).ReservedUnits = Units / 2
	return d
}

// Lending is two lanes: half of the clients, by rank in turn, on a lane with 50 units of which it lends up
// to 30, the others on a lane with 30 that may borrow as many.
func Lending() *policy.Document {
	d := base()
	from, to := lane(d, lender), lane(d, borrower)
	from.ReservedUnits, from.HeadroomUnits, from.LendableUnits = 50, 5, 30
	from.LendsTo, from.BorrowTimeout, from.Cooldown = []string{borrower}, 600, 60
	to.ReservedUnits, to.BorrowLimit = 30, 30
	for i := range d.Tenants {
		if rank := i; rank < clientsNamed && rank%2 == 0 {
			code := lender
			d.Tenants[i].Lane = &code
		}
	}
	return d
}

// The lanes of Lending.
const (
	lender   = control.LaneEnterprise
	borrower = control.LaneStandard
)

func lane(d *policy.Document, code string) *policy.LaneAccount {
	l, _ := d.Lane(code)
	return &l.Accounts[0]
}

func base() *policy.Document {
	d := policy.Default()
	d.PoolGroups = []policy.PoolGroup{{Code: policy.DefaultGroup, CapacityUnits: Units}}
	d.Models, d.Pools = []policy.Model{}, []policy.Pool{}
	for _, m := range []struct {
		code      string
		mean, p95 float64
		cents     int64
	}{{"short-clip", 45, 110, 10}, {"clip", 70, 170, 16}, {"long-clip", 125, 300, 28}} {
		d.Models = append(d.Models, policy.Model{
			Code: m.code, Kind: string(control.KindVideo), ResourceClass: "STANDARD",
			Resolutions: []string{"720p"}, Seconds: []int64{5}, SlotUnits: 1, MeanSeconds: m.mean, P95Seconds: m.p95,
			CostMicro: m.cents * control.MicroUnits / 100, PriceMicro: 2 * m.cents * control.MicroUnits / 100, PriceAsOf: "2026-11-01", Enabled: true,
		})
		d.Pools = append(d.Pools, policy.Pool{
			Key: "provider:example:acct-1:us:" + m.code, Kind: policy.PoolProvider, Group: policy.DefaultGroup, Parents: []string{},
			Provider: "example", Account: "acct-1", Region: "us", Model: m.code, CapacityUnits: Units, CanLookUp: true,
			LaneMinimums: []policy.LaneMinimum{}, DedicatedLanes: []string{},
		})
	}
	d.Plans = []policy.Plan{{Code: "tenant", Models: []string{}, Settings: policy.TenantSettings{
		Lane: control.LaneStandard, Weight: 1, BurstUnits: Units, MaxRunningTasks: Units, MaxRunningUnits: Units,
		MaxQueuedTasks: 100_000, MaxQueuedUnits: 10_000_000, MaxCostPerMinute: 1_000_000, MaxCostPerDay: 100_000_000,
		SubmitsPerMinute: 10_000, UserMaxQueuedTasks: 100_000,
		UserMaxRunningTasks: Units, UserMaxRunningImage: Units, UserMaxRunningVideo: Units, UserSubmitsPerMin: 10_000, Band: 2,
	}}}
	for rank := range clientsNamed {
		override(d, ClientTenant(rank)).Weight = pointer(Weight(rank))
	}
	for i, w := range EndlessWeights {
		override(d, EndlessTenant(i)).Weight = pointer(w)
	}
	o := override(d, HostileTenant)
	o.Weight, o.MaxRunningTasks, o.MaxRunningUnits = pointer(1), pointer(HostileRunning), pointer(HostileRunning)
	o.BurstUnits, o.MaxQueuedTasks = pointer(HostileRunning), pointer(500)
	return d
}

func override(d *policy.Document, code string) *policy.TenantOverride {
	d.Tenants = append(d.Tenants, policy.TenantOverride{TenantID: simulate.TenantID(code), Code: code})
	return &d.Tenants[len(d.Tenants)-1]
}

func pointer(v int64) *int64 { return &v }

// Ready returns the ready policy of that name.
func Ready(name string) (*policy.Document, error) {
	if make, ok := Policies[name]; ok {
		return make(), nil
	}
	return nil, fmt.Errorf("%q is not a ready policy; they are fair and lending", name)
}
