package facts_test

import (
	"testing"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/schedule"
	"fairlane/policy"
	"fairlane/store/facts"
)

// lendingTown is a town whose PAID_SHARED holds 20 units, keeps 4 of them free and lends 12 to STANDARD.
func lendingTown(t *testing.T) (*town, job) {
	t.Helper()
	c := newTown(t, 4)
	var user uuid.UUID
	tenant := c.list[2]
	c.must(c.sql.QueryRow(c.ctx, `SELECT user_id FROM tenant_user WHERE tenant_id = $1`, tenant.ID).Scan(&user))
	c.publish(t, policy.SetTenant(tenant, "user_max_running_video", "90"), policy.SetTenant(tenant, "user_max_running_tasks", "90"),
		paid("reserved_units", "20"), paid("headroom_units", "4"), paid("lendable_units", "12"), paid("borrow_timeout_seconds", "300"),
		paid("lends_to", control.LaneStandard), policy.SetLaneAccount(control.LaneStandard, "default", "borrow_limit_units", "10"))
	return c, job{tenant: tenant.ID, user: user, lane: control.LaneStandard, group: "default", slots: 2, maxAttempts: 1}
}

func paid(field, value string) policy.Edit {
	return policy.SetLaneAccount(control.LanePaid, "default", field, value)
}

// borrow claims tasks of 2 units on those of PAID_SHARED, under the policy in force, and returns the answers.
func (c *town) borrow(t *testing.T, j job, n int) []schedule.Claimed {
	t.Helper()
	jobs := make([]job, n)
	for i := range jobs {
		jobs[i] = j
	}
	starts := c.starts(t, c.queue(t, jobs...), "leaf-1", []string{"acct", "platform"}, control.AccountBorrowed)
	for i := range starts {
		starts[i].Lender = control.LanePaid
	}
	version, err := c.policies.HeadNumber(c.ctx)
	c.must(err)
	out, err := facts.NewClaims(c.db).Claim(c.ctx, schedule.Claim{PoolGroup: "default", PolicyVersion: version, Starts: starts})
	c.must(err)
	return out
}

func granted(list []schedule.Claimed) (out []schedule.Claimed) {
	for _, c := range list {
		if c.Refused == "" {
			out = append(out, c)
		}
	}
	return out
}

const termsSQL = `SELECT concat_ws(' ', lane, reserved_units, headroom_units, lendable_units, borrow_limit, borrow_timeout, lends_to, policy_version)
	FROM lane_account WHERE lane = $1`

func TestPublishCopiesTheTermsOfLendingWhereTheyDiffer(t *testing.T) {
	t.Parallel()
	c, _ := lendingTown(t)
	if got := c.text(t, termsSQL, control.LanePaid); got != "PAID_SHARED 20 4 12 0 300 {STANDARD} 2" {
		t.Errorf("the lender's row: %s", got)
	}
	if got := c.text(t, termsSQL, control.LaneStandard); got != "STANDARD 0 0 0 10 0 {} 2" {
		t.Errorf("the borrower's row: %s", got)
	}
	c.exec(t, `UPDATE lane_account SET lending_stopped = true, lending_stopped_since = now(), lent_units = 1 WHERE lane = 'PAID_SHARED'`)
	c.exec(t, `UPDATE resource_pool SET breaker_until = 'infinity', adaptive_limit = 3 WHERE resource_key = 'leaf-1'`)
	c.publish(t, paid("lends_to", "STANDARD, BEST_EFFORT"), policy.SetPool("leaf-1", "lane_minimums", "RECOVERY 1"), policy.SetPool("leaf-1", "capacity_units", "41"))
	if got := c.text(t, termsSQL, control.LanePaid); got != "PAID_SHARED 20 4 12 0 300 {STANDARD,BEST_EFFORT} 3" {
		t.Errorf("the lender's row: %s", got)
	}
	if got := c.text(t, termsSQL, control.LaneStandard); got != "STANDARD 0 0 0 10 0 {} 2" {
		t.Errorf("a row that did not change: %s", got)
	}
	if got := c.text(t, `SELECT concat_ws(' ', lending_stopped, lending_stopped_since IS NOT NULL, lent_units) FROM lane_account WHERE lane = 'PAID_SHARED'`); got != "t t 1" {
		t.Errorf("what the scheduler wrote is gone: %s", got)
	}
	if got := c.text(t, `SELECT string_agg(concat_ws(' ', resource_key, keeps_lanes, breaker_until, adaptive_limit), ', ' ORDER BY resource_key) FROM resource_pool WHERE kind <> 'CAP_GROUP'`); got != "leaf-1 t infinity 3, leaf-2 f" {
		t.Errorf("pools: %s", got)
	}
	c.publish(t, policy.SetPool("leaf-1", "lane_minimums", ""))
	if c.number(t, `SELECT count(*) FROM resource_pool WHERE keeps_lanes`) != 0 {
		t.Error("a pool still keeps units for lanes")
	}
}

