package facts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/schedule"
	"fairlane/store/facts"
)

// loans is a world with a lane that holds 20 units, keeps 4 of them free and lends 12 to two lanes that
// hold nothing and borrow at most 10 each. Nothing is common.
type loans struct {
	*world
	tenant, user uuid.UUID
}

func newLoans(t *testing.T) *loans {
	t.Helper()
	w := newWorld(t)
	w.group(t, "g", 40, 0)
	w.lane(t, "LENDER", "g", 20)
	w.lane(t, "A", "g", 0)
	w.lane(t, "B", "g", 0)
	w.exec(t, `UPDATE lane_account SET borrow_limit = 10`)
	w.exec(t, `UPDATE lane_account SET headroom_units = 4, lendable_units = 12, lends_to = '{A,B}', borrow_timeout = 90 WHERE lane = 'LENDER'`)
	w.pool(t, "acct", "", nil, 60, 60)
	w.pool(t, "leaf", "g", []string{"acct"}, 3, 3, 60)
	tenant := w.tenant(t, "LENDER", caps{})
	return &loans{w, tenant, w.user(t, tenant)}
}

// job is a task of the lane.
func (l *loans) job(lane string, slots int64) job {
	return job{tenant: l.tenant, user: l.user, lane: lane, slots: slots, maxAttempts: 1}
}

// starts asks for the tasks: those of the lender on its own units, the others on the lender's.
func (l *loans) starts(t testing.TB, ids []uuid.UUID) []schedule.ClaimStart {
	t.Helper()
	list := l.world.starts(t, ids, "leaf", []string{"acct"}, control.AccountBorrowed)
	for i := range list {
		if list[i].Lender = "LENDER"; list[i].Lane == "LENDER" {
			list[i].Account, list[i].Lender = control.AccountOwn, ""
		}
	}
	return list
}

func (l *loans) run(t testing.TB, req schedule.Claim) []schedule.Claimed {
	t.Helper()
	req.PoolGroup, req.PolicyVersion = "g", 1
	out, err := facts.NewClaims(l.db).Claim(l.ctx, req)
	l.must(err)
	return out
}

func (l *loans) started(t testing.TB, jobs ...job) []schedule.Claimed {
	t.Helper()
	out := l.run(t, schedule.Claim{Starts: l.starts(t, l.queue(t, jobs...))})
	for _, c := range out {
		if c.Refused != "" {
			t.Fatalf("refused: %+v", c)
		}
	}
	return out
}

// counters are own, borrowed and lent of a lane.
func (l *loans) counters(t testing.TB, lane string) string {
	t.Helper()
	return l.text(t, `SELECT concat_ws(' ', own_used, borrowed_used, lent_units) FROM lane_account WHERE lane = $1`, lane)
}

func (l *loans) snapshot(t testing.TB) plan.Snapshot {
	t.Helper()
	s, err := facts.NewSnapshots(l.db).Snapshot(l.ctx, "g", []uuid.UUID{l.tenant}, nil)
	l.must(err)
	return s
}

func loanOf(c schedule.Claimed, lane string, units int64) plan.Loan {
	return plan.Loan{AttemptID: c.AttemptID, Lane: lane, Lender: "LENDER", Units: units}
}

