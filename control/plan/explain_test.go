package plan_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlane/control/plan"
	"fairlane/policy"
)

// What an explanation names as the least change does start the task, or lets it wait for its turn alone.
func TestExplainedChangesOpenEveryGate(t *testing.T) {
	t.Parallel()
	held := map[plan.Gate]int{}
	changed := 0
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t)
		for range 12 {
			p.act(t)
		}
		p.now += 10 // beyond what a refused task is passed over
		p.cycle(func(plan.Start) int64 { return 1 << 40 })
		waiting := p.waiting()
		if len(waiting) == 0 {
			return
		}
		id := rapid.SampledFrom(waiting).Draw(t, "task")
		k := p.n.tasks[id]
		ask := plan.Waiting{TaskID: id, TenantID: k.TenantID, UserID: k.UserID, Lane: k.Lane, Need: needOf(k), CostMilli: k.CostMilli, EligibleAt: k.EligibleAt}
		x := p.planner.Explain(ask)
		held[x.Holds]++
		if slices.ContainsFunc(x.Changes, func(c plan.Change) bool { return c.What == plan.EndEarmark || c.What == plan.AddPool }) {
			return
		}
		for _, c := range x.Changes {
			p.apply(t, c, k)
			changed++
		}
		if err := p.publish(); err != nil {
			t.Fatal(err)
		}
		p.now++
		p.batch = 0
		needs := p.planner.Needs(second(p.now))
		p.planner.Cycle(second(p.now), p.snapshot(needs), 0)
		p.planner.Settle()
		if after := p.planner.Explain(ask); after.Holds != plan.GateTurn && p.planner.Holds() == "" { // what was opened may be kept for somebody at once
			t.Fatalf("held by %s, after %v still by %s: %v", x.Holds, x.Changes, after.Holds, after.Changes)
		}
	})
	figure(t, "explanations: %v, %d changes applied, every one let its task wait for its turn alone", held, changed)
}

// apply makes a change in the world.
func (p *pair) apply(t *rapid.T, c plan.Change, k *nTask) {
	lane, _ := p.doc.Lane(k.Lane)
	settings := &p.doc.Plans[slices.IndexFunc(p.doc.Plans, func(x policy.Plan) bool { return x.Code == p.planOf(k.TenantID) })].Settings
	pool, _ := p.doc.Pool(c.Object)
	switch c.What {
	case plan.WaitUntil:
		if c.Object == "" {
			p.now = c.To - epoch.Unix()
			return
		}
		u := p.pools[c.Object]
		u.Limit = c.To
		p.pools[c.Object] = u
	case plan.ResumeLane:
		lane.Paused, p.doc.Switches.SchedulingRunning = false, true
	case plan.ResumePool:
		pool.Paused = false
	case plan.RaiseTenant:
		settings.MaxRunningUnits = c.To
	case plan.RaiseTasks:
		settings.MaxRunningTasks = c.To
	case plan.RaiseUser:
		settings.UserMaxRunningTasks = max(settings.UserMaxRunningTasks, c.To)
		settings.UserMaxRunningImage = max(settings.UserMaxRunningImage, c.To)
		settings.UserMaxRunningVideo = max(settings.UserMaxRunningVideo, c.To)
	case plan.RaiseReserve:
		p.doc.PoolGroups[0].CapacityUnits += c.To - lane.Accounts[0].ReservedUnits
		lane.Accounts[0].ReservedUnits = c.To
	case plan.RaiseBorrow:
		lane.Accounts[0].BorrowLimit = c.To
	case plan.RaiseCommon:
		p.doc.PoolGroups[0].CapacityUnits = c.To
		p.doc.Pools[len(p.doc.Pools)-1].CapacityUnits += max(0, c.To-p.doc.GroupCapacity(testGroup)) // its pools bound it too
	case plan.RaisePool:
		pool.CapacityUnits = max(pool.CapacityUnits, c.To)
	case plan.CloseBreaker:
		u := p.pools[c.Object]
		u.Open = false
		p.pools[c.Object] = u
	case plan.AllowPool:
		pool.DedicatedLanes, pool.DedicatedTenants = nil, nil
	default:
		t.Fatalf("change %s is not known", c.What)
	}
}
