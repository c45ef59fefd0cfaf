package facts_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/dispatch"
	"fairlane/control/estimate"
	"fairlane/control/schedule"
	"fairlane/policy"
	"fairlane/store/facts"
)

// debts sets the limits of the lane, in milli-units.
func (w *world) debts(t testing.TB, task, total int64) {
	t.Helper()
	w.exec(t, `INSERT INTO lane_debt_limit VALUES ('PAID_SHARED', $1, $2, 1) ON CONFLICT (lane) DO UPDATE SET task_milli = $1, total_milli = $2`, task, total)
}

func (w *world) debt(t testing.TB, tenant uuid.UUID) int64 {
	t.Helper()
	return w.number(t, `SELECT debt_milli FROM tenant_lane_runtime WHERE tenant_id = $1 AND lane = 'PAID_SHARED'`, tenant)
}

// took is a success of which the provider told seconds and no cost.
func took(c schedule.Claimed, seconds float64) dispatch.Ending {
	e := ending(c, control.AttemptSucceeded)
	e.ActualSeconds, e.ActualCost = seconds, 0
	return e
}

// Tasks of the fixture are charged one unit; a unit is 30 seconds.
func TestSettleWritesWhatAnAttemptUsed(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	w.debts(t, 50_000, 500_000)
	for name, c := range map[string]struct {
		from, task string
		ending     dispatch.Ending
		want       string // used seconds, used units, settled units
		debt       int64
		sample     bool
	}{
		"long":             {"ACCEPTED", "RUNNING", dispatch.Ending{State: control.AttemptSucceeded, ActualSeconds: 120}, "120 4000 3000", 3_000, true},
		"beyond the limit": {"ACCEPTED", "RUNNING", dispatch.Ending{State: control.AttemptSucceeded, ActualSeconds: 9_000}, "9000 300000 50000", 50_000, true},
		"dear":             {"ACCEPTED", "RUNNING", dispatch.Ending{State: control.AttemptSucceeded, ActualSeconds: 30, ActualCost: 700_000}, "30 7000 6000", 6_000, true},
		"cost not told":    {"ACCEPTED", "RUNNING", dispatch.Ending{State: control.AttemptSucceeded, ActualSeconds: 30, ActualCost: -1}, "30 5000 4000", 4_000, true},
		"failed":           {"ACCEPTED", "RUNNING", dispatch.Ending{State: control.AttemptFailed, ActualSeconds: 60, ActualCost: -1}, "60 2000 1000", 1_000, false},
		"rejected":         {"SUBMITTING", "DISPATCHING", dispatch.Ending{State: control.AttemptRejected, Retry: true}, "0 0 -1000", -1_000, false},
		"canceled before":  {"CREATED", "DISPATCHING", dispatch.Ending{State: control.AttemptCanceled}, "0 0 -1000", -1_000, false},
		"given up":         {"UNKNOWN", "SUBMIT_UNKNOWN", dispatch.Ending{State: control.AttemptAbandoned, ActualCost: -1}, "- - 0", 0, false},
		"silent":           {"LOST", "RUNNING", dispatch.Ending{State: control.AttemptFailed, ActualCost: -1}, "- - 0", 0, false},
	} {
		got := w.ran(t, tenant, user, 1)[0]
		w.exec(t, `UPDATE tenant_lane_runtime SET debt_milli = 0`)
		w.exec(t, `UPDATE task_attempt SET state = $2 WHERE attempt_id = $1`, got.AttemptID, c.from)
		w.exec(t, `UPDATE generation_task SET state = $2, parameters = '{"resolution": "720p", "duration_seconds": 5}' WHERE task_id = $1`, got.TaskID, c.task)
		c.ending.Ref = dispatch.Ref{AttemptID: got.AttemptID, FencingToken: got.FencingToken}
		done := w.end(t, c.ending)[0]
		if !done.Applied || done.Settled.DebtMilli != c.debt || done.Settled.ChargedMilli != 1_000 || done.Settled.ExpectedSeconds != 60 || done.Settled.Whole != c.sample {
			t.Errorf("%s: %+v", name, done)
		}
		if s := w.text(t, `SELECT concat_ws(' ', coalesce(used_seconds::text, '-'), coalesce(used_units::text, '-'), settled_units) FROM task_attempt WHERE attempt_id = $1 AND held_seconds > 0`, got.AttemptID); s != c.want {
			t.Errorf("%s: the row says %q, want %q", name, s, c.want)
		}
		if n := w.debt(t, tenant); n != c.debt {
			t.Errorf("%s: a debt of %d, want %d", name, n, c.debt)
		}
		samples := w.number(t, `SELECT count(*) FROM estimate_sample WHERE attempt_id = $1 AND (model_code, resolution, clip_seconds, provider) = ('m', '720p', 5, 'prov') AND held_seconds > 0
			AND expected_seconds = 60 AND expected_p95_seconds = 120 AND charged_units = 1000`, got.AttemptID)
		if (samples == 1) != c.sample || samples > 1 {
			t.Errorf("%s: %d samples", name, samples)
		}
		if again := w.end(t, c.ending)[0]; again.Applied || again.Settled != (estimate.Settlement{}) || w.debt(t, tenant) != c.debt {
			t.Errorf("%s again: %+v, a debt of %d", name, again, w.debt(t, tenant))
		}
		w.clean(t)
	}
}

