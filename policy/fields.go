package policy

// Unit says what a number of the document counts, so that pages can write it in the reader's language.
type Unit string

// The units of the document's numbers.
const (
	UnitNone      Unit = ""
	UnitWeight    Unit = "weight"
	UnitSlots     Unit = "slot_units"
	UnitFairness  Unit = "fairness_units"
	UnitCost      Unit = "cost_units"
	UnitMicro     Unit = "micro_units" // of the platform's currency
	UnitTasks     Unit = "tasks"
	UnitPerMinute Unit = "per_minute"
	UnitSeconds   Unit = "seconds"
	UnitRounds    Unit = "rounds"
	UnitBands     Unit = "bands"
	UnitTimes     Unit = "times"
	UnitPermille  Unit = "permille"
	UnitBytes     Unit = "bytes"
)

// The largest numbers that a document may hold. Sums over all tenants of such numbers stay far below 2^63.
const (
	MaxWeight  = 1_000_000
	MaxUnits   = 1_000_000_000
	MaxTasks   = 1_000_000_000
	MaxSeconds = 31_536_000 // one year
	MaxMicro   = 1_000_000_000_000
	MaxSlots   = 10_000 // of one task
	MaxCost    = 10_000 // fairness units of one task
)

// number is a whole number of an object: its place, unit and range, used alike by the rules, the
// differences and the edits, so that the three cannot disagree.
type number[T any] struct {
	name     string
	unit     Unit
	min, max int64
	at       func(*T) *int64
}

// other is a setting that is not a whole number.
type other[T any] struct {
	name string
	unit Unit
	get  func(*T) any // bool, string, float64, []string or []int64
}

var schedulingNumbers = []number[Scheduling]{
	{"base_quantum_units", UnitFairness, 1, 10_000, func(s *Scheduling) *int64 { return &s.BaseQuantumUnits }},
	{"burst_rounds", UnitRounds, 1, 1_000, func(s *Scheduling) *int64 { return &s.BurstRounds }},
	{"initial_burst_credit", UnitFairness, 0, 1_000, func(s *Scheduling) *int64 { return &s.InitialBurstCredit }},
	{"aging_step_seconds", UnitSeconds, 10, 86_400, func(s *Scheduling) *int64 { return &s.AgingStepSeconds }},
	{"aging_cap", UnitBands, 3, 4, func(s *Scheduling) *int64 { return &s.AgingCap }},
	{"fit_scan", UnitTasks, 0, 256, func(s *Scheduling) *int64 { return &s.FitScan }},
	{"max_skips", UnitTimes, 1, 100, func(s *Scheduling) *int64 { return &s.MaxSkips }},
	{"earmark_after_seconds", UnitSeconds, 0, 86_400, func(s *Scheduling) *int64 { return &s.EarmarkAfter }},
	{"earmark_timeout_seconds", UnitSeconds, 0, MaxSeconds, func(s *Scheduling) *int64 { return &s.EarmarkTimeout }},
	{"repay_permille", UnitPermille, 0, 900, func(s *Scheduling) *int64 { return &s.RepayPermille }},
	{"debt_task_units", UnitFairness, 0, 100_000, func(s *Scheduling) *int64 { return &s.DebtTaskUnits }},
	{"debt_total_units", UnitFairness, 0, 100_000, func(s *Scheduling) *int64 { return &s.DebtTotalUnits }},
	{"provider_second_base", UnitSeconds, 1, 86_400, func(s *Scheduling) *int64 { return &s.ProviderSecondBase }},
	{"cost_base_micro", UnitMicro, 1, MaxMicro, func(s *Scheduling) *int64 { return &s.CostBaseMicro }},
	{"gpu_second_base", UnitSeconds, 1, 86_400, func(s *Scheduling) *int64 { return &s.GPUSecondBase }},
}

var laneNumbers = []number[Lane]{
	{"weight", UnitWeight, 0, MaxWeight, func(l *Lane) *int64 { return &l.Weight }},
	{"wait_target_seconds", UnitSeconds, 0, MaxSeconds, func(l *Lane) *int64 { return &l.WaitTargetSeconds }},
	{"max_queued_tasks", UnitTasks, 0, MaxTasks, func(l *Lane) *int64 { return &l.MaxQueuedTasks }},
	{"max_queued_units", UnitFairness, 0, MaxUnits, func(l *Lane) *int64 { return &l.MaxQueuedUnits }},
	{"max_attempts", UnitTimes, 1, 20, func(l *Lane) *int64 { return &l.MaxAttempts }},
	{"max_wait_seconds", UnitSeconds, 0, MaxSeconds, func(l *Lane) *int64 { return &l.MaxWaitSeconds }},
}

var laneSwitches = map[string]func(*Lane) *bool{
	"paused":              func(l *Lane) *bool { return &l.Paused },
	"admission_open":      func(l *Lane) *bool { return &l.AdmissionOpen },
	"pause_when_degraded": func(l *Lane) *bool { return &l.PauseWhenDegraded },
}

