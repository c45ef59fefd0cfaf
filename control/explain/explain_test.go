package explain

import (
	"reflect"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// turn is an explanation of a task that could start, of a tenant with that quantum in a lane whose
// heaviest tenant has base.
func turn(quantum, base int64) *plan.Explanation {
	return &plan.Explanation{Holds: plan.GateTurn, Base: base, Gates: []plan.GateReport{
		{Gate: plan.GateLane, Numbers: []plan.Number{{Name: "quantum", Value: 7}}}, // of a gate that does not hold: nothing is read of it
		{Gate: plan.GateTurn, Holds: true, Numbers: []plan.Number{{Name: "quantum", Value: quantum, Unit: plan.Milli}}},
	}}
}

func TestPlaceIsFromTheTenantsOwnToTheBoundOfFairness(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ahead    int64
		lane     Depth
		cost     int64
		x        *plan.Explanation
		from, to int64
	}{
		"alone":                               {lane: Depth{Tasks: 1, Milli: 1000}, cost: 1000, x: turn(4000, 4000), from: 1, to: 1},
		"behind its own":                      {ahead: 4, lane: Depth{Tasks: 5, Milli: 5000}, cost: 1000, x: turn(4000, 4000), from: 5, to: 5},
		"one other, all cost 1, equal weight": {lane: Depth{Tasks: 1001, Milli: 1_001_000, Others: 1}, cost: 1000, x: turn(4000, 4000), from: 1, to: 1 + 7},           // 1 + 4 + 1 + 1
		"half the weight":                     {lane: Depth{Tasks: 1001, Milli: 1_001_000, Others: 1}, cost: 1000, x: turn(2000, 4000), from: 1, to: 1 + 9},           // 2 + 4 + 2 + 1
		"two others":                          {lane: Depth{Tasks: 1001, Milli: 1_001_000, Others: 2}, cost: 1000, x: turn(4000, 4000), from: 1, to: 1 + 14},          //
		"two of its own before it":            {ahead: 2, lane: Depth{Tasks: 1001, Milli: 1_001_000, Others: 1}, cost: 1000, x: turn(4000, 4000), from: 3, to: 3 + 9}, // 3 + 4 + 1 + 1
		"no more than wait":                   {lane: Depth{Tasks: 6, Milli: 6000, Others: 1}, cost: 1000, x: turn(4000, 4000), from: 1, to: 6},
		"held by another gate":                {lane: Depth{Tasks: 90, Milli: 90_000, Others: 3}, cost: 1000, x: &plan.Explanation{Holds: plan.GateLane, Base: 4000}, from: 1, to: 90},
		"weight 0":                            {lane: Depth{Tasks: 90, Milli: 90_000, Others: 3}, cost: 1000, x: turn(0, 4000), from: 1, to: 90},
		"counters that lag":                   {ahead: 3, lane: Depth{}, cost: 1000, x: turn(4000, 4000), from: 4, to: 4},
		"a cost that is none":                 {lane: Depth{Tasks: 5, Milli: 0, Others: 1}, x: turn(4000, 4000), from: 1, to: 5},
	} {
		f := Facts{Item: queue.Item{CostMilli: test.cost}, Ahead: test.ahead, Lane: test.lane}
		if from, to := place(&f, test.x); from != test.from || to != test.to {
			t.Errorf("%s: %d to %d, want %d to %d", name, from, to, test.from, test.to)
		}
	}
}

// Whatever the numbers, a place is at least the first behind the tenant's own, and no further than waits.
func TestPlaceStaysWithinWhatWaits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, most int64) int64 { return rapid.Int64Range(0, most).Draw(t, name) }
		f := Facts{Item: queue.Item{CostMilli: number("cost", 1e9)}, Ahead: number("ahead", 10_000)}
		f.Lane = Depth{Tasks: number("tasks", 1e6), Milli: number("milli", 1e15), Others: number("others", 10_000)}
		base := number("base", 1e7)
		x := turn(number("quantum", base), base)
		from, to := place(&f, x)
		if from != f.Ahead+1 || to < from || to > max(from, f.Lane.Tasks) {
			t.Fatalf("%d to %d", from, to)
		}
		f.Ahead++
		if again, last := place(&f, x); again != from+1 || last < to && last < f.Lane.Tasks {
			t.Fatalf("one place further back: %d to %d, before %d to %d", again, last, from, to)
		}
	})
}