func TestI05_TwentyEndingsSettleAnAttemptOnce(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	w.debts(t, 7_000, 500_000)
	got := w.ran(t, tenant, user, 6)
	var wg sync.WaitGroup
	for g := range 20 {
		wg.Go(func() {
			var endings []dispatch.Ending
			for i := range got {
				endings = append(endings, took(got[(i+g)%len(got)], 300))
			}
			for len(endings) > 0 { // in batches of several sizes
				n := min(1+g%4, len(endings))
				if _, err := facts.NewEndings(w.db).End(w.ctx, endings[:n]); err != nil {
					t.Error(err)
				}
				endings = endings[n:]
			}
		})
	}
	wg.Wait()
	if n := w.debt(t, tenant); n != 6*7_000 {
		t.Errorf("a debt of %d after 6 tasks of 10 units charged at one, want 7 for each", n)
	}
	if s := w.text(t, `SELECT concat_ws(' ', (SELECT count(*) FROM estimate_sample), cost_tasks, cost_factor > 1) FROM tenant_runtime`); s != "6 6 t" {
		t.Errorf("samples, learnt tasks, factor risen: %s", s)
	}
	w.free(t)
	w.clean(t)
}

// The outcome depends on the order of the endings alone, and limits hold at each of them.
func TestSettleIsTheSameHoweverEndingsAreGrouped(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	w.debts(t, 50_000, 60_000)
	other := w.tenant(t, "PAID_SHARED", caps{})
	one, many := w.ran(t, tenant, user, 24), w.ran(t, other, w.user(t, other), 24)
	r := rand.New(rand.NewPCG(5, 5))
	var batch []dispatch.Ending
	sum, worst := int64(0), int64(0)
	for i := range one {
		seconds := 3_000 * r.Float64()
		batch = append(batch, took(many[i], seconds))
		if i%3 == 2 { // and some that never ran
			batch[i] = ending(many[i], control.AttemptFailed)
			batch[i].ActualSeconds = 1
		}
		single := batch[i]
		single.Ref = dispatch.Ref{AttemptID: one[i].AttemptID, FencingToken: one[i].FencingToken}
		sum += w.end(t, single)[0].Settled.DebtMilli
		worst = max(worst, w.debt(t, tenant))
	}
	w.end(t, batch...)
	if a, b := w.debt(t, tenant), w.debt(t, other); a != b || a != sum || worst != 60_000 {
		t.Errorf("one by one %d, at once %d, the sum of the steps %d, at worst %d", a, b, sum, worst)
	}
	if n := w.number(t, `SELECT count(DISTINCT (cost_factor, cost_tasks)) FROM tenant_runtime`); n != 1 {
		t.Error("the factors differ")
	}
	w.clean(t)
}

func TestI09_AnAttemptSettlesWhenItsEndIsKnown(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	w.debts(t, 50_000, 500_000)
	got := w.ran(t, tenant, user, 3)
	w.exec(t, `UPDATE task_attempt SET state = CASE attempt_id WHEN $1 THEN 'UNKNOWN' ELSE 'LOST' END WHERE attempt_id IN ($1, $2)`, got[0].AttemptID, got[1].AttemptID)
	w.exec(t, `UPDATE generation_task SET state = 'SUBMIT_UNKNOWN' WHERE task_id = $1`, got[0].TaskID)
	stale := took(got[2], 900)
	stale.FencingToken--
	for i, e := range w.end(t, took(got[0], 900), stale) {
		if e.Applied || e.Settled != (estimate.Settlement{}) {
			t.Errorf("ending %d: %+v", i, e)
		}
	}
	if n := w.debt(t, tenant); n != 0 || w.number(t, `SELECT count(settled_units) FROM task_attempt`) != 0 {
		t.Errorf("something was settled: a debt of %d", n)
	}
	w.clean(t)
	w.end(t, ending(got[0], control.AttemptRejected)) // it never arrived
	if n := w.debt(t, tenant); n != -1_000 {
		t.Errorf("the charge comes back when the submit surely never arrived: a debt of %d", n)
	}
	w.end(t, took(got[1], 90)) // it was found again
	if n := w.debt(t, tenant); n != 1_000 {
		t.Errorf("a lost job that was found has used 3 units: a debt of %d", n)
	}
	w.clean(t)
}

