package demo

import (
	"fmt"
	"math"
	"time"

	"fairlane/control"
	"fairlane/policy"
)

// Bounds of FAIRLANE_DEMO_SPEED.
const (
	MinSpeed = 1
	MaxSpeed = 100
)

// peakLoad is what the busiest hour offers, as a multiple of what the pools can do.
const peakLoad = 1.2

// Platform is everything that the demo starts with.
type Platform struct {
	Speed   float64
	Tenants []Tenant
	Renders map[string]Render // by model, divided by the speed: what a simulated provider should take

	trace *Trace
	mixes [][]float64 // by tenant: cumulative share of each model of the catalogue
	scale float64     // of the trace's rates
}

// New makes the platform for a speed: how many seconds of the trace and of the providers' work pass in one.
func New(speed float64) (*Platform, error) {
	if math.IsNaN(speed) || speed < MinSpeed || speed > MaxSpeed {
		return nil, fmt.Errorf("FAIRLANE_DEMO_SPEED: %v is not between %d and %d", speed, MinSpeed, MaxSpeed)
	}
	trace, err := LoadTrace()
	if err != nil {
		return nil, err
	}
	p := &Platform{Speed: speed, Tenants: tenants(), Renders: map[string]Render{}, trace: trace}
	if trace.Clients() != len(p.Tenants) {
		return nil, fmt.Errorf("demo trace: %d clients for %d tenants", trace.Clients(), len(p.Tenants))
	}
	for _, m := range models {
		r := m.render()
		p.Renders[m.code] = Render{Median: divided(r.Median, speed), P95: divided(r.P95, speed)}
	}
	p.mixes, p.scale = p.demand()
	return p, nil
}

func divided(d time.Duration, speed float64) time.Duration {
	return time.Duration(float64(d) / speed)
}

// Document is the policy of the demo's first version. Times in it are divided by the speed and rates
// multiplied, within the ranges that the rules allow; capacities, weights and prices are not touched.
func (p *Platform) Document() *policy.Document {
	d := policy.Default()
	d.Scheduling.AgingStepSeconds = p.seconds(d.Scheduling.AgingStepSeconds, 10)
	d.Scheduling.EarmarkTimeout = p.seconds(1_200, 12) // twice the P95 of the slowest clip
	d.Scheduling.ProviderSecondBase = p.seconds(d.Scheduling.ProviderSecondBase, 1)
	d.Models = catalogue(p.Speed)
	d.Pools = pools()
	d.PoolGroups = []policy.PoolGroup{{Code: policy.DefaultGroup, CapacityUnits: platformUnits}}
	for i := range d.Lanes {
		l := &d.Lanes[i]
		l.WaitTargetSeconds = p.seconds(l.WaitTargetSeconds, 1)
		l.MaxQueuedTasks, l.MaxQueuedUnits = 20_000, 200_000
		if s, ok := lanes[l.Code]; ok {
			l.Weight = s.weight
			l.Accounts = []policy.LaneAccount{p.account(s)}
		}
	}
	d.Plans = nil
	for _, s := range plans {
		d.Plans = append(d.Plans, policy.Plan{Code: s.code, Models: append([]string{}, s.models...), Settings: p.settings(s)})
	}
	d.Tenants = []policy.TenantOverride{{
		TenantID: p.Tenants[0].ID, Code: p.Tenants[0].Code,
		Weight: pointer(12), ReservedUnits: pointer(10), BurstUnits: pointer(30), MaxRunningTasks: pointer(70), MaxRunningUnits: pointer(70),
	}}
	d.Limits.AttemptTimeoutFloor = p.seconds(d.Limits.AttemptTimeoutFloor, 15)
	return d
}

// seconds divides a setting by the speed; 0 stays what it means, nothing falls below floor.
func (p *Platform) seconds(v, floor int64) int64 {
	if v == 0 {
		return 0
	}
	return max(floor, int64(math.Round(float64(v)/p.Speed)))
}

func (p *Platform) perMinute(v int64) int64 { return int64(math.Round(float64(v) * p.Speed)) }

func pointer(v int64) *int64 { return &v }