func TestI06_ALoanIsWrittenReadAndReturned(t *testing.T) {
	t.Parallel()
	l := newLoans(t)
	first := l.started(t, l.job("A", 8))
	second := l.started(t, l.job("B", 2))
	if got := l.counters(t, "LENDER") + ", " + l.counters(t, "A") + ", " + l.counters(t, "B"); got != "0 0 10, 0 8 0, 0 2 0" {
		t.Errorf("own, borrowed, lent of lender, A and B: %s", got)
	}
	if got := l.text(t, `SELECT string_agg(DISTINCT concat_ws(' ', account, lender_lane, borrowed_from, borrow_due_at - borrowed_at, returned_at IS NULL), ', ')
		FROM resource_reservation WHERE attempt_id = $1`, first[0].AttemptID); got != "BORROWED LENDER LENDER 00:01:30 t" {
		t.Errorf("the rows of 8 units in shards of 3 say %s", got)
	}
	want := []plan.Loan{loanOf(first[0], "A", 8), loanOf(second[0], "B", 2)}
	if d := cmp.Diff(want, l.snapshot(t).Loans); d != "" {
		t.Error(d)
	}
	l.clean(t)
	l.accept(t, first...)
	l.end(t, ending(first[0], control.AttemptSucceeded), ending(second[0], control.AttemptRejected))
	if got := l.counters(t, "LENDER") + ", " + l.counters(t, "A") + ", " + l.counters(t, "B"); got != "0 0 0, 0 0 0, 0 0 0" {
		t.Errorf("after the release: %s", got)
	}
	if n := l.number(t, `SELECT count(*) FROM resource_reservation WHERE returned_at IS NULL OR abs(extract(epoch FROM returned_at - released_at)) > 5`); n != 0 {
		t.Errorf("%d rows do not say when the units came back", n)
	}
	if s := l.snapshot(t); len(s.Loans) != 0 {
		t.Errorf("loans that are over: %+v", s.Loans)
	}
	l.clean(t)
}

// The oldest loans of each lane are read, however many another lane has.
func TestLoansAreReadOldestFirstAndEachLaneHasItsOwn(t *testing.T) {
	t.Parallel()
	l := newLoans(t)
	l.exec(t, `UPDATE lane_account SET borrow_limit = 5000, reserved_units = 5000, lendable_units = 4000`)
	l.exec(t, `UPDATE resource_pool_shard SET capacity_units = 5000`)
	jobs := make([]job, 1_000)
	for i := range jobs {
		jobs[i] = l.job("A", 1)
	}
	for range 2 {
		l.started(t, jobs[:plan.MaxLoans/2+50]...)
	}
	late := l.started(t, l.job("B", 1))
	got := l.snapshot(t).Loans
	if len(got) != plan.MaxLoans || got[len(got)-1] != loanOf(late[0], "B", 1) {
		t.Fatalf("%d loans, the last is %+v", len(got), got[len(got)-1])
	}
	if n := l.number(t, `SELECT count(*) FROM resource_reservation WHERE lane = 'A' AND created_at < (SELECT max(created_at) FROM resource_reservation WHERE attempt_id = $1)`, got[len(got)-2].AttemptID); n > plan.MaxLoans {
		t.Errorf("%d loans of A are older than the last one that is read", n)
	}
}