// Each claim is charged, and each attempt settles its own: a task that came back has neither gained nor lost.
func TestARetrySettlesEachOfItsClaims(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	w.debts(t, 50_000, 500_000)
	got := w.ran(t, tenant, user, 1)[0]
	for _, e := range []dispatch.Ending{{State: control.AttemptRejected, Uncounted: true}, {State: control.AttemptFailed, ActualSeconds: 60, ActualCost: -1}} {
		from, task := "SUBMITTING", "DISPATCHING"
		if e.State == control.AttemptFailed {
			from, task = "ACCEPTED", "RUNNING"
		}
		w.exec(t, `UPDATE task_attempt SET state = $2 WHERE attempt_id = $1`, got.AttemptID, from)
		w.exec(t, `UPDATE generation_task SET state = $2 WHERE task_id = $1`, got.TaskID, task)
		e.Ref, e.Retry = dispatch.Ref{AttemptID: got.AttemptID, FencingToken: got.FencingToken}, true
		if done := w.end(t, e)[0]; done.TaskState != control.TaskQueued {
			t.Fatalf("%+v", done)
		}
		got = w.claim(t, w.starts(t, []uuid.UUID{got.TaskID}, "leaf", inGroups, control.AccountCommon)...)[0]
		w.accept(t, got)
	}
	w.end(t, took(got, 120))
	// Charged 3 × 1 unit; used 0 + 2 + 4.
	if n := w.debt(t, tenant); n != 3_000 {
		t.Errorf("a debt of %d, want 3,000", n)
	}
	if s := w.text(t, `SELECT string_agg(used_units || '/' || settled_units, ' ' ORDER BY attempt_no) FROM task_attempt`); s != "0/-1000 2000/1000 4000/3000" {
		t.Errorf("attempts: %s", s)
	}
	if n := w.number(t, `SELECT served_milli + debt_milli FROM tenant_lane_runtime`); n != 6_000 {
		t.Errorf("estimates at start and corrections make %d, used were 6,000", n)
	}
	w.clean(t)
}

func TestALaneWithoutDebtsKeepsNone(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{}) // no limits at all: a lane that is not in the policy
	got := w.ran(t, tenant, user, 2)
	w.end(t, took(got[0], 900))
	w.debts(t, 0, 0)
	w.end(t, took(got[1], 900))
	if n := w.debt(t, tenant); n != 0 {
		t.Errorf("a debt of %d", n)
	}
	if n := w.number(t, `SELECT count(*) FROM estimate_sample`); n != 2 {
		t.Errorf("%d samples of 2: it learns all the same", n)
	}
	w.clean(t)
}

// A start by the tenant's reserve is not charged to its turn: a long task makes no debt, and one that the
// provider refused, however often, no credit.
func TestAStartThatWasNotChargedOwesNothing(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	w.debts(t, 50_000, 500_000)
	starts := w.starts(t, w.queue(t, job{tenant: tenant, user: user}, job{tenant: tenant, user: user}), "leaf", inGroups, control.AccountCommon)
	for i := range starts {
		starts[i].Free = true
	}
	got := w.claim(t, starts...)
	w.end(t, ending(got[0], control.AttemptRejected))
	w.accept(t, got[1])
	w.end(t, took(got[1], 900))
	if n := w.debt(t, tenant); n != 0 {
		t.Errorf("a debt of %d", n)
	}
	if n := w.number(t, `SELECT count(*) FROM task_attempt WHERE free AND settled_units = 0`); n != 2 {
		t.Errorf("%d of 2 settled by nothing", n)
	}
	if n := w.number(t, `SELECT count(*) FROM estimate_sample`); n != 1 {
		t.Errorf("%d samples of 1: it learns all the same", n)
	}
	w.clean(t)
}