var laneOthers = []other[Lane]{
	{"strategy", UnitNone, func(l *Lane) any { return string(l.Strategy) }},
	{"paused", UnitNone, func(l *Lane) any { return l.Paused }},
	{"admission_open", UnitNone, func(l *Lane) any { return l.AdmissionOpen }},
	{"pause_when_degraded", UnitNone, func(l *Lane) any { return l.PauseWhenDegraded }},
}

var accountNumbers = []number[LaneAccount]{
	{"reserved_units", UnitSlots, 0, MaxUnits, func(a *LaneAccount) *int64 { return &a.ReservedUnits }},
	{"headroom_units", UnitSlots, 0, MaxUnits, func(a *LaneAccount) *int64 { return &a.HeadroomUnits }},
	{"lendable_units", UnitSlots, 0, MaxUnits, func(a *LaneAccount) *int64 { return &a.LendableUnits }},
	{"borrow_timeout_seconds", UnitSeconds, 0, 86_400, func(a *LaneAccount) *int64 { return &a.BorrowTimeout }},
	{"cooldown_seconds", UnitSeconds, 0, 3_600, func(a *LaneAccount) *int64 { return &a.Cooldown }},
	{"borrow_limit_units", UnitSlots, 0, MaxUnits, func(a *LaneAccount) *int64 { return &a.BorrowLimit }},
}

var accountOthers = []other[LaneAccount]{
	{"lends_to", UnitNone, func(a *LaneAccount) any { return a.LendsTo }},
}

var groupNumbers = []number[PoolGroup]{
	{"capacity_units", UnitSlots, 0, MaxUnits, func(g *PoolGroup) *int64 { return &g.CapacityUnits }},
}

var planNumbers = []number[TenantSettings]{
	{"weight", UnitWeight, 0, MaxWeight, func(s *TenantSettings) *int64 { return &s.Weight }},
	{"reserved_units", UnitSlots, 0, MaxUnits, func(s *TenantSettings) *int64 { return &s.ReservedUnits }},
	{"burst_units", UnitSlots, 0, MaxUnits, func(s *TenantSettings) *int64 { return &s.BurstUnits }},
	{"max_running_tasks", UnitTasks, 0, MaxTasks, func(s *TenantSettings) *int64 { return &s.MaxRunningTasks }},
	{"max_running_units", UnitSlots, 0, MaxUnits, func(s *TenantSettings) *int64 { return &s.MaxRunningUnits }},
	{"max_queued_tasks", UnitTasks, 0, MaxTasks, func(s *TenantSettings) *int64 { return &s.MaxQueuedTasks }},
	{"max_queued_units", UnitFairness, 0, MaxUnits, func(s *TenantSettings) *int64 { return &s.MaxQueuedUnits }},
	{"max_wait_seconds", UnitSeconds, 0, MaxSeconds, func(s *TenantSettings) *int64 { return &s.MaxWaitSeconds }},
	{"max_cost_per_minute", UnitCost, 0, MaxUnits, func(s *TenantSettings) *int64 { return &s.MaxCostPerMinute }},
	{"max_cost_per_day", UnitCost, 0, MaxMicro, func(s *TenantSettings) *int64 { return &s.MaxCostPerDay }},
	{"submits_per_minute", UnitPerMinute, 0, MaxTasks, func(s *TenantSettings) *int64 { return &s.SubmitsPerMinute }},
	{"user_max_queued_tasks", UnitTasks, 0, MaxTasks, func(s *TenantSettings) *int64 { return &s.UserMaxQueuedTasks }},
	{"user_max_running_tasks", UnitTasks, 0, MaxTasks, func(s *TenantSettings) *int64 { return &s.UserMaxRunningTasks }},
	{"user_max_running_image", UnitTasks, 0, MaxTasks, func(s *TenantSettings) *int64 { return &s.UserMaxRunningImage }},
	{"user_max_running_video", UnitTasks, 0, MaxTasks, func(s *TenantSettings) *int64 { return &s.UserMaxRunningVideo }},
	{"user_submits_per_minute", UnitPerMinute, 0, MaxTasks, func(s *TenantSettings) *int64 { return &s.UserSubmitsPerMin }},
	{"band", UnitBands, 1, 4, func(s *TenantSettings) *int64 { return &s.Band }},
}

// overrides are the whole numbers of a plan that a tenant may have of its own.
var overrides = map[string]func(*TenantOverride) **int64{
	"weight":                 func(o *TenantOverride) **int64 { return &o.Weight },
	"reserved_units":         func(o *TenantOverride) **int64 { return &o.ReservedUnits },
	"burst_units":            func(o *TenantOverride) **int64 { return &o.BurstUnits },
	"max_running_tasks":      func(o *TenantOverride) **int64 { return &o.MaxRunningTasks },
	"max_running_units":      func(o *TenantOverride) **int64 { return &o.MaxRunningUnits },
	"max_queued_tasks":       func(o *TenantOverride) **int64 { return &o.MaxQueuedTasks },
	"max_queued_units":       func(o *TenantOverride) **int64 { return &o.MaxQueuedUnits },
	"user_max_queued_tasks":  func(o *TenantOverride) **int64 { return &o.UserMaxQueuedTasks },
	"user_max_running_tasks": func(o *TenantOverride) **int64 { return &o.UserMaxRunningTasks },
	"user_max_running_image": func(o *TenantOverride) **int64 { return &o.UserMaxRunningImage },
	"user_max_running_video": func(o *TenantOverride) **int64 { return &o.UserMaxRunningVideo },
}

