package facts_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/explain"
	"fairlane/control/plan"
	"fairlane/control/schedule"
	"fairlane/policy"
	"fairlane/store/facts"
)

// userOf is the one user of the i-th account.
func (c *town) userOf(t *testing.T, i int) uuid.UUID {
	t.Helper()
	var user uuid.UUID
	c.must(c.sql.QueryRow(c.ctx, `SELECT user_id FROM tenant_user WHERE tenant_id = $1`, c.list[i].ID).Scan(&user))
	return user
}

// wait queues n tasks of 2 units of the i-th account in a lane.
func (c *town) wait(t *testing.T, i int, lane string, n int) []uuid.UUID {
	t.Helper()
	jobs := make([]job, n)
	for k := range jobs {
		jobs[k] = job{tenant: c.list[i].ID, user: c.userOf(t, i), lane: lane, group: "default", slots: 2}
	}
	return c.queue(t, jobs...)
}

// begin claims tasks on common units of a pool, under the policy in force.
func (c *town) begin(t *testing.T, pool string, tasks ...uuid.UUID) {
	t.Helper()
	version, err := c.policies.HeadNumber(c.ctx)
	c.must(err)
	starts := c.starts(t, tasks, pool, []string{"acct", "platform"}, control.AccountCommon)
	out, err := facts.NewClaims(c.db).Claim(c.ctx, schedule.Claim{PoolGroup: "default", PolicyVersion: version, Starts: starts})
	c.must(err)
	if len(granted(out)) != len(tasks) {
		t.Fatalf("not all were granted: %+v", out)
	}
}

func TestWaitsReadsATaskWithWhatIsBesideIt(t *testing.T) {
	t.Parallel()
	c := newTown(t, 6)
	c.publish(t, policy.SetTenant(c.list[1], "user_max_running_video", "9"))
	const lane = control.LanePaid
	mine, others := c.wait(t, 1, lane, 5), c.wait(t, 5, lane, 3)
	c.wait(t, 1, control.LaneStandard, 2)                                                                   // of the tenant, in another lane
	c.exec(t, `UPDATE generation_task SET priority_band = 1 WHERE task_id = $1`, mine[4])                   // comes first of all
	c.exec(t, `UPDATE generation_task SET priority_band = 0, state = 'FAILED' WHERE task_id = $1`, mine[3]) // does not wait
	c.exec(t, `UPDATE tenant SET status = 'SUSPENDED', name = 'Second' WHERE tenant_id = $1`, c.list[1].ID) //
	c.exec(t, `UPDATE generation_task SET version = 7, fairness_units = 2500 WHERE task_id = $1`, mine[2])  //
	c.exec(t, `UPDATE tenant_lane_runtime SET queued_tasks = 0 WHERE tenant_id = $1`, c.list[3].ID)         //
	status := plan.Status{At: time.Now().UTC().Truncate(time.Microsecond), Version: 9, Lanes: []plan.LaneStatus{{Lane: lane, DeficitMilli: -40, Waiting: 2}}}
	c.must(facts.NewStatuses(c.db).PutStatus(c.ctx, "default", 3, status))
	c.must(facts.NewStatuses(c.db).PutStatus(c.ctx, "elsewhere", 3, plan.Status{At: status.At, Version: 1}))
	f, err := facts.NewExplains(c.db).Waits(c.ctx, mine[2])
	c.must(err)
	if it := f.Item; it.TaskID != mine[2] || it.TenantID != c.list[1].ID || it.Lane != lane || it.Group != "default" || it.Version != 7 ||
		it.CostMilli != 2500 || it.SlotUnits != 2 || it.Model != "m" || it.Band != 2 || it.QueuedSince.IsZero() {
		t.Errorf("the task: %+v", it)
	}
	if a := f.Tenant; a.ID != c.list[1].ID || a.Code != c.list[1].Code || a.Name != "Second" || a.PlanCode != "pro" || a.Active() {
		t.Errorf("its tenant: %+v", a)
	}
	var beside []uuid.UUID
	for _, it := range f.Waiting {
		beside = append(beside, it.TaskID)
	}
	if want := []uuid.UUID{mine[2], mine[4], mine[0], mine[1]}; !slices.Equal(beside, want) {
		t.Errorf("the tenant's in the lane are %v, want %v", beside, want)
	}
	if f.Ahead != 3 {
		t.Errorf("%d come before it, want two older ones and one of a better band", f.Ahead)
	}
	if want := (explain.Depth{Tasks: 8, Milli: 16_000, Others: 1}); f.Lane != want { // by the counters
		t.Errorf("the lane: %+v, want %+v", f.Lane, want)
	}
	if len(f.Status.Lanes) != 1 || f.Status.Lanes[0] != status.Lanes[0] || f.Status.Version != 9 || !f.Status.At.Equal(status.At) {
		t.Errorf("the scheduler's: %+v", f.Status)
	}
	c.begin(t, "leaf-1", others[0])
	for _, id := range []uuid.UUID{others[0], mine[3], uuid.New()} {
		if _, err := facts.NewExplains(c.db).Waits(c.ctx, id); control.CodeOf(err) != control.CodeNotFound {
			t.Errorf("%s does not wait: %v", id, err)
		}
	}
	if f, err := facts.NewExplains(c.db).Waits(c.ctx, others[1]); err != nil || f.Ahead != 0 || f.Lane.Others != 1 {
		t.Errorf("%+v %v", f, err)
	}
}