func TestI06_ALaneStopsAfterTheStartsOfThePlanThatStopsIt(t *testing.T) {
	t.Parallel()
	l := newLoans(t)
	ids := l.queue(t, l.job("A", 1), l.job("LENDER", 1), l.job("A", 1))
	l.run(t, schedule.Claim{Lending: []plan.Lending{{Lane: "LENDER", Stopped: true}}})
	for _, step := range []struct {
		stopped bool
		want    schedule.Refusal
	}{{true, schedule.RefusedAccount}, {false, ""}} {
		got := l.run(t, schedule.Claim{Lending: []plan.Lending{{Lane: "LENDER", Stopped: step.stopped}, {Lane: "NOBODY", Stopped: true}}, Starts: l.starts(t, ids[:1])})
		if got[0].Refused != step.want {
			t.Errorf("stopped %v: %+v", step.stopped, got[0])
		}
		if s := l.snapshot(t).Lanes[plan.LaneGroup{Lane: "LENDER", Group: "g"}]; s.Stopped != step.stopped {
			t.Errorf("stopped %v, read as %v", step.stopped, s.Stopped)
		}
		if got := l.text(t, `SELECT (lending_stopped_since IS NOT NULL)::text FROM lane_account WHERE lane = 'LENDER'`); got != map[bool]string{true: "true", false: "false"}[step.stopped] {
			t.Errorf("stopped %v: since is there: %s", step.stopped, got)
		}
	}
	l.run(t, schedule.Claim{Lending: []plan.Lending{{Lane: "LENDER", Stopped: true}}})
	since := l.text(t, `SELECT lending_stopped_since::text FROM lane_account WHERE lane = 'LENDER'`)
	l.run(t, schedule.Claim{Lending: []plan.Lending{{Lane: "LENDER", Stopped: true}}})
	if again := l.text(t, `SELECT lending_stopped_since::text FROM lane_account WHERE lane = 'LENDER'`); again != since {
		t.Errorf("stopped since %s, then since %s", since, again)
	}
	both := []plan.Lending{{Lane: "LENDER", Stopped: false}, {Lane: "LENDER", Stopped: true}}
	if got := l.run(t, schedule.Claim{Lending: both, Starts: l.starts(t, ids[2:])}); got[0].Refused != "" {
		t.Errorf("lent before the lane stopped again: %+v", got[0])
	}
	if again := l.text(t, `SELECT lending_stopped_since::text FROM lane_account WHERE lane = 'LENDER'`); again != since {
		t.Errorf("said twice in one claim: %s", again)
	}
	if got := l.run(t, schedule.Claim{Starts: l.starts(t, ids[1:2])}); got[0].Refused != "" {
		t.Errorf("the lender's own task: %+v", got[0])
	}
	l.clean(t)
}

func TestARelabelMovesWholeAttemptsAndOnlyWhereOwnUnitsAreFree(t *testing.T) {
	t.Parallel()
	l := newLoans(t)
	c := l.started(t, l.job("A", 4), l.job("A", 3), l.job("B", 2))
	l.exec(t, `UPDATE lane_account SET reserved_units = 5 WHERE lane = 'A'`)
	all := []plan.Loan{loanOf(c[0], "A", 4), loanOf(c[1], "A", 3), loanOf(c[2], "B", 2)}
	wrong := []plan.Loan{loanOf(c[0], "B", 4), {AttemptID: c[0].AttemptID, Lane: "A", Lender: "B", Units: 4}, loanOf(schedule.Claimed{AttemptID: uuid.New()}, "A", 1)}
	l.run(t, schedule.Claim{Relabels: wrong})
	if got := l.counters(t, "LENDER") + ", " + l.counters(t, "A"); got != "0 0 9, 0 7 0" {
		t.Fatalf("a loan that is not there was relabelled: %s", got)
	}
	// The first fits into 5, the second does not; B holds nothing of its own.
	l.run(t, schedule.Claim{Relabels: append(all, all...)})
	if got := l.counters(t, "LENDER") + ", " + l.counters(t, "A") + ", " + l.counters(t, "B"); got != "0 0 5, 4 3 0, 0 2 0" {
		t.Errorf("own, borrowed, lent of lender, A and B: %s", got)
	}
	if got := l.text(t, `SELECT string_agg(DISTINCT concat_ws(' ', account, lender_lane, borrowed_from, returned_at IS NOT NULL), ', ') FROM resource_reservation WHERE attempt_id = $1`,
		c[0].AttemptID); got != "OWN LENDER t" {
		t.Errorf("the relabelled rows say %s", got)
	}
	l.clean(t)
	l.run(t, schedule.Claim{Relabels: all})
	if got := l.counters(t, "A"); got != "4 3 0" {
		t.Errorf("relabelled twice: %s", got)
	}
	// The relabel comes before the starts of the same claim: what it freed can be lent at once, and the own
	// units that it took are gone.
	l.exec(t, `UPDATE lane_account SET lendable_units = 5 WHERE lane = 'LENDER'`)
	l.exec(t, `UPDATE lane_account SET reserved_units = 7 WHERE lane = 'A'`)
	got := l.run(t, schedule.Claim{Relabels: all[1:2], Starts: l.starts(t, l.queue(t, l.job("B", 3)))})
	if got[0].Refused != "" || l.counters(t, "A") != "7 0 0" || l.counters(t, "LENDER") != "0 0 5" {
		t.Errorf("%+v, A %s, lender %s", got[0], l.counters(t, "A"), l.counters(t, "LENDER"))
	}
	l.end(t, ending(c[0], control.AttemptRejected), ending(c[1], control.AttemptRejected), ending(c[2], control.AttemptRejected), ending(got[0], control.AttemptRejected))
	for _, lane := range []string{"LENDER", "A", "B"} {
		if got := l.counters(t, lane); got != "0 0 0" {
			t.Errorf("%s in the end: %s", lane, got)
		}
	}
	l.clean(t)
}

