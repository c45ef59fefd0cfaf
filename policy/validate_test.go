package policy_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"fairlane/control"
	"fairlane/policy"
)

func TestShippedDocumentIsValid(t *testing.T) {
	t.Parallel()
	wantNone(t, policy.Validate(policy.Default(), nil))
	wantNone(t, policy.Validate(policy.Default(), tenants(8)))
	wantNone(t, policy.Validate(sample(), tenants(8)))
}

type breach struct {
	name  string
	edit  func(d *policy.Document, ts []policy.Tenant)
	field string
	key   string
}

func override(ts []policy.Tenant, i int, o policy.TenantOverride) policy.TenantOverride {
	o.TenantID, o.Code = ts[i].ID, ts[i].Code
	return o
}

// lender and kept are where lends and keeps change something.
const (
	lender = "lanes[ENTERPRISE_RESERVED].accounts[default]"
	kept   = "pools[provider:runway:acct-1:us:gen4]"
)

// lends breaks something of a lane that lends 25 of its 30 units and keeps 5 free.
func lends(edit func(*policy.LaneAccount)) func(*policy.Document, []policy.Tenant) {
	return func(d *policy.Document, _ []policy.Tenant) { edit(lending(d)) }
}

func lending(d *policy.Document) *policy.LaneAccount {
	a := &d.Lanes[0].Accounts[0]
	a.HeadroomUnits, a.LendableUnits, a.BorrowTimeout, a.LendsTo = 5, 25, 600, []string{control.LanePaid, control.LaneStandard}
	return a
}

// keeps breaks something of a pool that keeps 2 of its 40 units for a lane.
func keeps(edit func(*policy.Pool)) func(*policy.Document, []policy.Tenant) {
	return func(d *policy.Document, _ []policy.Tenant) { edit(keeping(d)) }
}

func keeping(d *policy.Document) *policy.Pool {
	p := &d.Pools[1]
	p.LaneMinimums = []policy.LaneMinimum{{Lane: control.LaneRecovery, Units: 2}}
	return p
}

