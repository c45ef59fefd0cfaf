package facts_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"fairlane/control/plan"
	"fairlane/control/schedule"
	"fairlane/store/facts"
)

// lendingClaim carries everything that a claim can carry, n of each: relabels, flags, what was repaid, and
// starts on borrowed units of a lane that lends more than enough.
func lendingClaim(t *testing.T, l *loans, n int) schedule.Claim {
	t.Helper()
	l.exec(t, `UPDATE lane_account SET borrow_limit = 400, reserved_units = 400`)
	l.exec(t, `UPDATE lane_account SET lendable_units = 300, headroom_units = 4 WHERE lane = 'LENDER'`)
	l.exec(t, `UPDATE resource_pool_shard SET capacity_units = 400`)
	jobs := make([]job, n)
	for i := range jobs {
		jobs[i] = l.job("A", 2)
	}
	req := schedule.Claim{PoolGroup: "g", PolicyVersion: 1, Lending: []plan.Lending{{Lane: "B", Stopped: true}}}
	for _, c := range l.started(t, jobs...) {
		req.Relabels = append(req.Relabels, loanOf(c, "A", 2))
		req.Repaid = append(req.Repaid, plan.Repaid{TenantLane: plan.TenantLane{Tenant: l.tenant, Lane: "A"}, Milli: 3})
	}
	req.Starts = l.starts(t, l.queue(t, jobs...))
	return req
}

func TestTrap_D10_AClaimThatLendsIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	l := newLoans(t)
	req := lendingClaim(t, l, 2)
	before := l.everything(t)
	var out []schedule.Claimed
	n := l.breakEach(t, func(tx pgx.Tx) (err error) {
		out, err = facts.ClaimIn(l.ctx, tx, req)
		return err
	}, func(statement string) {
		if l.everything(t) != before {
			t.Errorf("something is left of a claim that broke after %s", statement)
		}
	})
	if n < 24 || len(out) != 2 || out[0].Refused != "" || out[1].Refused != "" {
		t.Errorf("%d statements were broken, %+v", n, out)
	}
	if got := l.counters(t, "LENDER") + ", " + l.counters(t, "A"); got != "0 0 4, 4 4 0" {
		t.Errorf("own, borrowed, lent of lender and A: %s", got)
	}
	l.clean(t)
}

// A larger batch takes the same number of statements.
func TestAClaimTakesOneNumberOfStatements(t *testing.T) {
	t.Parallel()
	var counts []int
	for _, n := range []int{1, 40} {
		l := newLoans(t)
		req := lendingClaim(t, l, n)
		counts = append(counts, l.breakEach(t, func(tx pgx.Tx) error {
			_, err := facts.ClaimIn(l.ctx, tx, req)
			return err
		}, func(string) {}))
		l.clean(t)
	}
	if counts[0] != counts[1] {
		t.Errorf("%d statements for a batch of 1, %d for one of 40", counts[0], counts[1])
	}
	figure(t, "statements of a claim that lends", map[string]any{"statements": counts[1]})
}
