package facts_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"fairlane/control"
	"fairlane/control/dispatch"
	"fairlane/control/provider"
	"fairlane/control/schedule"
	"fairlane/store/facts"
)

// claimed queues and claims n tasks of one unit; their attempts are CREATED.
func (w *world) claimed(t *testing.T, tenant, user uuid.UUID, n int) []dispatch.Ref {
	t.Helper()
	jobs := make([]job, n)
	for i := range jobs {
		jobs[i] = job{tenant: tenant, user: user}
	}
	return refs(t, w.claim(t, w.starts(t, w.queue(t, jobs...), "leaf", inGroups, control.AccountCommon)...))
}

func refs(t *testing.T, claimed []schedule.Claimed) []dispatch.Ref {
	t.Helper()
	out := make([]dispatch.Ref, len(claimed))
	for i, c := range claimed {
		if c.Refused != "" {
			t.Fatalf("%+v", c)
		}
		out[i] = dispatch.Ref{AttemptID: c.AttemptID, FencingToken: c.FencingToken}
	}
	return out
}

func (w *world) attemptIs(t *testing.T, ref dispatch.Ref, want control.AttemptState) {
	t.Helper()
	if got := w.text(t, `SELECT state FROM task_attempt WHERE attempt_id = $1`, ref.AttemptID); got != string(want) {
		t.Errorf("attempt %s, want %s", got, want)
	}
}

func TestI03_I04_BeginGivesAnAttemptToOneWorker(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	attempts := facts.NewAttempts(w.db)
	list := w.claimed(t, tenant, user, 20)
	var mu sync.Mutex
	begun := map[uuid.UUID]int{}
	var workers sync.WaitGroup
	for n := range 8 {
		workers.Go(func() {
			mine := append([]dispatch.Ref(nil), list...)
			for i := range mine { // every worker in another order, and everything twice
				j := (i*7 + n*3) % len(mine)
				mine[i], mine[j] = mine[j], mine[i]
			}
			got, err := attempts.Begin(w.ctx, append(mine, mine...), time.Minute)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for i, b := range got {
				if b.Order.AttemptID != append(mine, mine...)[i].AttemptID {
					t.Errorf("answer %d is about another attempt", i)
				}
				if b.Finding == dispatch.FoundBegun {
					begun[b.Order.AttemptID]++
				}
			}
		})
	}
	workers.Wait()
	for _, r := range list {
		if begun[r.AttemptID] != 1 {
			t.Errorf("attempt begun %d times", begun[r.AttemptID])
		}
		w.attemptIs(t, r, control.AttemptSubmitting)
	}
	w.clean(t)
}

func TestBeginSaysWhatItFinds(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	attempts := facts.NewAttempts(w.db)
	list := w.claimed(t, tenant, user, 4)
	w.exec(t, `UPDATE generation_task SET cancel_requested_at = now() WHERE current_attempt_id = $1`, list[1].AttemptID)
	w.exec(t, `UPDATE generation_task SET parameters = '{"prompt":"汉字"}', trace_context = 'tp' WHERE current_attempt_id = $1`, list[0].AttemptID)
	stale := list[2]
	stale.FencingToken--
	got, err := attempts.Begin(w.ctx, []dispatch.Ref{list[0], list[1], stale, {AttemptID: uuid.New(), FencingToken: 1}, list[2], list[0]}, time.Minute)
	w.must(err)
	want := []dispatch.Finding{dispatch.FoundBegun, dispatch.FoundCanceled, dispatch.FoundPast, dispatch.FoundMissing, dispatch.FoundBegun, dispatch.FoundPast}
	for i, f := range want {
		if got[i].Finding != f {
			t.Errorf("%d: %s, want %s", i, got[i].Finding, f)
		}
	}
	o := got[0].Order
	if o.Ref != list[0] || o.Provider != "prov" || o.Account != "acct" || o.Pool != "leaf" || o.Model != "m" || o.Lane != "PAID_SHARED" || o.Kind != control.KindVideo ||
		o.AttemptNo != 1 || o.Key == "" || len(o.CallbackToken) < 16 || string(o.Parameters) != `{"prompt": "汉字"}` || o.Trace != "tp" ||
		o.Expected != time.Minute || time.Until(o.Deadline) < time.Minute || o.TaskID == uuid.Nil {
		t.Errorf("%+v", o)
	}
	w.attemptIs(t, list[1], control.AttemptCreated)
	w.attemptIs(t, list[3], control.AttemptCreated)
}