var breaches = []breach{
	{"newer schema", func(d *policy.Document, _ []policy.Tenant) { d.Schema = 99 }, "schema", policy.KeySchema},
	{"base quantum 0", func(d *policy.Document, _ []policy.Tenant) { d.Scheduling.BaseQuantumUnits = 0 }, "scheduling.base_quantum_units", policy.KeyRange},
	{"base quantum", func(d *policy.Document, _ []policy.Tenant) { d.Scheduling.BaseQuantumUnits = 10_001 }, "scheduling.base_quantum_units", policy.KeyRange},
	{"burst rounds", func(d *policy.Document, _ []policy.Tenant) { d.Scheduling.BurstRounds = 1_001 }, "scheduling.burst_rounds", policy.KeyRange},
	{"initial credit", func(d *policy.Document, _ []policy.Tenant) { d.Scheduling.InitialBurstCredit = -1 }, "scheduling.initial_burst_credit", policy.KeyRange},
	{"aging step", func(d *policy.Document, _ []policy.Tenant) { d.Scheduling.AgingStepSeconds = 9 }, "scheduling.aging_step_seconds", policy.KeyRange},
	{"aging cap 2 starves", func(d *policy.Document, _ []policy.Tenant) { d.Scheduling.AgingCap = 2 }, "scheduling.aging_cap", policy.KeyRange},
	{"fit scan", func(d *policy.Document, _ []policy.Tenant) { d.Scheduling.FitScan = 257 }, "scheduling.fit_scan", policy.KeyRange},
	{"max skips", func(d *policy.Document, _ []policy.Tenant) { d.Scheduling.MaxSkips = 0 }, "scheduling.max_skips", policy.KeyRange},
	{"repay share", func(d *policy.Document, _ []policy.Tenant) { d.Scheduling.RepayPermille = 901 }, "scheduling.repay_permille", policy.KeyRange},
	{"debt of a task", func(d *policy.Document, _ []policy.Tenant) { d.Scheduling.DebtTaskUnits = 100_001 }, "scheduling.debt_task_units", policy.KeyRange},
	{"debt in total", func(d *policy.Document, _ []policy.Tenant) { d.Scheduling.DebtTotalUnits = -1 }, "scheduling.debt_total_units", policy.KeyRange},
	{"earmark after", func(d *policy.Document, _ []policy.Tenant) { d.Scheduling.EarmarkAfter = 86_401 }, "scheduling.earmark_after_seconds", policy.KeyRange},
	{"earmark timeout negative", func(d *policy.Document, _ []policy.Tenant) { d.Scheduling.EarmarkTimeout = -1 }, "scheduling.earmark_timeout_seconds", policy.KeyRange},
	{"earmark timeout below P95", func(d *policy.Document, _ []policy.Tenant) { d.Scheduling.EarmarkTimeout = 399 }, "scheduling.earmark_timeout_seconds", policy.KeyEarmarkBelowP95},
	{"cost base", func(d *policy.Document, _ []policy.Tenant) { d.Scheduling.CostBaseMicro = 0 }, "scheduling.cost_base_micro", policy.KeyRange},
	{"lane weight", func(d *policy.Document, _ []policy.Tenant) { d.Lanes[0].Weight = 1_000_001 }, "lanes[ENTERPRISE_RESERVED].weight", policy.KeyRange},
	{"lane weight negative", func(d *policy.Document, _ []policy.Tenant) { d.Lanes[0].Weight = math.MinInt64 }, "lanes[ENTERPRISE_RESERVED].weight", policy.KeyRange},
	{"lane strategy", func(d *policy.Document, _ []policy.Tenant) { d.Lanes[0].Strategy = "FIFO" }, "lanes[ENTERPRISE_RESERVED].strategy", policy.KeyNotOneOf},
	{"lane attempts", func(d *policy.Document, _ []policy.Tenant) { d.Lanes[0].MaxAttempts = 0 }, "lanes[ENTERPRISE_RESERVED].max_attempts", policy.KeyRange},
	{"lane twice", func(d *policy.Document, _ []policy.Tenant) {
		l := d.Lanes[2]
		l.Accounts = slices.Clone(l.Accounts)
		d.Lanes = append(d.Lanes, l)
	}, "lanes[STANDARD].code", policy.KeyDuplicate},
	{"lane code", func(d *policy.Document, _ []policy.Tenant) {
		d.Lanes = append(d.Lanes, policy.Lane{Code: "<b>", Strategy: policy.DRR, MaxAttempts: 1, Accounts: []policy.LaneAccount{{PoolGroup: "default"}}})
	}, "lanes[6].code", policy.KeyCodeCharacters},
	{"lane without account", func(d *policy.Document, _ []policy.Tenant) {
		d.Lanes = append(d.Lanes, policy.Lane{Code: "NEW", Strategy: policy.DRR, MaxAttempts: 1})
	}, "lanes[NEW].accounts", policy.KeyRequired},
	{"account of no group", func(d *policy.Document, _ []policy.Tenant) {
		d.Lanes[0].Accounts = append(d.Lanes[0].Accounts, policy.LaneAccount{PoolGroup: "nowhere"})
	}, "lanes[ENTERPRISE_RESERVED].accounts[nowhere].pool_group", policy.KeyUnknown},
	{"account twice", func(d *policy.Document, _ []policy.Tenant) {
		d.Lanes[0].Accounts = append(d.Lanes[0].Accounts, policy.LaneAccount{PoolGroup: "default"})
	}, "lanes[ENTERPRISE_RESERVED].accounts[default].pool_group", policy.KeyDuplicate},
	{"reserves over capacity", func(d *policy.Document, _ []policy.Tenant) { setReserve(d, control.LaneStandard, 27) }, "pool_groups[default].reserved_units", policy.KeySumOverCapacity},
	{"capacity below reserves", func(d *policy.Document, _ []policy.Tenant) { d.PoolGroups[0].CapacityUnits = 65 }, "pool_groups[default].reserved_units", policy.KeySumOverCapacity},
	{"plan lane", func(d *policy.Document, _ []policy.Tenant) { d.Plans[3].Settings.Lane = "GONE" }, "plans[free].settings.lane", policy.KeyUnknown},
	{"plan band", func(d *policy.Document, _ []policy.Tenant) { d.Plans[0].Settings.Band = 0 }, "plans[enterprise].settings.band", policy.KeyRange},
	{"plan model", func(d *policy.Document, _ []policy.Tenant) { d.Plans[0].Models = []string{"gen4", "sora"} }, "plans[enterprise].models[sora]", policy.KeyUnknown},
	{"plan share", func(d *policy.Document, _ []policy.Tenant) { d.Plans[1].Settings.BurstUnits = 1 }, "plans[pro].settings.burst_units", policy.KeyShareBelowTask},
	{"plan in use", func(d *policy.Document, ts []policy.Tenant) { ts[2].PlanCode = "gone" }, "plans[gone]", policy.KeyPlanInUse},
	{"tenant weight", func(d *policy.Document, ts []policy.Tenant) {
		d.Tenants = append(d.Tenants, override(ts, 0, policy.TenantOverride{Weight: value(1_000_001)}))
	}, "tenants[t-0000].weight", policy.KeyRange},
	{"tenant negative", func(d *policy.Document, ts []policy.Tenant) {
		d.Tenants = append(d.Tenants, override(ts, 0, policy.TenantOverride{MaxRunningTasks: value(-1)}))
	}, "tenants[t-0000].max_running_tasks", policy.KeyRange},
	{"tenant lane", func(d *policy.Document, ts []policy.Tenant) {
		lane := "GONE"
		d.Tenants = append(d.Tenants, override(ts, 0, policy.TenantOverride{Lane: &lane}))
	}, "tenants[t-0000].lane", policy.KeyUnknown},
	{"tenant share", func(d *policy.Document, ts []policy.Tenant) {
		d.Tenants = append(d.Tenants, override(ts, 0, policy.TenantOverride{BurstUnits: value(1)}))
	}, "tenants[t-0000].burst_units", policy.KeyShareBelowTask},
	{"headroom negative", lends(func(a *policy.LaneAccount) { a.HeadroomUnits = -1 }), lender + ".headroom_units", policy.KeyRange},
	{"headroom over reserve", lends(func(a *policy.LaneAccount) { a.HeadroomUnits = 31 }), lender + ".headroom_units", policy.KeyHeadroomOverLane},
	{"lendable huge", lends(func(a *policy.LaneAccount) { a.LendableUnits = math.MaxInt64 }), lender + ".lendable_units", policy.KeyLendableOverLane},
	{"lendable over reserve less headroom", lends(func(a *policy.LaneAccount) { a.LendableUnits = 26 }), lender + ".lendable_units", policy.KeyLendableOverLane},
	{"lends without a promise", lends(func(a *policy.LaneAccount) { a.BorrowTimeout = 0 }), lender + ".borrow_timeout_seconds", policy.KeyNoBorrowTimeout},
	{"borrow timeout", lends(func(a *policy.LaneAccount) { a.BorrowTimeout = 86_401 }), lender + ".borrow_timeout_seconds", policy.KeyRange},
	{"cooldown", lends(func(a *policy.LaneAccount) { a.Cooldown = 3_601 }), lender + ".cooldown_seconds", policy.KeyRange},
	{"borrow limit", lends(func(a *policy.LaneAccount) { a.BorrowLimit = -1 }), lender + ".borrow_limit_units", policy.KeyRange},
	{"lends to nobody known", lends(func(a *policy.LaneAccount) { a.LendsTo = []string{"GONE"} }), lender + ".lends_to", policy.KeyUnknown},
	{"lends to itself", lends(func(a *policy.LaneAccount) { a.LendsTo = []string{control.LaneEnterprise} }), lender + ".lends_to", policy.KeyLendsToItself},
	{"lends twice", lends(func(a *policy.LaneAccount) { a.LendsTo = append(a.LendsTo, control.LanePaid) }), lender + ".lends_to", policy.KeyDuplicate},
	{"lends to too many", lends(func(a *policy.LaneAccount) { a.LendsTo = make([]string, 65) }), lender + ".lends_to", policy.KeyTooMany},
	{"lends into another group", func(d *policy.Document, _ []policy.Tenant) {
		d.PoolGroups = append(d.PoolGroups, policy.PoolGroup{Code: "veo"})
		d.Lanes[0].Accounts = append(d.Lanes[0].Accounts, policy.LaneAccount{PoolGroup: "veo", LendsTo: []string{control.LanePaid}})
	}, "lanes[ENTERPRISE_RESERVED].accounts[veo].lends_to", policy.KeyLendsElsewhere},
	{"minimum of nobody", keeps(func(p *policy.Pool) { p.LaneMinimums[0].Lane = "GONE" }), kept + ".lane_minimums", policy.KeyUnknown},
	{"minimum of nothing", keeps(func(p *policy.Pool) { p.LaneMinimums[0].Units = 0 }), kept + ".lane_minimums", policy.KeyRange},
	{"minimum huge", keeps(func(p *policy.Pool) { p.LaneMinimums[0].Units = math.MaxInt64 }), kept + ".lane_minimums", policy.KeyRange},
	{"minimum twice", keeps(func(p *policy.Pool) { p.LaneMinimums = append(p.LaneMinimums, p.LaneMinimums[0]) }), kept + ".lane_minimums", policy.KeyDuplicate},
	{"minimums over pool", keeps(func(p *policy.Pool) { p.LaneMinimums[0].Units = 41 }), kept + ".lane_minimums", policy.KeyMinimumsOverPool},
	{"minimum not taken", keeps(func(p *policy.Pool) { p.DedicatedLanes = []string{control.LanePaid} }), kept + ".lane_minimums", policy.KeyMinimumNotTaken},
	{"minimums too many", keeps(func(p *policy.Pool) { p.LaneMinimums = make([]policy.LaneMinimum, 65) }), kept + ".lane_minimums", policy.KeyTooMany},
	{"minimum leaves no room", keeps(func(p *policy.Pool) { p.LaneMinimums[0].Units = 39 }), "lanes[PAID_SHARED].accounts", policy.KeyPoolsKept},
	{"minimum above leaves no room", func(d *policy.Document, _ []policy.Tenant) {
		d.Pools[0].LaneMinimums = []policy.LaneMinimum{{Lane: control.LaneRecovery, Units: 59}}
	}, "lanes[PAID_SHARED].accounts", policy.KeyPoolsKept},
	{"dedicated to nobody", keeps(func(p *policy.Pool) { p.DedicatedLanes = []string{"GONE"} }), kept + ".dedicated_lanes", policy.KeyUnknown},
	{"dedicated twice", keeps(func(p *policy.Pool) { p.DedicatedLanes = []string{control.LanePaid, control.LanePaid} }), kept + ".dedicated_lanes", policy.KeyDuplicate},
	{"dedicated to too many", keeps(func(p *policy.Pool) { p.DedicatedLanes = make([]string, 65) }), kept + ".dedicated_lanes", policy.KeyTooMany},
	{"dedicated away", keeps(func(p *policy.Pool) { p.DedicatedLanes = []string{control.LaneRecovery} }), "lanes[STANDARD].accounts", policy.KeyPoolsKept},
	{"dedicated to an unknown tenant", keeps(func(p *policy.Pool) { p.DedicatedTenants = []uuid.UUID{uuid.NameSpaceDNS} }), kept + ".dedicated_tenants", policy.KeyUnknown},
	{"dedicated to a tenant twice", func(d *policy.Document, ts []policy.Tenant) {
		d.Pools[1].DedicatedTenants = []uuid.UUID{ts[0].ID, ts[0].ID}
	}, kept + ".dedicated_tenants", policy.KeyDuplicate},
	{"dedicated to too many tenants", keeps(func(p *policy.Pool) { p.DedicatedTenants = make([]uuid.UUID, 200_001) }), kept + ".dedicated_tenants", policy.KeyTooMany},
	{"tenants kept out", func(d *policy.Document, ts []policy.Tenant) { d.Pools[1].DedicatedTenants = []uuid.UUID{ts[0].ID} }, "models[gen4]", policy.KeyTenantsKeptOut},
	{"tenants kept out above", func(d *policy.Document, ts []policy.Tenant) {
		d.Pools[0].DedicatedTenants, d.Pools[1].DedicatedTenants = []uuid.UUID{ts[0].ID}, []uuid.UUID{ts[1].ID}
	}, "models[gen4]", policy.KeyTenantsKeptOut},
	{"tenant unknown", func(d *policy.Document, _ []policy.Tenant) {
		d.Tenants = append(d.Tenants, policy.TenantOverride{TenantID: uuid.NameSpaceDNS, Code: "ghost", Weight: value(1)})
	}, "tenants[ghost].tenant_id", policy.KeyUnknown},
	{"tenant twice", func(d *policy.Document, ts []policy.Tenant) {
		o := override(ts, 0, policy.TenantOverride{Weight: value(1)})
		d.Tenants = append(d.Tenants, o, o)
	}, "tenants[t-0000].tenant_id", policy.KeyDuplicate},
	{"tenant code", func(d *policy.Document, ts []policy.Tenant) {
		d.Tenants = append(d.Tenants, policy.TenantOverride{TenantID: ts[0].ID, Code: "other", Weight: value(1)})
	}, "tenants[other].code", policy.KeyCodeMismatch},
	{"reserves over lane", func(d *policy.Document, ts []policy.Tenant) { // 30 - largest task 2 = 28
		d.Tenants = append(d.Tenants, override(ts, 0, policy.TenantOverride{ReservedUnits: value(29)}))
	}, "lanes[ENTERPRISE_RESERVED].reserved_units", policy.KeyReservesOverLane},
	{"pool negative", func(d *policy.Document, _ []policy.Tenant) { d.Pools[2].Preference = -1 }, "pools[provider:runway:acct-1:us:flux].preference", policy.KeyRange},
	{"pool huge", func(d *policy.Document, _ []policy.Tenant) { d.Pools[2].CapacityUnits = math.MaxInt64 }, "pools[provider:runway:acct-1:us:flux].capacity_units", policy.KeyRange},
	{"pool kind", func(d *policy.Document, _ []policy.Tenant) { d.Pools[0].Kind = "MAGIC" }, "pools[account:runway:acct-1].kind", policy.KeyNotOneOf},
	{"pool group", func(d *policy.Document, _ []policy.Tenant) { d.Pools[0].Group = "gone" }, "pools[account:runway:acct-1].group", policy.KeyUnknown},
	{"pool provider", func(d *policy.Document, _ []policy.Tenant) { d.Pools[1].Provider = "" }, "pools[provider:runway:acct-1:us:gen4].provider", policy.KeyRequired},
	{"pool parent", func(d *policy.Document, _ []policy.Tenant) { d.Pools[3].Parents = []string{"gone"} }, "pools[provider:google:p1:us:veo4k].parents[gone]", policy.KeyUnknown},
	{"pool parent leaf", func(d *policy.Document, _ []policy.Tenant) { d.Pools[3].Parents = []string{d.Pools[2].Key} }, "pools[provider:google:p1:us:veo4k].parents[provider:runway:acct-1:us:flux]", policy.KeyNotACapGroup},
	{"pool cycle", func(d *policy.Document, _ []policy.Tenant) {
		d.Pools = append(d.Pools, policy.Pool{Key: "platform", Kind: policy.PoolCapGroup, CapacityUnits: 100, Parents: []string{"account:runway:acct-1"}})
		d.Pools[0].Parents = []string{"platform"}
	}, "pools[platform].parents[account:runway:acct-1]", policy.KeyCycle},
	{"pool in itself", func(d *policy.Document, _ []policy.Tenant) { d.Pools[0].Parents = []string{d.Pools[0].Key} }, "pools[account:runway:acct-1].parents[account:runway:acct-1]", policy.KeyCycle},
	{"pool key", func(d *policy.Document, _ []policy.Tenant) {
		d.Pools = append(d.Pools, policy.Pool{Key: "a b", Kind: policy.PoolCapGroup})
	}, "pools[4].key", policy.KeyCodeCharacters},
	{"pool removed", func(d *policy.Document, _ []policy.Tenant) {
		d.Pools = d.Pools[:3]
		setReserve(d, control.LaneExpensive, 0)
	}, "models[veo4k]", policy.KeyNoPool},
	{"demand over pool", func(d *policy.Document, _ []policy.Tenant) { d.Models[2].SlotUnits = 33 }, "models[veo4k].slot_units", policy.KeyDemandOverPools},
	{"demand over cap group", func(d *policy.Document, _ []policy.Tenant) { d.Pools[0].CapacityUnits = 1 }, "models[gen4].slot_units", policy.KeyDemandOverPools},
	{"lane cannot run", func(d *policy.Document, _ []policy.Tenant) {
		d.PoolGroups = append(d.PoolGroups, policy.PoolGroup{Code: "veo"})
		d.Pools[3].Group = "veo"
		for i := range d.Lanes {
			if d.Lanes[i].Code == control.LaneRecovery {
				d.Lanes[i].Accounts = append(d.Lanes[i].Accounts, policy.LaneAccount{PoolGroup: "veo"})
			}
		}
		setReserve(d, control.LaneExpensive, 0)
	}, "lanes[EXPENSIVE].accounts", policy.KeyLaneCannotRun},
	{"model kind", func(d *policy.Document, _ []policy.Tenant) { d.Models[0].Kind = "SOUND" }, "models[gen4].kind", policy.KeyNotOneOf},
	{"model NaN", func(d *policy.Document, _ []policy.Tenant) { d.Models[0].MeanSeconds = math.NaN() }, "models[gen4].mean_seconds", policy.KeyNotANumber},
	{"model infinite", func(d *policy.Document, _ []policy.Tenant) { d.Models[0].GPUSeconds = math.Inf(1) }, "models[gen4].gpu_seconds", policy.KeyNotANumber},
	{"model p95", func(d *policy.Document, _ []policy.Tenant) { d.Models[0].P95Seconds = 30 }, "models[gen4].p95_seconds", policy.KeyP95BelowMean},
	{"model cost", func(d *policy.Document, _ []policy.Tenant) { d.Models[0].CostMicro = 999_000_000 }, "models[gen4]", policy.KeyCostRange},
	{"model price day", func(d *policy.Document, _ []policy.Tenant) { d.Models[0].PriceAsOf = "2026-02-30" }, "models[gen4].price_as_of", policy.KeyNotADate},
	{"model price undated", func(d *policy.Document, _ []policy.Tenant) { d.Models[0].PriceAsOf = "" }, "models[gen4].price_as_of", policy.KeyRequired},
	{"model retire day", func(d *policy.Document, _ []policy.Tenant) { d.Models[0].RetireOn = "soon" }, "models[gen4].retire_on", policy.KeyNotADate},
	{"model clip", func(d *policy.Document, _ []policy.Tenant) { d.Models[0].Seconds = []int64{5, 0} }, "models[gen4].duration_seconds[1]", policy.KeyRange},
	{"model clip twice", func(d *policy.Document, _ []policy.Tenant) { d.Models[0].Seconds = []int64{5, 5} }, "models[gen4].duration_seconds[1]", policy.KeyDuplicate},
	{"model resolutions", func(d *policy.Document, _ []policy.Tenant) { d.Models[0].Resolutions = nil }, "models[gen4].resolutions", policy.KeyRequired},
	{"route lane", func(d *policy.Document, _ []policy.Tenant) { d.Routing[0].Lane = "GONE" }, "routing[RECOVERY/].lane", policy.KeyUnknown},
	{"route twice", func(d *policy.Document, _ []policy.Tenant) { d.Routing = append(d.Routing, d.Routing[1]) }, "routing[/EXPENSIVE]", policy.KeyDuplicate},
	{"route mark", func(d *policy.Document, _ []policy.Tenant) { d.Routing[0].Mark = "VIP" }, "routing[VIP/].mark", policy.KeyNotOneOf},
	{"utilisation", func(d *policy.Document, _ []policy.Tenant) { d.Limits.SafeUtilisation = 1.01 }, "limits.safe_utilisation", policy.KeyRange},
	{"body size", func(d *policy.Document, _ []policy.Tenant) { d.Limits.MaxBodyBytes = 0 }, "limits.max_body_bytes", policy.KeyRange},
	{"no lanes", func(d *policy.Document, _ []policy.Tenant) { d.Lanes = nil; d.Plans = nil; d.Routing = nil }, "lanes", policy.KeyRequired},
}