// planned is a town all of whose pools are of one group.
func planned(t *testing.T, accounts int) *town {
	t.Helper()
	c := newTown(t, accounts)
	head, err := c.policies.Head(c.ctx)
	c.must(err)
	doc := head.Document.Clone()
	for i := range doc.Pools {
		doc.Pools[i].Group = "default"
	}
	_, err = c.publisher.Publish(c.ctx, policy.Publication{Base: head.Number, Document: doc, Reason: "one group", Actor: ann})
	c.must(err)
	return c
}

// explained asks about a task under the policy in force.
func (c *town) explained(t *testing.T, task uuid.UUID) explain.Answer {
	t.Helper()
	active := policy.NewActive(c.policies, policy.ActiveConfig{Replica: "test"})
	c.must(active.Refresh(c.ctx))
	x, err := explain.New(facts.NewExplains(c.db), active, c.tenants, nil).Explain(c.ctx, task)
	c.must(err)
	return x
}

// gateOf is the gate that holds.
func gateOf(t *testing.T, x explain.Answer) plan.GateReport {
	t.Helper()
	last := x.Gates[len(x.Gates)-1]
	if !last.Holds || last.Gate != x.Holds {
		t.Fatalf("the last gate is not the one that holds: %+v", x)
	}
	return last
}