func TestI13_ATenantSeesNothingOfOthers(t *testing.T) {
	t.Parallel()
	units := func(pairs ...any) (out []plan.Number) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, plan.Number{Name: pairs[i].(string), Value: int64(pairs[i+1].(int))})
		}
		return out
	}
	full := func() Answer {
		return Answer{
			TaskID: uuid.NameSpaceDNS, Tenant: "acme", Lane: "STANDARD", PlaceFrom: 3, PlaceTo: 900,
			Explanation: plan.Explanation{
				Version: 4, Holds: plan.GatePool, Base: 4000,
				Gates: []plan.GateReport{
					{Gate: plan.GateNeverFits, Numbers: units("wanted", 2, "largest", 40, "reserved", 9)},
					{Gate: plan.GateTenant, Numbers: units("wanted", 2, "used", 4, "limit", 8)},
					{Gate: plan.GateAccount, Numbers: units("wanted", 2), Options: []plan.Option{
						{Account: control.AccountOwn, Reason: plan.NoUnits, Numbers: units("free", 0, "lent", 3)},
						{Account: control.AccountBorrowed, Lender: "PAID_SHARED", Reason: plan.LenderStopped, Numbers: units("free", 8)},
						{Account: control.AccountBorrowed, Lender: "ENTERPRISE_RESERVED", Reason: plan.LenderStopped},
						{Account: control.AccountCommon, Numbers: units("free", 5)},
					}},
					{Gate: plan.GatePool, Holds: true, Numbers: units("wanted", 2, "free", 1), Options: []plan.Option{
						{Pool: "provider:a", Reason: plan.Full, Numbers: units("used", 40)}, {Pool: "provider:b", Reason: plan.Full},
						{Pool: "provider:c", Reason: plan.KeptForTask},
					}},
				},
				Changes: []plan.Change{
					{What: plan.WaitUntil, From: 1, To: 2}, {What: plan.RaiseTenant, Object: "acme", From: 8, To: 9}, {What: plan.RaisePool, Object: "provider:a", From: 40, To: 41},
					{What: plan.RaiseReserve, Object: "STANDARD"}, {What: plan.WaitUntil, Object: "provider:b"}, {What: plan.EndEarmark, Object: "provider:c"},
					{What: plan.RaiseTasks}, {What: plan.RaiseUser}, {What: plan.ReinstateTenant}, {What: plan.AllowPool, Object: "provider:d"}, {What: plan.RaiseCommon, Object: "default"},
				},
			},
		}
	}
	before := full()
	got, want := before.ForTenant(), full()
	want.PlaceTo = 0
	want.Gates[0].Numbers = units("wanted", 2)
	want.Gates[2].Options = []plan.Option{{Account: control.AccountOwn, Reason: plan.NoUnits}, {Account: control.AccountBorrowed, Reason: plan.LenderStopped}, {Account: control.AccountCommon}}
	want.Gates[3].Numbers = units("wanted", 2)
	want.Gates[3].Options = []plan.Option{{Reason: plan.Full}, {Reason: plan.KeptForTask}}
	want.Changes = []plan.Change{{What: plan.WaitUntil, From: 1, To: 2}, {What: plan.RaiseTenant, Object: "acme", From: 8, To: 9}, {What: plan.RaiseTasks}, {What: plan.RaiseUser}, {What: plan.ReinstateTenant}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("a tenant sees %+v\nwant %+v", got, want)
	}
	if !reflect.DeepEqual(before, full()) {
		t.Errorf("what operators see has changed with it: %+v", before)
	}
}

// I13: a tenant's own quantum would tell how heavy the heaviest of its lane is.
func TestI13_ATenantDoesNotReadTheScaleOfItsLane(t *testing.T) {
	t.Parallel()
	a := Answer{Explanation: *turn(800, 4000)}
	for _, g := range a.ForTenant().Gates {
		for _, n := range g.Numbers {
			if g.Gate == plan.GateTurn && n.Name == "quantum" {
				t.Errorf("the tenant reads %v", n)
			}
		}
	}
	if a.Number("quantum") != 800 {
		t.Error("the operator's answer has lost it")
	}
}