func TestEveryRuleNamesItsField(t *testing.T) {
	t.Parallel()
	for _, b := range breaches {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			d, ts := sample(), tenants(8)
			b.edit(d, ts)
			list := policy.Validate(d, ts)
			i := slices.IndexFunc(list, func(e control.FieldError) bool { return e.Field == b.field && e.Key == b.key })
			if i < 0 {
				t.Fatalf("want %s at %s, got %v", b.key, b.field, list)
			}
			// What the message needs is there, and nothing that the catalogue does not know of.
			want := policy.MessageArgs[b.key]
			if len(list[i].Args) != len(want) {
				t.Errorf("arguments %v, the catalogue has %v", list[i].Args, want)
			}
			for _, name := range want {
				if _, ok := list[i].Args[name]; !ok {
					t.Errorf("argument %s is missing in %v", name, list[i].Args)
				}
			}
		})
	}
}

// What stands at the edge of a rule is allowed.
func TestLendingAndKeepingMayGoToTheirLimits(t *testing.T) {
	t.Parallel()
	d, ts := sample(), tenants(8)
	lending(d)
	p := keeping(d)
	p.LaneMinimums[0].Units = 38 // 2 are left, one task of the others
	p.DedicatedTenants = []uuid.UUID{}
	for _, who := range ts {
		p.DedicatedTenants = append(p.DedicatedTenants, who.ID)
	}
	d.Pools[3].DedicatedLanes = []string{control.LaneExpensive, control.LaneRecovery}
	d.Scheduling.EarmarkTimeout = 400 // the slowest model's P95, at its only length
	d.Scheduling.RepayPermille, d.Scheduling.DebtTaskUnits, d.Scheduling.DebtTotalUnits = 0, 0, 100_000
	wantNone(t, policy.Validate(d, ts))
	if got := d.LargestP95(p.Key); got != 180 {
		t.Errorf("P95 of 90 s for 5 s of clip, 10 s are accepted: %v", got)
	}
	d.Scheduling.EarmarkTimeout = 0
	wantNone(t, policy.Validate(d, nil))
}

func TestAllBrokenRulesAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	d, ts := sample(), tenants(8)
	d.Scheduling.AgingCap = 2
	d.Lanes[0].Weight = -1
	d.Models[0].MeanSeconds = math.NaN()
	d.Pools[3].Parents = []string{"gone"}
	setReserve(d, control.LaneStandard, 1_000)
	d.Tenants = append(d.Tenants, override(ts, 1, policy.TenantOverride{Weight: value(-5), BurstUnits: value(0)}))
	d.Limits.SafeUtilisation = 0
	list := policy.Validate(d, ts)
	for _, want := range []string{"scheduling.aging_cap", "lanes[ENTERPRISE_RESERVED].weight", "models[gen4].mean_seconds",
		"pools[provider:google:p1:us:veo4k].parents[gone]", "pool_groups[default].reserved_units", "tenants[t-0001].weight", "limits.safe_utilisation"} {
		if !slices.ContainsFunc(list, func(e control.FieldError) bool { return e.Field == want }) {
			t.Errorf("%s is not named in %v", want, list)
		}
	}
	if len(list) != 7 {
		t.Errorf("7 rules are broken, %d named: %v", len(list), list)
	}
}

// E03: the arithmetic of the refusal.
func TestE03_SumOverCapacityShowsItsArithmetic(t *testing.T) {
	t.Parallel()
	d := sample()
	setReserve(d, control.LaneStandard, 30)
	list := policy.Validate(d, nil)
	if len(list) != 1 {
		t.Fatalf("one rule is broken: %v", list)
	}
	a := list[0].Args
	if a["reserved"] != int64(96) || a["capacity"] != int64(92) || a["over"] != int64(4) {
		t.Errorf("30 + 20 + 30 + 16 = 96 of 92, over by 4: %v", a)
	}
	if got := a["fields"].([]string); len(got) != 4 || got[1] != "lanes[PAID_SHARED].accounts[default].reserved_units" {
		t.Errorf("fields that add up: %v", got)
	}
}