func TestE25_WhyATaskWaitsIsReadFromTheRows(t *testing.T) {
	t.Parallel()
	const lane = control.LaneStandard
	// Each case makes rows that hold the last of three tasks of 2 units, of the third account.
	for name, test := range map[string]struct {
		make    func(t *testing.T, c *town, tasks []uuid.UUID)
		gate    plan.Gate
		numbers map[string]int64
		changes []plan.Change
		reasons string // of accounts and pools
	}{
		"LANE": {
			make:    func(t *testing.T, c *town, _ []uuid.UUID) { c.publish(t, policy.SetLane(lane, "paused", "true")) },
			gate:    plan.GateLane,
			changes: []plan.Change{{What: plan.ResumeLane, Object: lane}},
		},
		"TENANT": {
			make: func(t *testing.T, c *town, tasks []uuid.UUID) {
				c.publish(t, policy.SetTenant(c.list[2], "max_running_units", "4"), policy.SetTenant(c.list[2], "user_max_running_video", "9"),
					policy.SetTenant(c.list[2], "user_max_running_tasks", "9"))
				c.begin(t, "leaf-1", tasks[:2]...)
			},
			gate:    plan.GateTenant,
			numbers: map[string]int64{"wanted": 2, "used": 4, "limit": 4, "running": 2},
			changes: []plan.Change{{What: plan.RaiseTenant, Object: "t-0002", From: 4, To: 6}},
		},
		"USER": {
			make:    func(t *testing.T, c *town, tasks []uuid.UUID) { c.begin(t, "leaf-1", tasks[0]) },
			gate:    plan.GateUser,
			numbers: map[string]int64{"running": 1, "limit": 1},
			changes: []plan.Change{{What: plan.RaiseUser, Object: "t-0002", From: 1, To: 2}},
		},
		"ACCOUNT": {
			make: func(t *testing.T, c *town, _ []uuid.UUID) {
				c.publish(t, policy.SetLaneAccount(control.LanePaid, "default", "reserved_units", "48"))
				c.begin(t, "leaf-1", c.wait(t, 0, control.LaneEnterprise, 1)...) // all that is common
			},
			gate:    plan.GateAccount,
			numbers: map[string]int64{"wanted": 2},
			changes: []plan.Change{{What: plan.RaiseReserve, Object: lane, From: 0, To: 2}},
			reasons: "NO_UNITS NO_UNITS NOT_LENT",
		},
		"POOL": {
			make: func(t *testing.T, c *town, _ []uuid.UUID) {
				c.publish(t, policy.SetPool("leaf-1", "paused", "true"))
				c.exec(t, `UPDATE resource_pool SET breaker_until = now() + interval '1 hour' WHERE resource_key = 'leaf-2'`)
			},
			gate:    plan.GatePool,
			numbers: map[string]int64{"wanted": 2},
			changes: []plan.Change{{What: plan.ResumePool, Object: "leaf-1"}},
			reasons: "BREAKER PAUSED",
		},
		"EARMARK": { // what only the scheduler remembers: leaf-1 is kept for another one's large task
			make: func(t *testing.T, c *town, _ []uuid.UUID) {
				c.publish(t, policy.SetPool("leaf-2", "paused", "true"))
				c.remember(t, plan.Status{Earmarks: []plan.Earmark{{
					Pool: "leaf-1", Task: uuid.New(), Tenant: c.list[1].ID, Lane: control.LanePaid, Units: 39, Until: time.Unix(4_000_000_000, 0).UTC(),
				}}})
			},
			gate:    plan.GatePool,
			numbers: map[string]int64{"wanted": 2},
			changes: []plan.Change{{What: plan.EndEarmark, Object: "leaf-1", To: 4_000_000_000}},
			reasons: "EARMARK PAUSED",
		},
		"TURN": {
			make: func(t *testing.T, c *town, _ []uuid.UUID) {
				c.exec(t, `UPDATE tenant_lane_runtime SET debt_milli = 700 WHERE tenant_id = $1 AND lane = $2`, c.list[2].ID, lane)
				c.remember(t, plan.Status{Tenants: []plan.TenantStatus{{Tenant: c.list[2].ID, Lane: lane, DeficitMilli: 1500, DebtMilli: 700}}})
			},
			gate:    plan.GateTurn,
			numbers: map[string]int64{"cost": 2000, "deficit": 1500, "debt": 700, "quantum": 4000},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := planned(t, 3)
			tasks := c.wait(t, 2, lane, 3)
			test.make(t, c, tasks)
			x := c.explained(t, tasks[2])
			g := gateOf(t, x)
			if g.Gate != test.gate || x.TaskID != tasks[2] || x.Tenant != "t-0002" || x.Lane != lane || x.Group != "default" {
				t.Fatalf("%+v", x)
			}
			for number, want := range test.numbers {
				if got := x.Number(number); got != want {
					t.Errorf("%s is %d, want %d: %+v", number, got, want, g.Numbers)
				}
			}
			if !slices.Equal(x.Changes, test.changes) {
				t.Errorf("would start after %+v, want %+v", x.Changes, test.changes)
			}
			var reasons []string
			for _, o := range g.Options {
				reasons = append(reasons, string(o.Reason))
			}
			if g.Gate == plan.GatePool {
				slices.Sort(reasons)
			}
			if got := strings.Join(reasons, " "); got != test.reasons {
				t.Errorf("%q, want %q: %+v", got, test.reasons, g.Options)
			}
			if want := c.number(t, `SELECT count(*) FROM generation_task WHERE queue_class = $1 AND state = 'QUEUED'`, lane); x.PlaceFrom != want || x.PlaceTo != want {
				t.Errorf("its place is %d to %d, want %d: nobody else waits in the lane", x.PlaceFrom, x.PlaceTo, want)
			}
		})
	}
}

