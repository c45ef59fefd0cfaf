package policy

import "fairlane/control"

// DefaultGroup is the pool group of the shipped document.
const DefaultGroup = "default"

// ClassExpensive is the resource class that the shipped document routes to the lane of costly tasks.
const ClassExpensive = "EXPENSIVE"

// DefaultCooldown is how many seconds a lane must have been without need before it lends again.
const DefaultCooldown = 60

// Default returns the shipped document: the numbers of the design, six lanes, four plans and one pool
// group without pools. Lanes hold nothing until pools exist.
func Default() *Document {
	return &Document{
		Schema: SchemaVersion,
		Scheduling: Scheduling{
			BaseQuantumUnits: 4, BurstRounds: 20, InitialBurstCredit: 0,
			AgingStepSeconds: 300, AgingCap: 3, FitScan: 16, MaxSkips: 4,
			RepayPermille: 500, DebtTaskUnits: 50, DebtTotalUnits: 500,
			ProviderSecondBase: 30, CostBaseMicro: control.MicroUnits / 10, GPUSecondBase: 30,
		},
		Lanes: []Lane{
			defaultLane(control.LaneEnterprise, 8, 30),
			defaultLane(control.LanePaid, 4, 180),
			defaultLane(control.LaneStandard, 2, 600),
			degradable(defaultLane(control.LaneBestEffort, 0, 0)),
			degradable(defaultLane(control.LaneExpensive, 1, 900)),
			defaultLane(control.LaneRecovery, 1, 0),
		},
		PoolGroups: []PoolGroup{{Code: DefaultGroup}},
		Plans: []Plan{
			defaultPlan("enterprise", control.LaneEnterprise, 4, 2),
			defaultPlan("pro", control.LanePaid, 2, 2),
			defaultPlan("standard", control.LaneStandard, 1, 3),
			defaultPlan("free", control.LaneBestEffort, 1, 4),
		},
		Tenants: []TenantOverride{},
		Pools:   []Pool{},
		Models:  []Model{},
		Routing: []RoutingRule{
			{Mark: MarkRecovery, Lane: control.LaneRecovery},
			{ResourceClass: ClassExpensive, Lane: control.LaneExpensive},
		},
		Limits: Limits{
			MaxQueuedTasks: 1_000_000, MaxQueuedUnits: 10_000_000, GuaranteedQueue: 10,
			SafeUtilisation: 0.75, MaxBodyBytes: 1 << 20,
			AttemptTimeoutFloor: 600, AttemptTimeoutP95: 4,
		},
		Switches: Switches{AdmissionOpen: true, SchedulingRunning: true},
	}
}

func defaultLane(code string, weight, target int64) Lane {
	return Lane{
		Code: code, Weight: weight, Strategy: DRR,
		Accounts:      []LaneAccount{{PoolGroup: DefaultGroup, LendsTo: []string{}, Cooldown: DefaultCooldown}},
		AdmissionOpen: true, WaitTargetSeconds: target,
		MaxQueuedTasks: 200_000, MaxQueuedUnits: 2_000_000, MaxAttempts: 3,
	}
}

func degradable(l Lane) Lane {
	l.PauseWhenDegraded = true
	return l
}

func defaultPlan(code, lane string, weight, band int64) Plan {
	return Plan{Code: code, Models: []string{}, Settings: TenantSettings{
		Lane: lane, Weight: weight, ReservedUnits: 0, BurstUnits: 24,
		MaxRunningTasks: 100, MaxRunningUnits: 240,
		MaxQueuedTasks: 5_000, MaxQueuedUnits: 100_000, MaxWaitSeconds: 0,
		MaxCostPerMinute: 1_000, MaxCostPerDay: 200_000, SubmitsPerMinute: 100,
		UserMaxQueuedTasks: 20, UserMaxRunningTasks: 2, UserMaxRunningImage: 2, UserMaxRunningVideo: 1,
		UserSubmitsPerMin: 5, Band: band,
	}}
}