func TestReservesMayFillALaneUpToItsLargestTask(t *testing.T) {
	t.Parallel()
	d, ts := sample(), tenants(8)
	d.Tenants = append(d.Tenants,
		override(ts, 0, policy.TenantOverride{ReservedUnits: value(14)}), override(ts, 4, policy.TenantOverride{ReservedUnits: value(14)}))
	wantNone(t, policy.Validate(d, ts)) // 28 + 2 = 30
	ts[4].Status = policy.TenantSuspended
	*d.Tenants[1].ReservedUnits = 15
	if list := policy.Validate(d, ts); len(list) != 1 || list[0].Key != policy.KeyReservesOverLane || list[0].Args["over"] != int64(1) {
		t.Errorf("a suspended tenant's reserve counts too: %v", list)
	}
}

func TestWeightZeroNeedsNoShare(t *testing.T) {
	t.Parallel()
	d, ts := sample(), tenants(8)
	d.Tenants = append(d.Tenants, override(ts, 0, policy.TenantOverride{Weight: value(0), BurstUnits: value(0)}))
	wantNone(t, policy.Validate(d, ts))
}

func TestValidateNamesAtMostAThousandAndCountsTheRest(t *testing.T) {
	t.Parallel()
	d, ts := sample(), tenants(1_500)
	for i := range ts {
		d.Tenants = append(d.Tenants, override(ts, i, policy.TenantOverride{Weight: value(-1)}))
	}
	list := policy.Validate(d, ts)
	last := list[len(list)-1]
	if len(list) != 1_001 || last.Key != policy.KeyMoreErrors || last.Args["count"] != int64(500) {
		t.Errorf("%d named, last %v", len(list), last)
	}
}

