package facts_test

import (
	"encoding/json"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/dispatch"
	"fairlane/control/estimate"
	"fairlane/control/schedule"
	"fairlane/store/facts"
)

// ran queues and claims n tasks of one unit and lets the provider accept them.
func (w *world) ran(t *testing.T, tenant, user uuid.UUID, n int) []schedule.Claimed {
	t.Helper()
	jobs := make([]job, n)
	for i := range jobs {
		jobs[i] = job{tenant: tenant, user: user}
	}
	got := w.claim(t, w.starts(t, w.queue(t, jobs...), "leaf", inGroups, control.AccountCommon)...)
	for _, c := range got {
		if c.Refused != "" {
			t.Fatalf("%+v", c)
		}
	}
	w.accept(t, got...)
	return got
}

// free fails when anything is still held.
func (w *world) free(t *testing.T) {
	t.Helper()
	for what, sql := range map[string]string{
		"units":        `SELECT sum(used_units) FROM resource_pool_shard`,
		"reservations": `SELECT count(*) FROM resource_reservation WHERE state = 'ACTIVE'`,
		"accounts":     `SELECT sum(own_used + a.common_used + g.common_used) FROM lane_account a JOIN pool_group_account g USING (pool_group)`,
		"tenants":      `SELECT sum(running_tasks + running_units) FROM tenant_runtime`,
		"users":        `SELECT sum(running_tasks + running_image + running_video) FROM user_runtime`,
	} {
		if n := w.number(t, sql); n != 0 {
			t.Errorf("%s still held: %d", what, n)
		}
	}
}

