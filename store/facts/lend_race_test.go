package facts_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/dispatch"
	"fairlane/control/plan"
	"fairlane/control/schedule"
	"fairlane/store/facts"
)

// Borrowers and the lender's own tasks at once, from many connections: the lender never has less than its
// headroom left by loans, and no unit is there twice.
func TestI06_ManyBorrowersNeverOverlend(t *testing.T) {
	t.Parallel()
	l := newLoans(t)
	const rounds, workers = 12, 12
	var lentMost, claims int64
	for round := range rounds {
		var wg sync.WaitGroup
		batches := make([][]schedule.ClaimStart, workers)
		for i := range batches {
			lane := []string{"A", "B", "A", "B", "LENDER"}[(i+round)%5]
			batches[i] = l.starts(t, l.queue(t, l.job(lane, 1), l.job(lane, 2), l.job(lane, 1), l.job(lane, 3)))
		}
		answers := make([][]schedule.Claimed, workers)
		errs := make([]error, workers)
		for i := range batches {
			wg.Go(func() {
				answers[i], errs[i] = facts.NewClaims(l.db).Claim(l.ctx, schedule.Claim{PoolGroup: "g", PolicyVersion: 1, Starts: batches[i]})
			})
		}
		wg.Wait()
		var endings []dispatch.Ending
		for i := range answers {
			l.must(errs[i])
			for _, c := range answers[i] {
				if c.Refused == "" {
					endings = append(endings, ending(c, control.AttemptRejected))
				} else if c.Refused != schedule.RefusedAccount {
					t.Errorf("refused by %s", c.Refused)
				}
			}
		}
		claims += int64(len(endings))
		lent, own := l.number(t, `SELECT lent_units FROM lane_account WHERE lane = 'LENDER'`), l.number(t, `SELECT own_used FROM lane_account WHERE lane = 'LENDER'`)
		if lent > 12 || own+lent > 20 || l.number(t, `SELECT max(borrowed_used) FROM lane_account`) > 10 {
			t.Errorf("round %d: %d lent of 12, %d own, 20 reserved", round, lent, own)
		}
		// Whoever was refused could not have been served: a single unit would not fit any more.
		if lent < 12 && own+lent < 16 && l.number(t, `SELECT count(*) FROM lane_account WHERE borrowed_used < 10 AND lane <> 'LENDER'`) == 2 {
			t.Errorf("round %d: %d lent and %d own while others were refused", round, lent, own)
		}
		lentMost = max(lentMost, lent)
		l.clean(t)
		if len(endings) > 0 {
			l.end(t, endings...)
		}
		l.exec(t, `UPDATE generation_task SET state = 'CANCELED', finished_at = now() WHERE state = 'QUEUED'`)
		_, err := facts.NewRebuild(l.db).RebuildCounters(l.ctx, control.System)
		l.must(err)
	}
	figure(t, "lending under contention", map[string]any{"claims": claims, "most_lent": lentMost, "lendable": 12, "workers": workers, "rounds": rounds})
}

// Relabels, releases and new loans of the same lanes at once: nothing is counted twice or lost.
func TestI06_RelabelExactlyOnceAgainstConcurrentRelease(t *testing.T) {
	t.Parallel()
	l := newLoans(t)
	l.exec(t, `UPDATE lane_account SET borrow_limit = 400`)
	l.exec(t, `UPDATE lane_account SET reserved_units = 400, lendable_units = 396 WHERE lane = 'LENDER'`)
	l.exec(t, `UPDATE resource_pool_shard SET capacity_units = 400`)
	r := rand.New(rand.NewPCG(7, 7))
	relabelled, released := int64(0), int64(0)
	for range 6 {
		jobs := make([]job, 60)
		for i := range jobs {
			jobs[i] = l.job("A", 1+r.Int64N(3))
		}
		claimed := l.started(t, jobs...)
		l.exec(t, `UPDATE lane_account SET reserved_units = own_used + $1 WHERE lane = 'A'`, 40+r.Int64N(60))
		list := make([]plan.Loan, len(claimed))
		for i, c := range claimed {
			list[i] = loanOf(c, "A", jobs[i].slots)
		}
		var wg sync.WaitGroup
		errs := make(chan error, 16)
		for worker := range 3 {
			wg.Go(func() {
				for range 3 {
					_, err := facts.NewClaims(l.db).Claim(l.ctx, schedule.Claim{PoolGroup: "g", PolicyVersion: 1, Relabels: list[worker*10:]})
					errs <- err
				}
			})
		}
		for worker := range 2 {
			wg.Go(func() {
				for i := worker * 15; i < worker*15+30; i += 10 { // ten of the sixty by both
					_, err := facts.NewEndings(l.db).End(l.ctx, []dispatch.Ending{ending(claimed[i], control.AttemptRejected), ending(claimed[i+5], control.AttemptRejected), ending(claimed[i+1], control.AttemptRejected)})
					errs <- err
				}
			})
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			l.must(err)
		}
		l.clean(t)
		if n := l.number(t, `SELECT own_used - reserved_units FROM lane_account WHERE lane = 'A'`); n > 0 {
			t.Errorf("relabelled %d units too many", n)
		}
	}
	relabelled = l.number(t, `SELECT count(DISTINCT attempt_id) FROM resource_reservation WHERE account = 'OWN'`)
	released = l.number(t, `SELECT count(DISTINCT attempt_id) FROM resource_reservation WHERE state = 'RELEASED'`)
	if both := l.number(t, `SELECT count(DISTINCT attempt_id) FROM resource_reservation WHERE account = 'OWN' AND state = 'RELEASED'`); relabelled == 0 || released == 0 || both == 0 {
		t.Errorf("%d relabelled, %d released, %d both: the race was none", relabelled, released, both)
	}
	if n := l.number(t, `SELECT count(*) FROM resource_reservation WHERE (returned_at IS NOT NULL) <> (account = 'OWN' OR state = 'RELEASED')`); n != 0 {
		t.Errorf("%d rows do not say when their units came back", n)
	}
	figure(t, "relabel against release", map[string]any{"relabelled": relabelled, "released": released})
}

