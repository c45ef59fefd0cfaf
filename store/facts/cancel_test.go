package facts_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/dispatch"
	"fairlane/control/schedule"
	"fairlane/store/facts"
)

func (w *world) cancel(t *testing.T, tenant, task uuid.UUID) (control.TaskState, bool) {
	t.Helper()
	state, requested, err := facts.NewCancels(w.db).Cancel(w.ctx, tenant, task, control.Actor{Name: "lin"})
	w.must(err)
	return state, requested
}

func TestCancelEndsWhatIsQueuedAndAsksForTheRest(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	queued := w.queue(t, job{tenant: tenant, user: user})[0]
	running := w.ran(t, tenant, user, 1)[0]
	for range 2 { // again changes nothing
		if state, requested := w.cancel(t, tenant, queued); state != control.TaskCanceled || requested {
			t.Errorf("queued: %s %v", state, requested)
		}
		if state, requested := w.cancel(t, tenant, running.TaskID); state != control.TaskRunning || !requested {
			t.Errorf("running: %s %v", state, requested)
		}
	}
	if n := w.number(t, `SELECT count(*) FROM task_event WHERE actor = 'lin'`); n != 2 {
		t.Errorf("%d events by the actor", n)
	}
	if n := w.number(t, `SELECT count(*) FROM outbox_event WHERE topic = 'queue' AND aggregate_id = $1 AND event_type = 'TaskCanceled'`, queued); n != 1 {
		t.Errorf("%d queue events", n)
	}
	var message control.DispatchMessage
	w.must(json.Unmarshal([]byte(w.text(t, `SELECT payload::text FROM outbox_event WHERE topic = 'dispatch' AND group_key = 'PAID_SHARED' AND event_type = $1`, control.EventCancelRequest)), &message))
	if message.AttemptID != running.AttemptID || message.FencingToken != running.FencingToken || message.TaskID != running.TaskID {
		t.Errorf("message: %+v", message)
	}
	if n := w.number(t, `SELECT sum(used_units) FROM resource_pool_shard WHERE resource_key = 'leaf'`); n != 1 {
		t.Errorf("%d units held: a cancel request frees nothing", n)
	}
	w.clean(t)
	w.end(t, ending(running, control.AttemptCanceled))
	if state, requested := w.cancel(t, tenant, running.TaskID); state != control.TaskCanceled || requested {
		t.Errorf("canceled: %s %v", state, requested)
	}
	w.free(t)
	w.clean(t)
}

func TestI13_CancelFindsOnlyTheTenantsOwnTasks(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	task := w.queue(t, job{tenant: tenant, user: user})[0]
	other := w.tenant(t, "PAID_SHARED", caps{})
	for _, c := range []struct{ tenant, task uuid.UUID }{{other, task}, {uuid.Nil, task}, {tenant, uuid.New()}} {
		if _, _, err := facts.NewCancels(w.db).Cancel(w.ctx, c.tenant, c.task, control.System); control.CodeOf(err) != control.CodeNotFound {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if s := w.state(t, task); s != "QUEUED" {
		t.Errorf("the task is %s", s)
	}
	w.clean(t)
}

// Claim and cancel of one task at the same instant: either it never starts, or the cancel is a request to
// the attempt that has started. It never reads CANCELED while an attempt holds units.
func TestTrap_D25_CancelRacesWithClaim(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	won := map[bool]int{}
	for range 30 {
		task := w.queue(t, job{tenant: tenant, user: user})
		req := schedule.Claim{PoolGroup: "g", Starts: w.starts(t, task, "leaf", inGroups, control.AccountCommon)}
		start, claimed := make(chan struct{}), make(chan schedule.Claimed, 1)
		go func() {
			<-start
			out, err := facts.NewClaims(w.db).Claim(w.ctx, req)
			if err != nil || len(out) != 1 {
				t.Error(out, err)
				out = make([]schedule.Claimed, 1)
			}
			claimed <- out[0]
		}()
		close(start)
		state, requested := w.cancel(t, tenant, task[0])
		got := <-claimed
		started := got.Refused == ""
		won[started]++
		want := control.TaskCanceled
		if started {
			want = control.TaskDispatching
		}
		if state != want || requested != started {
			t.Errorf("claimed %v, and the cancel says %s, requested %v", started, state, requested)
		}
		if s := w.state(t, task[0]); s != string(want) {
			t.Errorf("claimed %v, and the row says %s", started, s)
		}
		if started {
			w.end(t, ending(got, control.AttemptCanceled))
		}
	}
	w.free(t)
	w.clean(t)
	t.Logf("claimed first %d times, canceled first %d times", won[true], won[false])
}

// A result that is there before the provider heard of the cancel wins; the slot is freed once.
func TestTrap_D25_CancelRacesWithCompletion(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	for range 20 {
		got := w.ran(t, tenant, user, 1)[0]
		done := make(chan []dispatch.Ended, 1)
		go func() {
			out, err := facts.NewEndings(w.db).End(w.ctx, []dispatch.Ending{ending(got, control.AttemptSucceeded)})
			if err != nil {
				t.Error(err)
			}
			done <- out
		}()
		state, requested := w.cancel(t, tenant, got.TaskID)
		if state == control.TaskCanceled || requested != (state == control.TaskRunning) {
			t.Errorf("the cancel says %s, requested %v", state, requested)
		}
		if out := <-done; len(out) != 1 || out[0].TaskState != control.TaskSucceeded {
			t.Errorf("%+v", out)
		}
	}
	w.free(t)
	w.clean(t)
}

func TestExpireDeadlinesFailsWhatWaitedTooLong(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	late := job{tenant: tenant, user: user, slots: 2, deadline: -time.Second}
	w.queue(t, late, late, late, job{tenant: tenant, user: user, deadline: time.Hour}, job{tenant: tenant, user: user})
	running := w.ran(t, tenant, user, 1)[0].TaskID
	w.exec(t, `UPDATE generation_task SET deadline_at = now() - interval '1 hour' WHERE task_id = $1`, running)
	expire := facts.NewCancels(w.db).ExpireDeadlines
	for i, want := range []int{2, 1, 0} {
		if n, err := expire(w.ctx, 2); n != want || err != nil {
			t.Errorf("round %d: %d, %v", i, n, err)
		}
		w.clean(t)
	}
	if s := w.text(t, `SELECT string_agg(DISTINCT concat_ws(' ', state, error_code, finished_at IS NOT NULL), ', ') FROM generation_task WHERE error_code <> ''`); s != "FAILED DEADLINE t" {
		t.Errorf("the expired: %s", s)
	}
	if s := w.text(t, `SELECT string_agg(state, ' ' ORDER BY state) FROM generation_task`); s != "FAILED FAILED FAILED QUEUED QUEUED RUNNING" {
		t.Errorf("all: %s", s)
	}
	if n := w.number(t, `SELECT count(*) FROM outbox_event WHERE topic = 'queue' AND event_type = $1`, control.EventTaskExpired); n != 3 {
		t.Errorf("%d queue events", n)
	}
	if _, err := expire(w.ctx, 0); control.CodeOf(err) != control.CodeInvalid {
		t.Errorf("limit 0: %v", err)
	}
}