func TestValidateTenThousandTenantsQuickly(t *testing.T) {
	d, ts := sample(), tenants(10_000)
	for i := range ts {
		d.Tenants = append(d.Tenants, override(ts, i, policy.TenantOverride{Weight: value(int64(i % 50)), BurstUnits: value(40)}))
	}
	best := time.Hour
	for range 3 {
		began := time.Now()
		wantNone(t, policy.Validate(d, ts))
		best = min(best, time.Since(began))
	}
	t.Logf("10,000 tenants with overrides: %v", best)
	if best > 2*time.Second { // 200 ms without the race detector on a quiet machine
		t.Errorf("took %v", best)
	}
}

func TestLanesSwitchedOffAndPoolsPausedAreAllowed(t *testing.T) {
	t.Parallel()
	d := sample()
	for i := range d.Lanes {
		d.Lanes[i].Paused, d.Lanes[i].AdmissionOpen, d.Lanes[i].Weight = true, false, 0
	}
	for i := range d.Pools {
		d.Pools[i].Paused = true
	}
	d.Switches = policy.Switches{}
	wantNone(t, policy.Validate(d, nil))
}

func TestValidateNeverPanics(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := wildDocument(t)
		ts := tenants(rapid.IntRange(0, 6).Draw(t, "tenants"))
		policy.Validate(d, ts)
		policy.Validate(d, nil)
		policy.Diff(sample(), d, ts)
		policy.Diff(d, sample(), ts)
		d.LargestDemands()
	})
}