func TestEndMovesTheTask(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	for name, c := range map[string]struct {
		from   string // attempt state beforehand
		task   string
		ending dispatch.Ending
		setup  string // on the task
		want   control.TaskState
		code   string
	}{
		"success":               {"ACCEPTED", "RUNNING", dispatch.Ending{State: control.AttemptSucceeded}, "", control.TaskSucceeded, ""},
		"found again":           {"LOST", "RUNNING", dispatch.Ending{State: control.AttemptSucceeded}, "", control.TaskSucceeded, ""},
		"success beats cancel":  {"ACCEPTED", "RUNNING", dispatch.Ending{State: control.AttemptSucceeded}, "cancel_requested_at = now()", control.TaskSucceeded, ""},
		"failure with retry":    {"ACCEPTED", "RUNNING", dispatch.Ending{State: control.AttemptFailed, Retry: true}, "", control.TaskQueued, ""},
		"failure for good":      {"ACCEPTED", "RUNNING", dispatch.Ending{State: control.AttemptFailed, ErrorClass: "REFUSED", ErrorCode: "NSFW"}, "", control.TaskFailed, "NSFW"},
		"class without code":    {"ACCEPTED", "RUNNING", dispatch.Ending{State: control.AttemptFailed, ErrorClass: "REFUSED"}, "", control.TaskFailed, "REFUSED"},
		"no tries left":         {"ACCEPTED", "RUNNING", dispatch.Ending{State: control.AttemptFailed, Retry: true}, "max_attempts = 1", control.TaskFailed, "FAILED"},
		"deadline passed":       {"ACCEPTED", "RUNNING", dispatch.Ending{State: control.AttemptFailed, Retry: true}, "deadline_at = now() - interval '1 s'", control.TaskFailed, "FAILED"},
		"retry after cancel":    {"SUBMITTING", "DISPATCHING", dispatch.Ending{State: control.AttemptRejected, Retry: true}, "cancel_requested_at = now()", control.TaskCanceled, ""},
		"canceled":              {"ACCEPTED", "RUNNING", dispatch.Ending{State: control.AttemptCanceled}, "cancel_requested_at = now()", control.TaskCanceled, ""},
		"canceled before":       {"CREATED", "DISPATCHING", dispatch.Ending{State: control.AttemptCanceled}, "", control.TaskCanceled, ""},
		"rejected with retry":   {"SUBMITTING", "DISPATCHING", dispatch.Ending{State: control.AttemptRejected, Retry: true}, "", control.TaskQueued, ""},
		"uncounted":             {"SUBMITTING", "DISPATCHING", dispatch.Ending{State: control.AttemptRejected, Retry: true, Uncounted: true}, "max_attempts = 1", control.TaskQueued, ""},
		"uncounted too often":   {"SUBMITTING", "DISPATCHING", dispatch.Ending{State: control.AttemptRejected, Retry: true, Uncounted: true}, "max_attempts = 20, attempts_made = 20", control.TaskFailed, "REJECTED"},
		"uncounted, overdue":    {"SUBMITTING", "DISPATCHING", dispatch.Ending{State: control.AttemptRejected, Retry: true, Uncounted: true}, "max_attempts = 1, deadline_at = now() - interval '1 s'", control.TaskFailed, "REJECTED"},
		"uncounted for good":    {"SUBMITTING", "DISPATCHING", dispatch.Ending{State: control.AttemptRejected, Uncounted: true}, "", control.TaskFailed, "REJECTED"},
		"unknown, not there":    {"UNKNOWN", "SUBMIT_UNKNOWN", dispatch.Ending{State: control.AttemptRejected, Retry: true}, "", control.TaskQueued, ""},
		"unknown, given up":     {"UNKNOWN", "SUBMIT_UNKNOWN", dispatch.Ending{State: control.AttemptAbandoned}, "", control.TaskFailed, "ABANDONED"},
		"lost, given up, retry": {"LOST", "RUNNING", dispatch.Ending{State: control.AttemptAbandoned, Retry: true}, "", control.TaskQueued, ""},
	} {
		got := w.ran(t, tenant, user, 1)[0]
		w.exec(t, `UPDATE task_attempt SET state = $2 WHERE attempt_id = $1`, got.AttemptID, c.from)
		w.exec(t, `UPDATE generation_task SET state = $2 WHERE task_id = $1`, got.TaskID, c.task)
		if c.setup != "" {
			w.exec(t, `UPDATE generation_task SET `+c.setup+` WHERE task_id = $1`, got.TaskID)
		}
		since := w.text(t, `SELECT queued_since::text FROM generation_task WHERE task_id = $1`, got.TaskID)
		c.ending.Ref, c.ending.ActualCost = dispatch.Ref{AttemptID: got.AttemptID, FencingToken: got.FencingToken}, -1
		done := w.end(t, c.ending)[0]
		done.Settled = estimate.Settlement{} // TestSettle… look at it
		want := dispatch.Ended{AttemptID: got.AttemptID, TaskID: got.TaskID, PoolGroup: "g", TaskState: c.want, Applied: true}
		if done != want {
			t.Errorf("%s: %+v, want %+v", name, done, want)
		}
		if s := w.text(t, `SELECT concat(state, ' ', error_code, CASE WHEN queued_since::text = $2 THEN '' ELSE 'moved' END) FROM generation_task WHERE task_id = $1`, got.TaskID, since); s != string(c.want)+" "+c.code {
			t.Errorf("%s: the row says %q", name, s)
		}
		events := w.number(t, `SELECT count(*) FROM outbox_event WHERE aggregate_id = $1 AND topic = 'queue' AND group_key = 'g' AND event_type = 'TaskRequeued'`, got.TaskID)
		if (events == 1) != (c.want == control.TaskQueued) {
			t.Errorf("%s: %d requeue events", name, events)
		}
		if again := w.end(t, c.ending)[0]; again.Applied || again.Why != control.CodeConflict || again.TaskState != c.want {
			t.Errorf("%s again: %+v", name, again)
		}
		w.free(t)
		w.clean(t)
	}
	if n := w.number(t, `SELECT count(*) FROM task_event WHERE from_state = 'RUNNING' AND to_state = 'PROVIDER_SUCCEEDED'`); n != 3 {
		t.Errorf("%d of 3 successes have their first event", n)
	}
	if n := w.number(t, `SELECT count(*) FROM task_event WHERE from_state = 'PROVIDER_SUCCEEDED' AND to_state = 'SUCCEEDED'`); n != 3 {
		t.Errorf("%d of 3 successes have their second event", n)
	}
}