// lanes hold 90 of the platform's 120 units; the rest is common. In the busiest hour every lane asks for more
// than it holds and queues form; later ones drain them. Through the working day enterprise customers ask for
// far less than their lane holds while paid ones ask for more than theirs and the common units.
//
// What enterprise and paid customers leave idle is lent to tasks that are short enough to be gone when it
// is wanted back; a few units are kept free for those that come before.
var lanes = map[string]laneSpec{
	control.LaneEnterprise: {weight: 8, reserved: 44, headroom: 6, lendable: 30, lendsTo: []string{control.LanePaid, control.LaneStandard}},
	control.LanePaid:       {weight: 4, reserved: 28, headroom: 8, lendable: 8, lendsTo: []string{control.LaneStandard, control.LaneBestEffort}, borrows: 20},
	control.LaneStandard:   {weight: 2, reserved: 6, borrows: 12},
	control.LaneBestEffort: {borrows: 4},
	control.LaneExpensive:  {weight: 4, reserved: 10},
	control.LaneRecovery:   {weight: 1, reserved: 2},
}

type laneSpec struct {
	weight, reserved, headroom, lendable, borrows int64
	lendsTo                                       []string
}

// lentFor is within how many seconds a lent unit is back: the P95 of most models' default clips fits in it,
// that of the slow ones and of long clips does not.
const lentFor = 300

func (p *Platform) account(s laneSpec) policy.LaneAccount {
	a := policy.LaneAccount{
		PoolGroup: policy.DefaultGroup, ReservedUnits: s.reserved, HeadroomUnits: s.headroom, LendableUnits: s.lendable,
		LendsTo: append([]string{}, s.lendsTo...), Cooldown: p.seconds(policy.DefaultCooldown, 1), BorrowLimit: s.borrows,
	}
	if s.lendable > 0 {
		a.BorrowTimeout = p.seconds(lentFor, 1)
	}
	return a
}

type planSpec struct {
	code, lane              string
	weight, reserved, burst int64
	running, queued         int64 // of the tenant
	userRunning, userQueued int64
	maxWait                 int64 // seconds
	submits                 int64 // per minute and tenant
	cost                    int64 // per minute, tenths of the currency
	band                    int64
	models                  []string // empty: all
}

// affordable is what the free plan may use.
var affordable = []string{"veo-3.1-lite", "kling-v3", "seedance-1.5-pro", "hailuo-02", "wan2.7-t2v", "gen4_turbo", "ray-3.2"}

var plans = []planSpec{
	{planEnterprise, control.LaneEnterprise, 8, 3, 24, 50, 5_000, 6, 100, 0, 600, 5_000, 2, nil},
	{planBusiness, control.LanePaid, 8, 3, 18, 40, 2_000, 5, 60, 14_400, 400, 3_000, 2, nil},
	{planPro, control.LanePaid, 3, 0, 10, 20, 800, 4, 40, 10_800, 200, 1_500, 2, nil},
	{planStandard, control.LaneStandard, 2, 0, 6, 10, 300, 3, 30, 10_800, 100, 1_000, 3, nil},
	{planFree, control.LaneBestEffort, 1, 0, 3, 3, 60, 1, 15, 21_600, 60, 300, 4, affordable},
}

func (p *Platform) settings(s planSpec) policy.TenantSettings {
	return policy.TenantSettings{
		Lane: s.lane, Weight: s.weight, ReservedUnits: s.reserved, BurstUnits: s.burst,
		MaxRunningTasks: s.running, MaxRunningUnits: s.running,
		MaxQueuedTasks: s.queued, MaxQueuedUnits: s.queued * 20, MaxWaitSeconds: p.seconds(s.maxWait, 1),
		MaxCostPerMinute: p.perMinute(s.cost), MaxCostPerDay: p.perMinute(s.cost * 200),
		SubmitsPerMinute:   p.perMinute(s.submits),
		UserMaxQueuedTasks: s.userQueued, UserMaxRunningTasks: s.userRunning,
		UserMaxRunningImage: s.userRunning, UserMaxRunningVideo: s.userRunning,
		UserSubmitsPerMin: p.perMinute(20), Band: s.band,
	}
}