// What a publish changes of lending holds for new loans at once; those that run come back to the lane that
// lent them, whatever has become of it.
func TestI06_ReleaseAfterThePublishThatChangedLending(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *town){
		"lends nothing":   func(t *testing.T, c *town) { c.publish(t, paid("lendable_units", "0")) },
		"lends less":      func(t *testing.T, c *town) { c.publish(t, paid("lendable_units", "5")) },
		"lends to others": func(t *testing.T, c *town) { c.publish(t, paid("lends_to", control.LaneBestEffort)) },
		"keeps more free": func(t *testing.T, c *town) { c.publish(t, paid("lendable_units", "1"), paid("headroom_units", "19")) },
		"borrower's limit": func(t *testing.T, c *town) {
			c.publish(t, policy.SetLaneAccount(control.LaneStandard, "default", "borrow_limit_units", "3"))
		},
		"reserve is gone": func(t *testing.T, c *town) {
			c.publish(t, paid("reserved_units", "0"), paid("lendable_units", "0"), paid("headroom_units", "0"))
		},
		"lender is not there": func(t *testing.T, c *town) { c.withoutLane(t, control.LanePaid) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, j := lendingTown(t)
			claimed := granted(c.borrow(t, j, 3))
			if len(claimed) != 3 {
				t.Fatalf("%d of 3 tasks borrowed", len(claimed))
			}
			change(t, c)
			if more := granted(c.borrow(t, j, 1)); len(more) != 0 {
				t.Error("a new loan under terms that do not allow it")
			}
			if got := c.text(t, `SELECT concat_ws(' ', a.lent_units, b.borrowed_used) FROM lane_account a, lane_account b WHERE a.lane = 'PAID_SHARED' AND b.lane = 'STANDARD'`); got != "6 6" {
				t.Errorf("lent and borrowed: %s", got)
			}
			c.clean(t)
			for i, x := range claimed {
				c.end(t, ending(x, control.AttemptRejected))
				if n := c.number(t, `SELECT lent_units FROM lane_account WHERE lane = 'PAID_SHARED'`); n != int64(4-2*i) {
					t.Errorf("%d lent after %d of 3 ended", n, i+1)
				}
			}
			if n := c.number(t, `SELECT sum(own_used + common_used + borrowed_used + lent_units)::bigint FROM lane_account`); n != 0 {
				t.Errorf("%d units are never given back", n)
			}
			c.clean(t)
		})
	}
}

// withoutLane publishes the policy without the lane, whose plans go to another.
func (c *town) withoutLane(t *testing.T, lane string) {
	t.Helper()
	head, err := c.policies.Head(c.ctx)
	c.must(err)
	doc := head.Document.Clone()
	kept := doc.Lanes[:0]
	for _, l := range doc.Lanes {
		if l.Code != lane {
			kept = append(kept, l)
		}
	}
	doc.Lanes = kept
	for i := range doc.Plans {
		if doc.Plans[i].Settings.Lane == lane {
			doc.Plans[i].Settings.Lane = control.LaneStandard
		}
	}
	_, err = c.publisher.Publish(c.ctx, policy.Publication{Base: head.Number, Document: doc, Reason: "gone", Actor: ann})
	c.must(err)
}

// An emergency cut below what is held and lent: nothing is killed, nothing new enters on either side, and
// lending goes on only when the lender has room again.
func TestTrap_D45_ReserveIsLoweredBelowWhatIsHeldAndLent(t *testing.T) {
	t.Parallel()
	c, j := lendingTown(t)
	lent := granted(c.borrow(t, j, 5)) // 10 units
	own := j
	own.lane = control.LanePaid
	ownIDs := c.queue(t, own, own, own, own, own, own)
	held := c.claim(t, c.starts(t, ownIDs[:3], "leaf-1", []string{"acct", "platform"}, control.AccountOwn)...)
	if len(lent) != 5 || len(granted(held)) != 3 {
		t.Fatalf("%d lent, %d held", len(lent), len(granted(held)))
	}
	c.publish(t, paid("lendable_units", "4"), paid("headroom_units", "0"), paid("reserved_units", "8")) // 6 own + 10 lent of 8: over by 8
	if got := c.text(t, `SELECT concat_ws(' ', own_used + lent_units - reserved_units, own_used, lent_units) FROM lane_account WHERE lane = 'PAID_SHARED'`); got != "8 6 10" {
		t.Errorf("over by, own, lent: %s", got)
	}
	try := func() string {
		out := ""
		for _, x := range append(c.borrow(t, j, 1), c.claim(t, c.starts(t, ownIDs[3:4], "leaf-1", []string{"acct", "platform"}, control.AccountOwn)...)...) {
			out += string(x.Refused) + " "
		}
		return out
	}
	for i, x := range lent {
		if got := try(); got != "ACCOUNT ACCOUNT " {
			t.Fatalf("with %d lent and 6 own of 8: %s", 10-2*i, got)
		}
		c.clean(t)
		c.end(t, ending(x, control.AttemptRejected))
	}
	// 6 own of 8: one of the two fits, and it is the borrower's, who asks first.
	if got := try(); got != " ACCOUNT " {
		t.Errorf("with 6 own of 8: %q", got)
	}
	// The lender's capacity comes back while units are out: nothing is there twice.
	c.publish(t, paid("reserved_units", "20"), paid("lendable_units", "12"))
	if got := try(); got != "  " {
		t.Errorf("raised again: %q", got)
	}
	c.clean(t)
	loans, err := facts.NewSnapshots(c.db).Snapshot(c.ctx, "default", nil, nil)
	c.must(err)
	if len(loans.Loans) != 2 || loans.Lanes[plan.LaneGroup{Lane: control.LanePaid, Group: "default"}].Lent != 4 {
		t.Errorf("loans %+v", loans.Loans)
	}
}
