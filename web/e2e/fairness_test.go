package e2e_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/run/demo"
	"fairlane/policy"
	"fairlane/store/facts"
	"fairlane/store/storetest"
)

// The lane of the duel holds all ten units of the one pool that serves its model.
const (
	duelLane  = "DUEL"
	duelModel = "ray-3.2"
	duelUnits = 10
	duelSpeed = 60
)

// Two equal tenants, alone in a lane with one pool, both with a queue that does not end: what they are
// served is 1:1, and from the version on that gives one of them four times the weight, 4:1, each time
// within |S_i/w_i − S_j/w_j| ≤ base_quantum + c/w_i + c/w_j, with w relative to the lane's largest weight.
func TestFourfoldWeightIsFourfoldService(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	base := storetest.New(t)
	db, err := facts.Open(ctx, base.URL, "test", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tenants := facts.NewTenants(db)
	publisher := policy.NewPublisher(facts.NewPolicies(db), tenants)
	doc := duelDocument(t)
	doc.Switches.SchedulingRunning = false // until both queues are there
	publishes := func(version int64, reason string) {
		t.Helper()
		if _, err := publisher.Publish(ctx, policy.Publication{Base: version - 1, Document: doc, Reason: reason, Actor: control.System}); err != nil {
			t.Fatal(err)
		}
	}
	publishes(1, "Two tenants alone in a lane.")
	pair, err := tenants.Onboard(ctx, []facts.NewTenant{
		{Code: "duel-a", Name: "Duel A", Plan: "duel"}, {Code: "duel-b", Name: "决斗 B", Plan: "duel"},
	}, control.System, "test")
	if err != nil {
		t.Fatal(err)
	}
	doc.Limits.GuaranteedQueue++
	publishes(2, "So that the demo does not publish its own.")

	p := start(t, base, t.TempDir(), "--quiet", "--speed", fmt.Sprint(duelSpeed))
	a, b := pair[0].ID, pair[1].ID
	p.submit(t, a, "user-001", duelModel, 240)
	p.submit(t, b, "user-001", duelModel, 130)
	doc.Switches.SchedulingRunning = true
	publishes(3, "Go.")
	p.wait(t, "thirty starts of equals", time.Minute, `SELECT count(*) >= 30 FROM task_attempt WHERE policy_version = 3`)

	browser := p.open(t, "en", "").signIn("operator")
	browser.visit("/tenants/duel-a")
	browser.fill("#weight", "4")
	browser.follow(preview)
	browser.has("50.0 % → 80.0 %")
	browser.fill("#reason", "Four times the weight.")
	browser.follow(publish)
	browser.until("the version", `location.pathname === "/versions/4"`)
	served := func(version int64, tenant uuid.UUID) float64 {
		return float64(row[int64](p, `SELECT coalesce(sum(t.fairness_units), 0)::bigint FROM task_attempt a JOIN generation_task t USING (task_id)
			WHERE a.policy_version = $1 AND t.tenant_id = $2`, version, tenant)) / 1000
	}
	p.wait(t, "starts under the new weights", 2*time.Minute, `SELECT count(*) >= 150 FROM task_attempt WHERE policy_version = 4`)
	fourA, fourB := served(4, a), served(4, b)
	for _, tenant := range []uuid.UUID{a, b} {
		if n := row[int64](p, `SELECT queued_tasks FROM tenant_lane_runtime WHERE tenant_id = $1 AND lane = $2`, tenant, duelLane); n == 0 {
			t.Fatal("a queue ran dry: this shows nothing")
		}
	}
	browser.visit("/tenants?q=duel")
	browser.until("the entitlements", `[...document.querySelectorAll("[data-field=entitled]")].map((e) => e.innerText.trim()).join() === "80.0 %,20.0 %"`)
	browser.picture("four-to-one")

	cost := float64(row[int64](p, `SELECT max(fairness_units) FROM generation_task`)) / 1000
	bound := func(name string, sa, wa, sb, wb float64) {
		gap, most := math.Abs(sa/wa-sb/wb), float64(doc.Scheduling.BaseQuantumUnits)+cost/wa+cost/wb
		figure(t, "%s: %.0f and %.0f units served at weights %g and %g, ratio %.2f; |S/w - S/w| = %.1f of at most %.1f (cost %.0f)", name, sa, sb, wa, wb, sa/sb, gap, most, cost)
		if gap > most {
			t.Errorf("%s: out of the bound", name)
		}
	}
	bound("equal weights", served(3, a), 1, served(3, b), 1)
	bound("fourfold weight", fourA, 1, fourB, 0.25)
	if counted := row[bool](p, `SELECT sum(r.served_milli) = (SELECT sum(t.fairness_units) FROM task_attempt a JOIN generation_task t USING (task_id) WHERE a.lane = $1)
		FROM tenant_lane_runtime r WHERE r.lane = $1`, duelLane); !counted {
		t.Error("the counter of served units is not the sum of the claims")
	}
}

// duelDocument is the demo's policy with one more lane and plan.
func duelDocument(t testing.TB) *policy.Document {
	t.Helper()
	platform, err := demo.New(duelSpeed)
	if err != nil {
		t.Fatal(err)
	}
	d := platform.Document()
	d.Tenants = nil
	d.Scheduling.DebtTaskUnits, d.Scheduling.DebtTotalUnits = 0, 0 // the bound is of charges: what ends settle would move them
	lane := d.Lanes[1]
	lane.Code, lane.Accounts = duelLane, []policy.LaneAccount{{PoolGroup: policy.DefaultGroup, ReservedUnits: duelUnits}}
	d.Lanes = append(d.Lanes, lane)
	for i := range d.Pools {
		if d.Pools[i].Model == duelModel {
			d.Pools[i].LaneMinimums = []policy.LaneMinimum{}
		}
	}
	plan := d.Plans[0]
	plan.Code, plan.Models = "duel", []string{duelModel}
	s := &plan.Settings
	s.Lane, s.Weight, s.ReservedUnits, s.BurstUnits = duelLane, 1, 0, 4*duelUnits
	s.MaxWaitSeconds, s.MaxQueuedTasks, s.MaxQueuedUnits = 0, 5_000, 100_000
	s.UserMaxQueuedTasks, s.UserMaxRunningTasks, s.UserMaxRunningVideo, s.UserMaxRunningImage = 5_000, 50, 50, 50
	s.SubmitsPerMinute, s.UserSubmitsPerMin = 100_000, 100_000
	d.Plans = append(d.Plans, plan)
	return d
}

// figure is a line for those who read the test's outcome; make test collects them.
func figure(t testing.TB, format string, args ...any) {
	t.Helper()
	storetest.Figure(t, "%s: %s", t.Name(), fmt.Sprintf(format, args...))
}