func TestEndKeepsWhatTheProviderSaid(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	got := w.ran(t, tenant, user, 5)
	endings := make([]dispatch.Ending, len(got))
	for i := range got {
		endings[i] = ending(got[i], control.AttemptSucceeded)
		endings[i].RawAnswer = strings.Repeat("é", 4000) + "\x00\xff"
		endings[i].ActualSeconds, endings[i].ActualCost = 61.5, 700_000
	}
	endings[0].Result = json.RawMessage(`{"url":"https://x/1.mp4","n":1.50}`)
	endings[1].Result = json.RawMessage(`{"a":"nul\u0000 \ud800","n":1e400}`)
	endings[2].Result = json.RawMessage(`{"broken`)
	endings[2].ActualSeconds, endings[2].ActualCost = math.NaN(), -7
	endings[3].Result = json.RawMessage(`"` + strings.Repeat("x", 70_000) + `"`)
	endings[3].ActualSeconds, endings[3].ActualCost = math.Inf(1), 0
	endings[4].Result = json.RawMessage(`{"k\u0000":"nul\u0000 \ud800"}`)
	endings[4].ActualSeconds = -1
	for i, e := range w.end(t, endings...) {
		if !e.Applied {
			t.Errorf("ending %d: %+v", i, e)
		}
	}
	for i, want := range []string{
		`{"n": 1.50, "url": "https://x/1.mp4"} 700000 61.5`,
		`{"unreadable_bytes": 34} 700000 61.5`,
		`{"unreadable_bytes": 8}  `,
		`{"unreadable_bytes": 70002} 0 `,
		"{\"k\": \"nul \uFFFD\"} 700000 ",
	} {
		if s := w.text(t, `SELECT concat(t.result::text, ' ', t.actual_cost_units, ' ', a.actual_seconds) FROM generation_task t
			JOIN task_attempt a USING (task_id) WHERE a.attempt_id = $1 AND a.actual_cost_units IS NOT DISTINCT FROM t.actual_cost_units`, got[i].AttemptID); s != want {
			t.Errorf("task %d: %q, want %q", i, s, want)
		}
	}
	if n := w.number(t, `SELECT max(length(raw_answer)) FROM task_attempt`); n != 2048 {
		t.Errorf("raw answers of %d characters", n)
	}
	w.clean(t)
}

func TestEndRefusesOnlyWhomItConcerns(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	got := w.ran(t, tenant, user, 5)
	w.exec(t, `UPDATE task_attempt SET state = 'UNKNOWN' WHERE attempt_id = $1`, got[2].AttemptID)
	w.exec(t, `UPDATE generation_task SET state = 'SUBMIT_UNKNOWN' WHERE task_id = $1`, got[2].TaskID)
	stale := ending(got[1], control.AttemptSucceeded)
	stale.FencingToken--
	nobody := ending(schedule.Claimed{AttemptID: uuid.New(), FencingToken: 1}, control.AttemptFailed)
	out := w.end(t,
		ending(got[0], control.AttemptSucceeded),
		stale,
		ending(got[2], control.AttemptSucceeded), // unknown is neither success nor failure
		nobody,
		ending(got[3], control.AttemptFailed),
		ending(got[3], control.AttemptSucceeded), // the same attempt twice in a batch: the first counts
		ending(got[1], control.AttemptFailed),    // the current fence, after the stale one
	)
	for i, want := range []control.Code{"", control.CodeFenced, control.CodeIllegalMove, control.CodeNotFound, "", control.CodeConflict, ""} {
		if out[i].Why != want || out[i].Applied != (want == "") {
			t.Errorf("ending %d: %+v, want %q", i, out[i], want)
		}
	}
	if s := w.state(t, got[2].TaskID); s != "SUBMIT_UNKNOWN" {
		t.Errorf("I09: the unknown one is %s", s)
	}
	if n := w.number(t, `SELECT count(*) FROM resource_reservation WHERE state = 'ACTIVE'`); n != 2 {
		t.Errorf("%d attempts hold units, want the unknown and the untouched", n)
	}
	w.clean(t)
	for _, s := range []control.AttemptState{"", control.AttemptAccepted, control.AttemptLost} {
		if _, err := facts.NewEndings(w.db).End(w.ctx, []dispatch.Ending{ending(got[4], s)}); control.CodeOf(err) != control.CodeInvalid {
			t.Errorf("ending as %q: %v", s, err)
		}
	}
}