func TestALaneLendsNothingWhileItsPoolsBreakerKeepsEverybodyOut(t *testing.T) {
	t.Parallel()
	l := newLoans(t)
	l.exec(t, `UPDATE resource_pool SET breaker_until = clock_timestamp() + interval '1 hour' WHERE resource_key = 'leaf'`)
	ids := l.queue(t, l.job("A", 1))
	if got := l.run(t, schedule.Claim{Starts: l.starts(t, ids)}); got[0].Refused != schedule.RefusedPool || got[0].Pool != "leaf" {
		t.Errorf("%+v", got[0])
	}
	if s := l.snapshot(t); !s.Pools["leaf"].Open || s.Pools["acct"].Open {
		t.Errorf("pools %+v", s.Pools)
	}
	l.exec(t, `UPDATE resource_pool SET breaker_until = clock_timestamp() WHERE resource_key = 'leaf'`)
	if got := l.run(t, schedule.Claim{Starts: l.starts(t, ids)}); got[0].Refused != "" || l.snapshot(t).Pools["leaf"].Open {
		t.Errorf("closed again: %+v", got[0])
	}
}

// Who uses a pool is read for pools that keep something for lanes, leaves and cap groups, and for no others.
func TestSnapshotReadsWhoUsesAPoolThatKeepsUnits(t *testing.T) {
	t.Parallel()
	l := newLoans(t)
	l.started(t, l.job("A", 5), l.job("LENDER", 2), l.job("A", 1))
	gone := l.started(t, l.job("B", 1))
	l.end(t, ending(gone[0], control.AttemptRejected))
	if s := l.snapshot(t); s.Pools["leaf"].Lanes != nil || s.Pools["acct"].Lanes != nil {
		t.Errorf("nothing is kept: %+v", s.Pools)
	}
	l.pool(t, "idle", "g", nil, 3)
	for _, keeps := range [][]string{{"leaf", "idle"}, {"acct", "leaf"}, {"acct"}} {
		l.exec(t, `UPDATE resource_pool SET keeps_lanes = resource_key = ANY($1)`, keeps)
		s := l.snapshot(t)
		for _, key := range []string{"leaf", "acct", "idle"} {
			var want map[string]int64
			if strings.Contains(strings.Join(keeps, " "), key) {
				if want = map[string]int64{"A": 6, "LENDER": 2}; key == "idle" {
					want = map[string]int64{}
				}
			}
			if d := cmp.Diff(want, s.Pools[key].Lanes); d != "" {
				t.Errorf("%v keep, %s: %s", keeps, key, d)
			}
		}
	}
}