// What visits repay and what endings settle meet on the same rows; neither is lost.
func TestRepaidDebtsAndSettlementsAddUp(t *testing.T) {
	t.Parallel()
	l := newLoans(t)
	l.exec(t, `UPDATE lane_account SET borrow_limit = 400, reserved_units = 800, lendable_units = 600`)
	l.exec(t, `UPDATE resource_pool_shard SET capacity_units = 800`)
	l.exec(t, `INSERT INTO lane_debt_limit (lane, task_milli, total_milli, policy_version) VALUES ('A', 100000000, 100000000, 1), ('B', 100000000, 100000000, 1) ON CONFLICT DO NOTHING`)
	jobs := make([]job, 60)
	for i := range jobs {
		jobs[i] = l.job([]string{"A", "B"}[i%2], 1)
	}
	claimed := l.started(t, jobs...)
	l.accept(t, claimed...)
	idle := l.world.tenant(t, "A", caps{})
	before := l.number(t, `SELECT coalesce(sum(debt_milli), 0)::bigint FROM tenant_lane_runtime`)
	var wg sync.WaitGroup
	errs := make(chan error, 200)
	const repaying, times = 4, 20
	for range repaying {
		wg.Go(func() {
			for range times {
				_, err := facts.NewClaims(l.db).Claim(l.ctx, schedule.Claim{PoolGroup: "g", PolicyVersion: 1, Repaid: []plan.Repaid{
					{TenantLane: plan.TenantLane{Tenant: l.tenant, Lane: "A"}, Milli: 700},
					{TenantLane: plan.TenantLane{Tenant: l.tenant, Lane: "B"}, Milli: -300},
					{TenantLane: plan.TenantLane{Tenant: l.tenant, Lane: "A"}, Milli: 7},   // the same row twice
					{TenantLane: plan.TenantLane{Tenant: idle, Lane: "NEW"}, Milli: 11},    // a row that is not there yet
					{TenantLane: plan.TenantLane{Tenant: uuid.New(), Lane: "A"}, Milli: 5}, // a tenant that is not there
				}})
				errs <- err
			}
		})
	}
	for worker := range 3 {
		wg.Go(func() {
			for i := worker; i < len(claimed); i += 3 {
				e := ending(claimed[i], control.AttemptSucceeded)
				e.ActualSeconds = float64(10 + 7*i)
				_, err := facts.NewEndings(l.db).End(l.ctx, []dispatch.Ending{e})
				errs <- err
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		l.must(err)
	}
	settled := l.number(t, `SELECT coalesce(sum(settled_units), 0)::bigint FROM task_attempt`)
	if settled == 0 {
		t.Error("nothing was settled: the test shows nothing")
	}
	after := l.number(t, `SELECT coalesce(sum(debt_milli), 0)::bigint FROM tenant_lane_runtime WHERE tenant_id = $1`, l.tenant)
	if want := before + settled - repaying*times*(707-300); after != want {
		t.Errorf("debts sum up to %d, want %d", after, want)
	}
	if got := l.text(t, `SELECT lane || ' ' || debt_milli FROM tenant_lane_runtime WHERE tenant_id = $1`, idle); got != "NEW -880" {
		t.Errorf("the row that was made: %s", got)
	}
	s := l.snapshot(t)
	if got, want := s.Debts[plan.TenantLane{Tenant: l.tenant, Lane: "A"}], l.number(t, `SELECT debt_milli FROM tenant_lane_runtime WHERE tenant_id = $1 AND lane = 'A'`, l.tenant); got != want {
		t.Errorf("read as %d, is %d", got, want)
	}
	l.clean(t)
	figure(t, "repaid beside settled", map[string]any{"repaid": repaying * times, "settled": len(claimed), "milli": settled})
}