func (c *town) remember(t *testing.T, s plan.Status) {
	t.Helper()
	s.At = time.Now().UTC().Truncate(time.Microsecond)
	c.must(facts.NewStatuses(c.db).PutStatus(c.ctx, "default", 1, s))
}

func TestNothingIsExplainedOfATaskThatDoesNotWaitNorBeforeAPolicy(t *testing.T) {
	t.Parallel()
	c := planned(t, 3)
	tasks := c.wait(t, 2, control.LaneStandard, 2)
	c.begin(t, "leaf-1", tasks[0])
	active := policy.NewActive(c.policies, policy.ActiveConfig{Replica: "test"})
	s := explain.New(facts.NewExplains(c.db), active, c.tenants, nil)
	if _, err := s.Explain(c.ctx, tasks[1]); control.CodeOf(err) != control.CodeNotFound {
		t.Errorf("no policy is in force: %v", err)
	}
	c.must(active.Refresh(c.ctx))
	for _, id := range []uuid.UUID{tasks[0], uuid.New()} {
		if _, err := s.Explain(c.ctx, id); control.CodeOf(err) != control.CodeNotFound {
			t.Errorf("%s does not wait: %v", id, err)
		}
	}
	if _, err := s.Explain(c.ctx, tasks[1]); err != nil {
		t.Error(err)
	}
}

// A task that is not the first of its tenant, in a lane in which others wait, has a range of places.
func TestE25_PlacesAreARangeWhereOthersWait(t *testing.T) {
	t.Parallel()
	c := planned(t, 6)
	tasks := c.wait(t, 2, control.LaneStandard, 3)
	c.wait(t, 5, control.LaneStandard, 40)
	x := c.explained(t, tasks[2])
	if x.PlaceFrom != 3 || x.PlaceTo <= 3 || x.PlaceTo > 43 {
		t.Errorf("from %d to %d", x.PlaceFrom, x.PlaceTo)
	}
	if y := x.ForTenant(); y.PlaceFrom != 3 || y.PlaceTo != 0 {
		t.Errorf("I13: a tenant sees from %d to %d", y.PlaceFrom, y.PlaceTo)
	}
}

// What was said in an older term of the lease, or earlier in the same one, changes nothing.
func TestTrap_D18_StatusesAreFencedByTerm(t *testing.T) {
	t.Parallel()
	c := newWorld(t)
	s := facts.NewStatuses(c.db)
	at := time.Now().UTC().Truncate(time.Microsecond)
	for i, put := range []struct {
		term    int64
		at      time.Time
		version int64
		want    int64 // afterwards
	}{{4, at, 1, 1}, {3, at.Add(time.Hour), 2, 1}, {4, at.Add(-time.Second), 3, 1}, {4, at.Add(time.Second), 4, 4}, {5, at, 5, 5}, {4, at.Add(time.Hour), 6, 5}} {
		c.must(s.PutStatus(c.ctx, "g", put.term, plan.Status{At: put.at, Version: put.version}))
		all, err := s.Statuses(c.ctx)
		c.must(err)
		if len(all) != 1 || all["g"].Version != put.want {
			t.Errorf("step %d: %+v, want version %d", i, all, put.want)
		}
	}
}