func TestClaimRefusesWhatNoPlanMayAskOfLending(t *testing.T) {
	t.Parallel()
	l := newLoans(t)
	start := l.starts(t, l.queue(t, l.job("A", 1)))[0]
	bend := func(edit func(*schedule.ClaimStart)) schedule.Claim {
		s := start
		edit(&s)
		return schedule.Claim{Starts: []schedule.ClaimStart{s}}
	}
	who := plan.TenantLane{Tenant: l.tenant, Lane: "A"}
	for field, req := range map[string]schedule.Claim{
		"starts[0].lender":       bend(func(s *schedule.ClaimStart) { s.Lender = "" }),
		"starts[0].lender ":      bend(func(s *schedule.ClaimStart) { s.Account = control.AccountOwn }),
		"starts[0].lender  ":     bend(func(s *schedule.ClaimStart) { s.Lender = "A" }),
		"relabels[0].attempt_id": {Relabels: []plan.Loan{{Lane: "A", Lender: "LENDER"}}},
		"relabels[0].lane":       {Relabels: []plan.Loan{{AttemptID: uuid.New(), Lender: "LENDER"}}},
		"relabels[0].lender":     {Relabels: []plan.Loan{{AttemptID: uuid.New(), Lane: "A", Lender: "A"}}},
		"relabels":               {Relabels: make([]plan.Loan, plan.MaxLoans+1)},
		"lending[0].lane":        {Lending: []plan.Lending{{Stopped: true}}},
		"lending":                {Lending: make([]plan.Lending, 1_001)},
		"repaid[0].milli":        {Repaid: []plan.Repaid{{TenantLane: who, Milli: 1_000_000_000_001}}},
		"repaid[0].milli ":       {Repaid: []plan.Repaid{{TenantLane: who, Milli: -1 << 63}}},
		"repaid":                 {Repaid: make([]plan.Repaid, 200_001)},
	} {
		req.PoolGroup = "g"
		out, err := facts.NewClaims(l.db).Claim(l.ctx, req)
		if control.CodeOf(err) != control.CodeInvalid || out != nil || !strings.Contains(err.Error(), strings.TrimSpace(field)) {
			t.Errorf("%s: %v, %v", field, out, err)
		}
	}
	if got := l.counters(t, "LENDER"); got != "0 0 0" {
		t.Errorf("something was written: %s", got)
	}
}

// A claim that carries nothing but what is beside starts answers for no start, and one that carries nothing
// does nothing.
func TestAClaimWithoutStarts(t *testing.T) {
	t.Parallel()
	l := newLoans(t)
	began := time.Now()
	if out := l.run(t, schedule.Claim{}); out != nil {
		t.Errorf("%v", out)
	}
	if out := l.run(t, schedule.Claim{Repaid: []plan.Repaid{{TenantLane: plan.TenantLane{Tenant: l.tenant, Lane: "A"}, Milli: 5}}}); len(out) != 0 {
		t.Errorf("%v", out)
	}
	if got := l.number(t, `SELECT debt_milli FROM tenant_lane_runtime WHERE updated_at >= $1::timestamptz - interval '1 minute'`, began); got != -5 {
		t.Errorf("debt %d", got)
	}
}

// A plan that was made before the lane came to keep no debts repays what has been cut meanwhile.
func TestARepaymentStaysWithinTheTotalInForce(t *testing.T) {
	t.Parallel()
	l := newLoans(t)
	l.exec(t, `INSERT INTO lane_debt_limit VALUES ('A', 0, 0, 1), ('B', 50, 100, 1) ON CONFLICT (lane) DO UPDATE SET total_milli = excluded.total_milli`)
	l.exec(t, `INSERT INTO tenant_lane_runtime (tenant_id, lane) VALUES ($1, 'A'), ($1, 'B') ON CONFLICT DO NOTHING`, l.tenant)
	l.run(t, schedule.Claim{Repaid: []plan.Repaid{
		{TenantLane: plan.TenantLane{Tenant: l.tenant, Lane: "A"}, Milli: 500}, {TenantLane: plan.TenantLane{Tenant: l.tenant, Lane: "B"}, Milli: 60},
	}})
	l.run(t, schedule.Claim{Repaid: []plan.Repaid{{TenantLane: plan.TenantLane{Tenant: l.tenant, Lane: "B"}, Milli: 500}}})
	if got := l.text(t, `SELECT string_agg(lane || debt_milli, ' ' ORDER BY lane) FROM tenant_lane_runtime WHERE lane IN ('A', 'B')`); got != "A0 B-100" {
		t.Errorf("debts %s", got)
	}
	l.clean(t)
}