func (w *world) begin(t *testing.T, list ...dispatch.Ref) {
	t.Helper()
	got, err := facts.NewAttempts(w.db).Begin(w.ctx, list, time.Minute)
	w.must(err)
	for _, b := range got {
		if b.Finding != dispatch.FoundBegun {
			t.Fatalf("%+v", b)
		}
	}
}

func TestMoveIsACompareAndSet(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	attempts := facts.NewAttempts(w.db)
	accepted := func(r dispatch.Ref, job string) dispatch.Move {
		return dispatch.Move{Ref: r, To: control.AttemptAccepted, JobID: job, Next: time.Minute, Lease: time.Hour, Raw: "raw"}
	}
	unknown := func(r dispatch.Ref) dispatch.Move {
		return dispatch.Move{Ref: r, To: control.AttemptUnknown, Class: provider.ClassTimeout, Next: time.Minute}
	}
	lost := func(r dispatch.Ref) dispatch.Move {
		return dispatch.Move{Ref: r, To: control.AttemptLost, Class: provider.ClassLost, Next: time.Minute}
	}
	stale := func(m dispatch.Move) dispatch.Move { m.FencingToken--; return m }
	for name, c := range map[string]struct {
		steps []func(r dispatch.Ref) dispatch.Move
		want  []bool
		state control.AttemptState
		task  control.TaskState
	}{
		"accepted": {[]func(dispatch.Ref) dispatch.Move{func(r dispatch.Ref) dispatch.Move { return accepted(r, "a") }}, []bool{true}, control.AttemptAccepted, control.TaskRunning},
		"accepted twice": {[]func(dispatch.Ref) dispatch.Move{func(r dispatch.Ref) dispatch.Move { return accepted(r, "b") }, func(r dispatch.Ref) dispatch.Move { return accepted(r, "c") }},
			[]bool{true, false}, control.AttemptAccepted, control.TaskRunning},
		"unknown":              {[]func(dispatch.Ref) dispatch.Move{unknown}, []bool{true}, control.AttemptUnknown, control.TaskSubmitUnknown},
		"unknown, then found":  {[]func(dispatch.Ref) dispatch.Move{unknown, func(r dispatch.Ref) dispatch.Move { return accepted(r, "d") }}, []bool{true, true}, control.AttemptAccepted, control.TaskRunning},
		"found, then unknown":  {[]func(dispatch.Ref) dispatch.Move{func(r dispatch.Ref) dispatch.Move { return accepted(r, "e") }, unknown}, []bool{true, false}, control.AttemptAccepted, control.TaskRunning},
		"lost":                 {[]func(dispatch.Ref) dispatch.Move{func(r dispatch.Ref) dispatch.Move { return accepted(r, "f") }, lost}, []bool{true, true}, control.AttemptLost, control.TaskRunning},
		"lost before accepted": {[]func(dispatch.Ref) dispatch.Move{lost}, []bool{false}, control.AttemptSubmitting, control.TaskDispatching},
		"stale fence": {[]func(dispatch.Ref) dispatch.Move{func(r dispatch.Ref) dispatch.Move { return stale(accepted(r, "g")) }, func(r dispatch.Ref) dispatch.Move { return stale(unknown(r)) }},
			[]bool{false, false}, control.AttemptSubmitting, control.TaskDispatching},
	} {
		t.Run(name, func(t *testing.T) {
			ref := w.claimed(t, tenant, user, 1)[0]
			w.begin(t, ref)
			task := uuid.MustParse(w.text(t, `SELECT task_id::text FROM task_attempt WHERE attempt_id = $1`, ref.AttemptID))
			version := w.number(t, `SELECT version FROM generation_task WHERE task_id = $1`, task)
			applied := int64(0)
			for i, step := range c.steps {
				got, err := attempts.Move(w.ctx, []dispatch.Move{step(ref)})
				w.must(err)
				if got[0] != c.want[i] {
					t.Errorf("step %d: %v", i, got[0])
				}
				if got[0] && step(ref).To != control.AttemptLost {
					applied++
				}
			}
			w.attemptIs(t, ref, c.state)
			if got := w.state(t, task); got != string(c.task) {
				t.Errorf("task %s, want %s", got, c.task)
			}
			if got := w.number(t, `SELECT version FROM generation_task WHERE task_id = $1`, task); got != version+applied {
				t.Errorf("version %d, want %d", got, version+applied)
			}
		})
	}
	w.clean(t)
}