// A publish copies the limits, and cuts debts under endings that go on meanwhile.
func TestPublishLimitsDebts(t *testing.T) {
	t.Parallel()
	c := newTown(t, 8)
	limits := func() string {
		return c.text(t, `SELECT string_agg(concat_ws('/', lane, task_milli, total_milli), ' ' ORDER BY lane) FROM lane_debt_limit WHERE lane IN ('PAID_SHARED', 'BEST_EFFORT')`)
	}
	if got := limits(); got != "BEST_EFFORT/50000/500000 PAID_SHARED/50000/500000" {
		t.Fatalf("as shipped: %s", got)
	}
	lane := "PAID_SHARED"
	c.exec(t, `UPDATE tenant_lane_runtime SET debt_milli = CASE WHEN ('x' || right(tenant_id::text, 2))::bit(8)::int % 2 = 0 THEN 450000 ELSE -450000 END WHERE lane IN ('PAID_SHARED', 'BEST_EFFORT')`)
	// A completion is in the middle of settling while the publish comes.
	tx, err := c.sql.Begin(c.ctx)
	c.must(err)
	defer tx.Rollback(c.ctx) //nolint:errcheck // after the commit there is nothing to roll back
	_, err = tx.Exec(c.ctx, `UPDATE tenant_lane_runtime SET debt_milli = 20000 WHERE tenant_id = $1 AND lane = $2`, c.list[0].ID, lane)
	c.must(err)
	published := make(chan error, 1)
	go func() {
		_, err := c.try(c.ctx, policy.SetScheduling("debt_total_units", "100"))
		published <- err
	}()
	c.blocked(t, 1)
	_, err = tx.Exec(c.ctx, `UPDATE tenant_lane_runtime SET debt_milli = 499000 WHERE tenant_id = $1 AND lane = $2`, c.list[0].ID, lane)
	c.must(err)
	c.must(tx.Commit(c.ctx))
	c.must(<-published)
	if got := limits(); got != "BEST_EFFORT/50000/100000 PAID_SHARED/50000/100000" {
		t.Errorf("after the publish: %s", got)
	}
	if n := c.number(t, `SELECT count(*) FROM tenant_lane_runtime WHERE lane IN ('PAID_SHARED', 'BEST_EFFORT') AND abs(debt_milli) <> 100000`); n != 0 {
		t.Errorf("%d debts are not cut to the new total", n)
	}
	head, err := c.policies.Head(c.ctx)
	c.must(err)
	doc := head.Document.Clone()
	doc.Scheduling.DebtTaskUnits = 20
	l, _ := doc.Lane("BEST_EFFORT")
	l.Strategy = policy.WRR
	_, err = c.publisher.Publish(c.ctx, policy.Publication{Base: head.Number, Document: doc, Reason: "test", Actor: ann})
	c.must(err)
	if got := limits(); got != "BEST_EFFORT/0/0 PAID_SHARED/20000/100000" {
		t.Errorf("a lane that charges alike: %s", got)
	}
	if n := c.number(t, `SELECT count(*) FROM tenant_lane_runtime WHERE lane = 'BEST_EFFORT' AND debt_milli <> 0`); n != 0 {
		t.Errorf("%d tenants owe where nobody can", n)
	}
	c.clean(t)
}

// A database of before knows what its policy says of debts, and that what has ended was charged by its estimate.
func TestAnUpgradeTakesLimitsFromThePolicyInForce(t *testing.T) {
	t.Parallel()
	c := newTown(t, 2)
	head, err := c.policies.Head(c.ctx)
	c.must(err)
	doc := head.Document.Clone()
	doc.Scheduling.DebtTaskUnits, doc.Scheduling.DebtTotalUnits = 7, 70
	l, _ := doc.Lane("BEST_EFFORT")
	l.Strategy = policy.WRR
	_, err = c.publisher.Publish(c.ctx, policy.Publication{Base: head.Number, Document: doc, Reason: "test", Actor: ann})
	c.must(err)
	const all = `SELECT string_agg(concat_ws('/', lane, task_milli, total_milli), ' ' ORDER BY lane) FROM lane_debt_limit`
	before := c.text(t, all)
	for _, version := range []int64{8, 9} {
		if _, at, err := facts.MigrateTo(c.ctx, c.url, version); err != nil || at != version {
			t.Fatalf("to version %d: at %d, %v", version, at, err)
		}
	}
	_, _, err = facts.Migrate(c.ctx, c.url)
	c.must(err)
	if after := c.text(t, all); after != before || !strings.Contains(after, "BEST_EFFORT/0/0") || !strings.Contains(after, "PAID_SHARED/7000/70000") {
		t.Errorf("limits %q, after the upgrade %q", before, after)
	}
	c.clean(t)
}