var poolNumbers = []number[Pool]{
	{"capacity_units", UnitSlots, 0, MaxUnits, func(p *Pool) *int64 { return &p.CapacityUnits }},
	{"preference", UnitNone, 0, 1_000_000, func(p *Pool) *int64 { return &p.Preference }},
}

var poolOthers = []other[Pool]{
	{"kind", UnitNone, func(p *Pool) any { return string(p.Kind) }},
	{"group", UnitNone, func(p *Pool) any { return p.Group }},
	{"parents", UnitNone, func(p *Pool) any { return p.Parents }},
	{"provider", UnitNone, func(p *Pool) any { return p.Provider }},
	{"account", UnitNone, func(p *Pool) any { return p.Account }},
	{"region", UnitNone, func(p *Pool) any { return p.Region }},
	{"model", UnitNone, func(p *Pool) any { return p.Model }},
	{"paused", UnitNone, func(p *Pool) any { return p.Paused }},
	{"can_look_up", UnitNone, func(p *Pool) any { return p.CanLookUp }},
	{"lane_minimums", UnitSlots, func(p *Pool) any { return minimumTexts(p.LaneMinimums) }},
	{"dedicated_lanes", UnitNone, func(p *Pool) any { return p.DedicatedLanes }},
	{"dedicated_tenants", UnitNone, func(p *Pool) any { return idTexts(p.DedicatedTenants) }},
}

var poolSwitches = map[string]func(*Pool) *bool{
	"paused":      func(p *Pool) *bool { return &p.Paused },
	"can_look_up": func(p *Pool) *bool { return &p.CanLookUp },
}

var modelNumbers = []number[Model]{
	{"slot_units", UnitSlots, 1, MaxSlots, func(m *Model) *int64 { return &m.SlotUnits }},
	{"cost_micro", UnitMicro, 0, MaxMicro, func(m *Model) *int64 { return &m.CostMicro }},
	{"price_micro", UnitMicro, 0, MaxMicro, func(m *Model) *int64 { return &m.PriceMicro }},
}

var modelOthers = []other[Model]{
	{"kind", UnitNone, func(m *Model) any { return m.Kind }},
	{"resource_class", UnitNone, func(m *Model) any { return m.ResourceClass }},
	{"resolutions", UnitNone, func(m *Model) any { return m.Resolutions }},
	{"duration_seconds", UnitSeconds, func(m *Model) any { return m.Seconds }},
	{"mean_seconds", UnitSeconds, func(m *Model) any { return m.MeanSeconds }},
	{"p95_seconds", UnitSeconds, func(m *Model) any { return m.P95Seconds }},
	{"gpu_seconds", UnitSeconds, func(m *Model) any { return m.GPUSeconds }},
	{"price_as_of", UnitNone, func(m *Model) any { return m.PriceAsOf }},
	{"retire_on", UnitNone, func(m *Model) any { return m.RetireOn }},
	{"enabled", UnitNone, func(m *Model) any { return m.Enabled }},
}

var limitNumbers = []number[Limits]{
	{"max_queued_tasks", UnitTasks, 0, MaxTasks, func(l *Limits) *int64 { return &l.MaxQueuedTasks }},
	{"max_queued_units", UnitFairness, 0, MaxMicro, func(l *Limits) *int64 { return &l.MaxQueuedUnits }},
	{"guaranteed_queue_tasks", UnitTasks, 0, 10_000, func(l *Limits) *int64 { return &l.GuaranteedQueue }},
	{"max_body_bytes", UnitBytes, 1_024, 1 << 20, func(l *Limits) *int64 { return &l.MaxBodyBytes }},
	{"attempt_timeout_floor_seconds", UnitSeconds, 1, 86_400, func(l *Limits) *int64 { return &l.AttemptTimeoutFloor }},
}

var limitOthers = []other[Limits]{
	{"safe_utilisation", UnitNone, func(l *Limits) any { return l.SafeUtilisation }},
	{"attempt_timeout_p95_factor", UnitTimes, func(l *Limits) any { return l.AttemptTimeoutP95 }},
}

var switchFields = map[string]func(*Switches) *bool{
	"admission_open":     func(s *Switches) *bool { return &s.AdmissionOpen },
	"scheduling_running": func(s *Switches) *bool { return &s.SchedulingRunning },
}

var switchOthers = []other[Switches]{
	{"admission_open", UnitNone, func(s *Switches) any { return s.AdmissionOpen }},
	{"scheduling_running", UnitNone, func(s *Switches) any { return s.SchedulingRunning }},
}

func named[T any](list []number[T], name string) (number[T], bool) {
	for _, n := range list {
		if n.name == name {
			return n, true
		}
	}
	return number[T]{}, false
}