func TestEndDelaysARetry(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	for wait, want := range map[time.Duration]float64{-time.Hour: 0, 0: 0, 90 * time.Second: 90, 100 * 24 * time.Hour: 86400} {
		e := ending(w.ran(t, tenant, user, 1)[0], control.AttemptFailed)
		e.Retry, e.RetryAfter = true, wait
		done := w.end(t, e)[0]
		var seconds float64
		w.must(w.sql.QueryRow(w.ctx, `SELECT extract(epoch FROM next_eligible_at - updated_at)::float8 FROM generation_task WHERE task_id = $1`, done.TaskID).Scan(&seconds))
		if math.Abs(seconds-want) > 1 {
			t.Errorf("after %v: eligible %g s later, want %g", wait, seconds, want)
		}
	}
}

func TestI05_TwentyEndingsOfOneAttemptReleaseItOnce(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	got := w.ran(t, tenant, user, 3)
	var wg sync.WaitGroup
	applied := make([]int, len(got))
	var mu sync.Mutex
	for g := range 20 {
		wg.Go(func() {
			endings := make([]dispatch.Ending, len(got))
			for i := range got {
				state := control.AttemptSucceeded
				if (g+i)%2 == 0 {
					state = control.AttemptFailed
				}
				endings[(i+g)%len(got)] = ending(got[i], state)
			}
			out, err := facts.NewEndings(w.db).End(w.ctx, endings)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for i := range got {
				if out[(i+g)%len(got)].Applied {
					applied[i]++
				}
			}
		})
	}
	wg.Wait()
	for i, n := range applied {
		if n != 1 {
			t.Errorf("attempt %d was ended %d times", i, n)
		}
	}
	w.free(t)
	w.clean(t)
	if n := w.number(t, `SELECT count(*) FROM task_event WHERE to_state IN ('SUCCEEDED', 'FAILED')`); n != 3 {
		t.Errorf("%d ends in the history of 3 tasks", n)
	}
}

// The reaper has chosen an attempt as overdue; before it acts, the callback ends it.
func TestTrap_D14_AReaperDoesNotOverwriteAFinishedAttempt(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	got := w.ran(t, tenant, user, 1)[0]
	tx, err := w.sql.Begin(w.ctx)
	w.must(err)
	defer tx.Rollback(w.ctx) //nolint:errcheck // after the commit there is nothing to roll back
	// The callback's transaction holds the first row of the lock order when the reaper comes.
	_, err = tx.Exec(w.ctx, `SELECT 1 FROM tenant_runtime WHERE tenant_id = $1 FOR UPDATE`, tenant)
	w.must(err)
	done := make(chan []dispatch.Ended, 1)
	go func() {
		e := ending(got, control.AttemptFailed)
		e.Retry, e.ErrorClass = true, "TIMEOUT"
		out, err := facts.NewEndings(w.db).End(w.ctx, []dispatch.Ending{e})
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	w.blocked(t, 1)
	callback, err := facts.EndIn(w.ctx, tx, []dispatch.Ending{ending(got, control.AttemptSucceeded)})
	w.must(err)
	w.must(tx.Commit(w.ctx))
	reaper := <-done
	if !callback[0].Applied || len(reaper) != 1 || reaper[0].Applied || reaper[0].TaskState != control.TaskSucceeded {
		t.Errorf("callback %+v, reaper %+v", callback, reaper)
	}
	if s := w.text(t, `SELECT concat_ws(' ', t.state, a.state, a.error_class) FROM generation_task t JOIN task_attempt a USING (task_id)`); s != "SUCCEEDED SUCCEEDED" {
		t.Errorf("rows: %s", s)
	}
	w.free(t)
	w.clean(t)
}

// A counter that has drifted below the truth must not hold up the release of what it counts.
func TestTrap_D11_ADriftedCounterDoesNotBlockARelease(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	got := w.ran(t, tenant, user, 2)
	w.exec(t, `UPDATE resource_pool_shard SET used_units = 0`)
	w.exec(t, `UPDATE tenant_runtime SET running_tasks = 0, running_units = 1`)
	w.exec(t, `UPDATE lane_account SET common_used = 1`)
	for _, e := range w.end(t, ending(got[0], control.AttemptSucceeded), ending(got[1], control.AttemptFailed)) {
		if !e.Applied {
			t.Errorf("%+v", e)
		}
	}
	w.free(t)
	w.clean(t)
}