// One batch may hold moves of every kind, more than one for an attempt, and both sides of a race.
func TestMovesOfABatch(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	attempts := facts.NewAttempts(w.db)
	list := w.claimed(t, tenant, user, 3)
	w.begin(t, list...)
	var done sync.WaitGroup
	for range 6 {
		done.Go(func() {
			if _, err := attempts.Move(w.ctx, []dispatch.Move{
				{Ref: list[2], To: control.AttemptUnknown}, {Ref: list[0], To: control.AttemptAccepted, JobID: "x"},
				{Ref: list[1], To: control.AttemptAccepted, JobID: "y"}, {Ref: list[1], To: control.AttemptLost}, {Ref: list[0], To: control.AttemptAccepted, JobID: "x"},
			}); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	w.attemptIs(t, list[0], control.AttemptAccepted)
	w.attemptIs(t, list[1], control.AttemptLost)
	w.attemptIs(t, list[2], control.AttemptUnknown)
	if n := w.number(t, `SELECT count(*) FROM task_event WHERE type IN ('AttemptAccepted', 'AttemptUnknown', 'AttemptLost')`); n != 4 {
		t.Errorf("%d events", n)
	}
	w.clean(t)

	// A job can be one attempt's only; the error is one about data.
	w.must(func() error {
		_, err := attempts.Move(w.ctx, []dispatch.Move{{Ref: list[2], To: control.AttemptAccepted, JobID: "x"}})
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "23505" {
			t.Errorf("%v", err)
		}
		return nil
	}())
	w.attemptIs(t, list[2], control.AttemptUnknown)
}

func TestNoteExtendsTheLease(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	attempts := facts.NewAttempts(w.db)
	list := w.claimed(t, tenant, user, 3)
	w.begin(t, list...)
	for i, r := range list {
		_, err := attempts.Move(w.ctx, []dispatch.Move{{Ref: r, To: control.AttemptAccepted, JobID: r.AttemptID.String(), Next: -time.Second, Lease: time.Minute}})
		w.must(err)
		w.exec(t, `UPDATE resource_reservation SET lease_until = now() + interval '1 second' WHERE attempt_id = $1`, list[i].AttemptID)
	}
	stale := list[2]
	stale.FencingToken--
	w.must(attempts.Note(w.ctx, []dispatch.Note{
		{Ref: list[0], Answered: true, Progress: 7, CancelSent: true, Next: time.Hour}, // beyond 1: kept at 1
		{Ref: list[1], Progress: math.NaN(), Next: time.Hour},
		{Ref: stale, Answered: true, Progress: 0.5, Next: time.Hour},
	}, 2*time.Hour))
	for i, want := range []struct {
		minutes  int64
		progress string
		cancel   bool
	}{{119, "1", true}, {-1, "none", false}, {-1, "none", false}} {
		if got := w.number(t, `SELECT extract(epoch FROM lease_until - now())::bigint / 60 FROM resource_reservation WHERE attempt_id = $1`, list[i].AttemptID); got < want.minutes || (want.minutes < 0 && got > 0) {
			t.Errorf("%d: lease of %d minutes", i, got)
		}
		if got := w.text(t, `SELECT coalesce(progress::text, 'none') FROM task_attempt WHERE attempt_id = $1`, list[i].AttemptID); got != want.progress {
			t.Errorf("%d: progress %s", i, got)
		}
		if got := w.number(t, `SELECT (cancel_sent_at IS NOT NULL)::int FROM task_attempt WHERE attempt_id = $1`, list[i].AttemptID); (got == 1) != want.cancel {
			t.Errorf("%d: cancel sent %d", i, got)
		}
	}
	w.clean(t)
}

func TestDueHandsAnAttemptToOne(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	attempts := facts.NewAttempts(w.db)
	list := w.claimed(t, tenant, user, 30)
	w.begin(t, list...)
	moves := make([]dispatch.Move, 0, len(list))
	for _, r := range list[:20] {
		moves = append(moves, dispatch.Move{Ref: r, To: control.AttemptAccepted, JobID: r.AttemptID.String(), Next: -time.Second})
	}
	_, err := attempts.Move(w.ctx, moves)
	w.must(err)
	var mu sync.Mutex
	seen := map[uuid.UUID]int{}
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for range 5 {
				got, err := attempts.Due(w.ctx, []string{"prov"}, 3, time.Hour)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, c := range got {
					seen[c.AttemptID]++
					if c.State != control.AttemptAccepted || c.Silent != 1 || c.JobID == "" || c.Now.Before(c.SubmitEnded) || c.P95 != 2*time.Minute {
						t.Errorf("%+v", c)
					}
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if len(seen) != 20 {
		t.Errorf("%d attempts came", len(seen))
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%v came %d times", id, n)
		}
	}
	task := uuid.MustParse(w.text(t, `SELECT task_id::text FROM task_attempt WHERE attempt_id = $1`, list[0].AttemptID))
	w.must(attempts.Hasten(w.ctx, []uuid.UUID{task, list[1].AttemptID, list[29].AttemptID, uuid.New()}))
	got, err := attempts.Due(w.ctx, []string{"prov"}, 10, time.Hour)
	w.must(err)
	if len(got) != 2 || got[0].Silent != 2 { // the last one is being submitted: nobody hastens that
		t.Errorf("hastened %+v", got)
	}
}

// A process that does not speak to a provider must not take its checks from one that does.
func TestDueLeavesOtherProvidersAlone(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	attempts := facts.NewAttempts(w.db)
	list := w.claimed(t, tenant, user, 2)
	w.begin(t, list...)
	w.exec(t, `UPDATE task_attempt SET next_check_at = clock_timestamp() - interval '1 second'`)
	_, err := attempts.Move(w.ctx, []dispatch.Move{{Ref: list[0], To: control.AttemptAccepted, JobID: "j", Next: -time.Second}})
	w.must(err)
	got, err := attempts.Due(w.ctx, []string{"another"}, 10, time.Minute)
	w.must(err)
	if len(got) != 1 || got[0].Ref != list[1] { // its worker is dead, which anyone may find
		t.Errorf("a stranger got %+v", got)
	}
	w.exec(t, `UPDATE task_attempt SET next_check_at = clock_timestamp() - interval '61 seconds' WHERE state = 'ACCEPTED'`)
	got, err = attempts.Due(w.ctx, nil, 10, time.Minute)
	w.must(err)
	if len(got) != 1 || got[0].Ref != list[0] {
		t.Errorf("nobody came, and a stranger got %+v", got)
	}
}

func TestTrap_D27_ReemitWritesOnceUntilItIsTaken(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	attempts, outbox := facts.NewAttempts(w.db), facts.NewOutbox(w.db)
	list := w.claimed(t, tenant, user, 5)
	w.exec(t, `DELETE FROM outbox_event`)
	w.begin(t, list[0])
	n, err := attempts.Reemit(w.ctx, time.Hour, 100)
	w.must(err)
	if n != 0 {
		t.Errorf("%d written though none is old", n)
	}
	for i, want := range []int{4, 0} {
		n, err := attempts.Reemit(w.ctx, 0, 100)
		w.must(err)
		if n != want {
			t.Errorf("run %d wrote %d, want %d", i, n, want)
		}
	}
	got, err := outbox.Take(w.ctx, control.TopicDispatch, []dispatch.Want{{Group: "PAID_SHARED", Max: 10}}, time.Minute)
	w.must(err)
	if len(got) != 4 {
		t.Fatalf("%d messages", len(got))
	}
	var m control.DispatchMessage
	w.must(json.Unmarshal(got[0].Payload, &m))
	if m.EventID != got[0].ID || m.EventType != control.EventDispatchRequest || m.FencingToken == 0 || m.AttemptID == uuid.Nil || m.TaskID != got[0].Aggregate ||
		m.Provider != "prov" || m.ProviderAccount != "acct" || m.ModelCode != "m" || m.QueueClass != "PAID_SHARED" || m.TenantID != tenant || m.CreatedAt.IsZero() || m.AggregateVersion == 0 {
		t.Errorf("%+v", m)
	}
}

func TestCallbacksAreKeptOnce(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	callbacks := facts.NewCallbacks(w.db)
	ref := w.claimed(t, tenant, user, 1)[0]
	token := w.text(t, `SELECT callback_token FROM task_attempt WHERE attempt_id = $1`, ref.AttemptID)
	keep := func(body string, change func(*dispatch.StoredCallback)) error {
		sum := sha256.Sum256([]byte(body))
		c := dispatch.StoredCallback{ID: uuid.Must(uuid.NewV7()), Provider: "prov", AttemptID: ref.AttemptID, Token: token, Signed: true,
			Event: provider.Status{State: provider.JobRunning, JobID: "j", Result: json.RawMessage("{\"a\":\"\\u0000\"}"), Message: "nul\x00"}, Body: body, Digest: sum[:]}
		if change != nil {
			change(&c)
		}
		return callbacks.Store(w.ctx, c)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := keep("one\x00", nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for name, change := range map[string]func(*dispatch.StoredCallback){
		"token":    func(c *dispatch.StoredCallback) { c.Token = token + "x" },
		"no token": func(c *dispatch.StoredCallback) { c.Token = "" },
		"attempt":  func(c *dispatch.StoredCallback) { c.AttemptID = uuid.New() },
		"provider": func(c *dispatch.StoredCallback) { c.Provider = "other" },
	} {
		if err := keep(name, change); control.CodeOf(err) != control.CodeNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	open, err := callbacks.Open(w.ctx, 10, time.Hour)
	w.must(err)
	if len(open) != 1 || !open[0].Signed || !open[0].Matched || open[0].Check.Ref != ref || open[0].Check.State != control.AttemptCreated || open[0].Event.JobID != "j" {
		t.Fatalf("%+v", open)
	}
	if again, err := callbacks.Open(w.ctx, 10, time.Hour); err != nil || len(again) != 0 {
		t.Errorf("handed out twice: %+v %v", again, err)
	}
	w.must(callbacks.Settle(w.ctx, []dispatch.CallbackOutcome{{ID: open[0].ID, Again: 0}}))
	if again, err := callbacks.Open(w.ctx, 10, time.Hour); err != nil || len(again) != 1 {
		t.Errorf("put off, and gone: %+v %v", again, err)
	}
	w.must(callbacks.Settle(w.ctx, []dispatch.CallbackOutcome{{ID: open[0].ID, Outcome: "LATE"}}))
	w.must(callbacks.Settle(w.ctx, []dispatch.CallbackOutcome{{ID: open[0].ID, Outcome: "OTHER"}, {ID: open[0].ID}}))
	if got := w.text(t, `SELECT outcome FROM provider_callback`); got != "LATE" {
		t.Errorf("outcome %q", got)
	}
	// One that names a job only waits until the job is known.
	w.must(keep("by job", func(c *dispatch.StoredCallback) { c.AttemptID = uuid.Nil }))
	open, err = callbacks.Open(w.ctx, 10, 0)
	w.must(err)
	if len(open) != 1 || open[0].Matched {
		t.Errorf("%+v", open)
	}
	w.begin(t, ref)
	_, err = facts.NewAttempts(w.db).Move(w.ctx, []dispatch.Move{{Ref: ref, To: control.AttemptAccepted, JobID: "j"}})
	w.must(err)
	open, err = callbacks.Open(w.ctx, 10, 0)
	w.must(err)
	if len(open) != 1 || !open[0].Matched || open[0].Check.Ref != ref {
		t.Errorf("%+v", open)
	}
}
