package dispatch_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/dispatch"
	"fairlane/control/provider"
	"fairlane/control/provider/simulated"
	"fairlane/store/facts"
	"fairlane/store/storetest"
)

func TestATaskRunsFromClaimToEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, usual())
	task, ref := w.one()
	w.becomes(task, control.TaskSucceeded)
	if w.attemptState(ref) != control.AttemptSucceeded || w.held() != 0 {
		t.Errorf("attempt %s, %d units held", w.attemptState(ref), w.held())
	}
	if got := w.text(`SELECT result->>'model' FROM generation_task WHERE task_id = $1`, task); got != "m" {
		t.Errorf("result %q", got)
	}
	if cost := w.number(`SELECT actual_cost_units FROM generation_task WHERE task_id = $1`, task); cost != 420_000 {
		t.Errorf("cost %d", cost)
	}
	if w.number(`SELECT count(*) FROM outbox_event WHERE topic = 'dispatch'`) != 0 {
		t.Error("the message is still there")
	}
	moves := w.text(`SELECT string_agg(to_state, ' ' ORDER BY event_id) FROM task_event WHERE task_id = $1 AND to_state <> coalesce(from_state, '')`, task)
	if moves != "DISPATCHING RUNNING PROVIDER_SUCCEEDED SUCCEEDED" {
		t.Errorf("history %q", moves)
	}
	w.once()
	w.clean()
}

// Everything that can go wrong at once, many times over: every task ends, every attempt was submitted
// at most once, nothing stays held.
func TestI04_I05_ManyTasksThroughABadProvider(t *testing.T) {
	t.Parallel()
	s := usual()
	s.provider.Rates = simulated.Rates{Refused: 0.05, Failed: 0.1, Unknown: 0.1, Vanished: 0.05, CallbackLost: 0.1, CallbackLate: 0.1, CallbackEarly: 0.2, CallbackTwice: 0.2}
	s.provider.Models[0].P95 = 20
	s.provider.Profiles[0].Pools[0].Concurrency = 25
	s.settings.SubmitTimeout = 400 * time.Millisecond
	s.settings.PoolSubmits = 32
	w := newWorld(t, s)
	const tasks = 300
	w.queue(tasks, 20)
	w.eventually("all end", func() bool {
		w.claim(time.Hour)
		return w.number(`SELECT count(*) FROM generation_task WHERE state IN ('SUCCEEDED', 'FAILED')`) == tasks
	})
	if n := w.number(`SELECT count(*) FROM generation_task WHERE state = 'SUCCEEDED'`); n < tasks*8/10 {
		t.Errorf("only %d of %d succeeded", n, tasks)
	}
	if w.held() != 0 || w.number(`SELECT count(*) FROM resource_reservation WHERE state = 'ACTIVE'`) != 0 {
		t.Errorf("%d units held", w.held())
	}
	c := w.service.Counts()
	if c.Unknown == 0 || c.Rejected == 0 || c.Failed == 0 || c.Callbacks == 0 {
		t.Errorf("nothing went wrong: %+v", c)
	}
	w.eventually("callbacks settled", func() bool {
		return w.number(`SELECT count(*) FROM provider_callback WHERE handled_at IS NULL`) == 0
	})
	w.once()
	w.clean()
	figure(t, map[string]any{"name": "dispatch_bad_provider", "tasks": tasks, "attempts": w.number(`SELECT count(*) FROM task_attempt`),
		"unknown": c.Unknown, "rejected": c.Rejected, "extra_submits": extra(w.submits()), "leaked_units": w.held()})
}

func extra(submits map[string]int) int {
	n := 0
	for _, times := range submits {
		n += times - 1
	}
	return n
}

// figure shows measured figures as one line of JSON.
func figure(t *testing.T, values map[string]any) {
	t.Helper()
	line, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Figure(t, "%s", line)
}

// The broker hands the message out again while the job runs, and after it, in several processes: no
// second submit.
func TestTrap_D15_D28_RedeliveryChangesNothing(t *testing.T) {
	t.Parallel()
	s := usual()
	s.provider.Models[0].P50, s.provider.Models[0].P95 = 5000, 5000
	w := newWorld(t, s)
	other := w.newService(s)
	running(t, other.Run)
	task, ref := w.one()
	w.becomes(task, control.TaskRunning)
	version := w.number(`SELECT version FROM generation_task WHERE task_id = $1`, task)
	payload := message(ref, task)
	const again = 40
	w.exec(`INSERT INTO outbox_event (event_id, topic, group_key, event_type, aggregate_id, payload)
		SELECT gen_random_uuid(), 'dispatch', $1, 'TaskDispatchRequested', $2, $3 FROM generate_series(1, $4)`, lane, task, payload, again)
	w.eventually("all taken", func() bool { return w.number(`SELECT count(*) FROM outbox_event WHERE topic = 'dispatch'`) == 0 })
	if past := w.service.Counts().Past + other.Counts().Past; past != again {
		t.Errorf("%d of %d found their attempt under way", past, again)
	}
	if w.attemptState(ref) != control.AttemptAccepted || w.number(`SELECT version FROM generation_task WHERE task_id = $1`, task) != version {
		t.Error("a redelivery changed something")
	}
	if n := w.submits()[ref.AttemptID.String()]; n != 1 {
		t.Errorf("%d submits", n)
	}
	// A stale fence is refused like a past one.
	w.exec(`INSERT INTO outbox_event (event_id, topic, group_key, event_type, aggregate_id, payload) VALUES (gen_random_uuid(), 'dispatch', $1, 'TaskDispatchRequested', $2, $3)`,
		lane, task, message(dispatch.Ref{AttemptID: ref.AttemptID, FencingToken: ref.FencingToken - 1}, task))
	w.eventually("taken", func() bool { return w.number(`SELECT count(*) FROM outbox_event WHERE topic = 'dispatch'`) == 0 })
	w.once()
	w.clean()
}

func message(ref dispatch.Ref, task uuid.UUID) []byte {
	raw, err := json.Marshal(control.DispatchMessage{
		EventID: uuid.New(), EventType: control.EventDispatchRequest, TaskID: task, AttemptID: ref.AttemptID, FencingToken: ref.FencingToken,
		Provider: "p", ProviderAccount: "a", ModelCode: "m", QueueClass: lane,
	})
	if err != nil {
		panic(err)
	}
	return raw
}

// The provider takes the job and drops the connection, or answers too late: one job, which is found.
func TestTrap_D20_LostAnswerIsNoSecondGeneration(t *testing.T) {
	t.Parallel()
	s := usual()
	s.provider.Rates.Unknown = 1
	s.provider.Rates.CallbackLost = 1 // nothing but the look-up tells
	s.settings.SubmitTimeout = 300 * time.Millisecond
	w := newWorld(t, s)
	const tasks = 20
	w.queue(tasks, 3)
	w.claim(time.Hour)
	w.eventually("all succeed", func() bool {
		return w.number(`SELECT count(*) FROM generation_task WHERE state = 'SUCCEEDED'`) == tasks
	})
	if c := w.service.Counts(); c.Unknown != tasks || c.Submits != tasks || c.Rejected != 0 {
		t.Errorf("%+v", c)
	}
	if n := w.number(`SELECT count(*) FROM task_attempt`); n != tasks {
		t.Errorf("%d attempts for %d tasks", n, tasks)
	}
	if len(w.submits()) != tasks {
		t.Errorf("%d attempts in the journal", len(w.submits()))
	}
	w.once()
	w.clean()
}

// I09, the sibling without a look-up: the attempt stays unknown and keeps its slot; only a callback,
// whose address nobody else knows, can tell.
func TestTrap_D21_I09_UnknownKeepsItsSlot(t *testing.T) {
	t.Parallel()
	for name, signed := range map[string]bool{"signed": true, "unsigned": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := usual()
			s.provider.Profiles[0].Lookup, s.provider.Profiles[0].Signed = false, signed
			s.provider.Rates.Unknown = 1
			s.provider.Models[0].P50, s.provider.Models[0].P95 = 100, 100 // 2 s
			s.settings.SubmitTimeout = 300 * time.Millisecond
			w := newWorld(t, s)
			task, ref := w.one()
			w.becomes(task, control.TaskSubmitUnknown)
			checks := w.service.Counts().Checks
			w.eventually("looked at again and again", func() bool { return w.service.Counts().Checks >= checks+3 })
			if w.attemptState(ref) != control.AttemptUnknown || w.held() != 1 {
				t.Errorf("attempt %s, %d units held", w.attemptState(ref), w.held())
			}
			w.clean()
			w.becomes(task, control.TaskSucceeded)
			w.once()
			w.clean()
		})
	}
}

// A submit that never arrived is tried again, by another attempt, only once its absence is certain.
func TestTrap_D21_SurelyAbsentIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := usual()
	made := script(&s)
	made.submit = func(_ context.Context, sub provider.Submission) (provider.Answer, bool) {
		made.mu.Lock()
		first := made.submits == 1
		made.mu.Unlock()
		return provider.Answer{Outcome: provider.Unknown, Class: provider.ClassConnection}, first
	}
	w := newWorld(t, s)
	began := time.Now()
	task, ref := w.one()
	w.eventually("released", func() bool { return w.attemptState(ref) == control.AttemptRejected })
	if waited := time.Since(began); waited < w.providers[0].Capabilities.SafetyWindow {
		t.Errorf("given up after %v, within the window of %v", waited, w.providers[0].Capabilities.SafetyWindow)
	}
	w.eventually("tried again", func() bool { w.claim(time.Hour); return w.taskState(task) == control.TaskSucceeded })
	if n := w.number(`SELECT count(*) FROM task_attempt WHERE task_id = $1`, task); n != 2 {
		t.Errorf("%d attempts", n)
	}
	w.once()
	w.clean()
}

// A worker that died while submitting is unknown, not tried again.
func TestTrap_D20_WorkerDiedWhileSubmitting(t *testing.T) {
	t.Parallel()
	s := usual()
	s.idle = true
	w := newWorld(t, s)
	sentTask, sent := w.one()
	begun, err := facts.NewAttempts(w.db).Begin(t.Context(), []dispatch.Ref{sent}, 50*time.Millisecond)
	if err != nil || begun[0].Finding != dispatch.FoundBegun {
		t.Fatalf("%+v %v", begun, err)
	}
	o := begun[0].Order
	got := w.providers[0].Adapter.Submit(t.Context(), provider.Submission{AttemptID: o.AttemptID, Key: o.Key, Account: o.Account, Model: o.Model})
	if got.Outcome != provider.Accepted { // and here the worker dies
		t.Fatalf("%+v", got)
	}
	unsentTask, unsent := w.one()
	if begun, err := facts.NewAttempts(w.db).Begin(t.Context(), []dispatch.Ref{unsent}, 50*time.Millisecond); err != nil || begun[0].Finding != dispatch.FoundBegun {
		t.Fatalf("%+v %v", begun, err)
	}
	w.start()
	w.becomes(sentTask, control.TaskSucceeded)
	w.eventually("tried again", func() bool { w.claim(time.Hour); return w.taskState(unsentTask) == control.TaskSucceeded })
	if w.attemptState(sent) != control.AttemptSucceeded || w.attemptState(unsent) != control.AttemptRejected {
		t.Errorf("sent %s, unsent %s", w.attemptState(sent), w.attemptState(unsent))
	}
	w.once()
	w.clean()
}

// The provider says "in progress" for ever, or gives empty answers: lost at the deadline, with its
// slot; failed and free when its longest run has passed.
func TestTrap_D22_DeadlineWhilePolling(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func() (provider.Status, error, bool){
		"in progress for ever": func() (provider.Status, error, bool) {
			return provider.Status{State: provider.JobRunning, Progress: 0.5}, nil, true
		},
		"empty answers": func() (provider.Status, error, bool) { return provider.Status{}, errSilent, true },
		"not known any more": func() (provider.Status, error, bool) {
			return provider.Status{State: provider.JobAbsent}, nil, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := usual()
			made := script(&s)
			made.status = func(context.Context, provider.Job) (provider.Status, error, bool) { return answer() }
			s.change = func(c *provider.Capabilities) { c.LongestRun = 4 * time.Second }
			s.provider.Rates.CallbackLost = 1
			w := newWorld(t, s)
			w.queue(1, 3)
			c := w.claim(time.Second)[0]
			ref := dispatch.Ref{AttemptID: c.AttemptID, FencingToken: c.FencingToken}
			w.eventually("lost", func() bool { return w.attemptState(ref) == control.AttemptLost })
			if w.held() != 1 || w.taskState(c.TaskID) != control.TaskRunning {
				t.Errorf("%d units held, task %s", w.held(), w.taskState(c.TaskID))
			}
			w.clean()
			w.becomes(c.TaskID, control.TaskFailed)
			if code := w.text(`SELECT error_code FROM generation_task WHERE task_id = $1`, c.TaskID); code != "LOST" {
				t.Errorf("code %q", code)
			}
			if _, polls, _ := made.seen(); w.held() != 0 || polls > 40 {
				t.Errorf("%d units held after %d polls", w.held(), polls)
			}
			w.once()
			w.clean()
		})
	}
}

// A lost attempt whose provider speaks again is ended by what it says.
func TestTrap_D22_LostSpeaksAgain(t *testing.T) {
	t.Parallel()
	s := usual()
	made := script(&s)
	made.status = func(context.Context, provider.Job) (provider.Status, error, bool) {
		return provider.Status{}, errSilent, true
	}
	s.provider.Rates.CallbackLost = 1
	w := newWorld(t, s)
	w.queue(1, 3)
	c := w.claim(300 * time.Millisecond)[0]
	ref := dispatch.Ref{AttemptID: c.AttemptID, FencingToken: c.FencingToken}
	w.eventually("lost", func() bool { return w.attemptState(ref) == control.AttemptLost })
	made.mu.Lock()
	made.status = nil
	made.mu.Unlock()
	w.becomes(c.TaskID, control.TaskSucceeded)
	w.once()
	w.clean()
}

// The dispatch event is read before its attempt can be seen: put back, not dropped.
func TestTrap_D26_EventBeforeItsAttempt(t *testing.T) {
	t.Parallel()
	s := usual()
	s.idle = true
	w := newWorld(t, s)
	task, ref := w.one()
	// Hide the attempt behind another fence's worth of truth: the message names one that is not there yet.
	hidden := uuid.New()
	w.exec(`UPDATE outbox_event SET payload = jsonb_set(payload, '{attempt_id}', to_jsonb($1::text)) WHERE topic = 'dispatch'`, hidden)
	w.start()
	w.eventually("put back", func() bool {
		return w.number(`SELECT coalesce(max(deliveries), 0) FROM outbox_event WHERE topic = 'dispatch'`) >= 3
	})
	if got := w.attemptState(ref); got != control.AttemptCreated {
		t.Fatalf("attempt %s", got)
	}
	w.exec(`UPDATE outbox_event SET payload = jsonb_set(payload, '{attempt_id}', to_jsonb($1::text)) WHERE topic = 'dispatch'`, ref.AttemptID)
	w.becomes(task, control.TaskSucceeded)
	w.once()
	w.clean()
}

// The message is lost on its way, or cannot be read: the sweep writes it again within a bound.
func TestTrap_D27_LostMessageIsWrittenAgain(t *testing.T) {
	t.Parallel()
	s := usual()
	s.idle = true
	s.settings.Undispatched = 300 * time.Millisecond
	w := newWorld(t, s)
	gone, _ := w.one()
	w.exec(`DELETE FROM outbox_event WHERE topic = 'dispatch'`)
	broken, _ := w.one()
	w.exec(`UPDATE outbox_event SET payload = '"nonsense"' WHERE topic = 'dispatch'`)
	w.start()
	w.becomes(gone, control.TaskSucceeded)
	w.becomes(broken, control.TaskSucceeded)
	if c := w.service.Counts(); c.Reemitted < 2 || c.Undecoded != 1 {
		t.Errorf("%+v", c)
	}
	w.once()
	w.clean()
}

// A process that does not speak to a provider leaves its attempts to one that does: none is used up.
func TestAnotherProcessSpeaksToTheProvider(t *testing.T) {
	t.Parallel()
	s := usual()
	s.idle = true
	s.provider.Rates.CallbackLost = 1
	w := newWorld(t, s)
	own := w.registry
	var err error
	if w.registry, err = provider.NewRegistry(); err != nil {
		t.Fatal(err)
	}
	mute := w.newService(s)
	w.registry = own
	running(t, mute.Run)
	task, ref := w.one()
	w.eventually("offered again", func() bool {
		return w.number(`SELECT coalesce(max(deliveries), 0) FROM outbox_event WHERE topic = 'dispatch'`) >= 2
	})
	if state := w.attemptState(ref); state != control.AttemptCreated {
		t.Fatalf("attempt %s", state)
	}
	w.start()
	w.becomes(task, control.TaskSucceeded)
	if n := w.number(`SELECT count(*) FROM task_attempt`); n != 1 {
		t.Errorf("%d attempts", n)
	}
	w.once()
	w.clean()
}

// Where nobody speaks to a provider, the task does not wait for ever.
func TestNobodySpeaksToTheProvider(t *testing.T) {
	t.Parallel()
	s := usual()
	s.idle = true
	w := newWorld(t, s)
	var err error
	if w.registry, err = provider.NewRegistry(); err != nil {
		t.Fatal(err)
	}
	w.service = w.newService(s)
	_, ref := w.one()
	w.exec(`UPDATE outbox_event SET deliveries = 19 WHERE topic = 'dispatch'`)
	w.start()
	w.eventually("rejected", func() bool { return w.attemptState(ref) == control.AttemptRejected })
	if class := w.text(`SELECT error_class FROM task_attempt`); class != string(provider.ClassConfig) {
		t.Errorf("class %s", class)
	}
	w.clean()
}

// A provider that cannot be reached for a while costs no task its tries.
func TestAnOutageUsesUpNoTries(t *testing.T) {
	t.Parallel()
	s := usual()
	var away atomic.Bool
	away.Store(true)
	made := script(&s)
	made.submit = func(context.Context, provider.Submission) (provider.Answer, bool) {
		return provider.Answer{Outcome: provider.SurelyNot, Class: provider.ClassUnreachable, Retry: true}, away.Load()
	}
	w := newWorld(t, s)
	w.queue(1, 2)
	w.eventually("tried more often than it may", func() bool {
		w.claim(time.Hour)
		w.exec(`UPDATE generation_task SET next_eligible_at = clock_timestamp() WHERE state = 'QUEUED'`)
		return w.number(`SELECT attempts_made FROM generation_task`) >= 4
	})
	away.Store(false)
	w.eventually("done", func() bool {
		w.claim(time.Hour)
		w.exec(`UPDATE generation_task SET next_eligible_at = clock_timestamp() WHERE state = 'QUEUED'`)
		return w.number(`SELECT count(*) FROM generation_task WHERE state = 'SUCCEEDED'`) == 1
	})
	w.once()
	w.clean()
}

// 429 with Retry-After: never earlier than told, and not all at the same instant.
func TestTrap_D29_RetriesAreSpread(t *testing.T) {
	t.Parallel()
	s := usual()
	const hint = 10 * time.Minute
	made := script(&s)
	made.submit = func(context.Context, provider.Submission) (provider.Answer, bool) {
		return provider.Answer{Outcome: provider.SurelyNot, Class: provider.ClassRateLimited, Retry: true, RetryAfter: hint, Status: 429}, true
	}
	w := newWorld(t, s)
	const tasks = 20
	w.queue(tasks, 3)
	before := time.Now()
	w.claim(time.Hour)
	w.eventually("all back in the queue", func() bool {
		return w.number(`SELECT count(*) FROM generation_task WHERE state = 'QUEUED' AND attempts_made = 1`) == tasks
	})
	var first, last time.Time
	var distinct int
	if err := w.sql.QueryRow(t.Context(), `SELECT min(next_eligible_at), max(next_eligible_at), count(DISTINCT date_trunc('second', next_eligible_at)) FROM generation_task`).
		Scan(&first, &last, &distinct); err != nil {
		t.Fatal(err)
	}
	if first.Before(before.Add(hint)) || last.Sub(first) < hint/10 || distinct < tasks*8/10 {
		t.Errorf("first after %v, last %v later, %d different seconds", first.Sub(before), last.Sub(first), distinct)
	}
	if last.After(time.Now().Add(hint + hint/2)) {
		t.Errorf("last after %v", last.Sub(before))
	}
	if w.held() != 0 {
		t.Errorf("%d units held while nothing runs", w.held())
	}
	w.clean()
}

// A refusal for good is not tried again.
func TestRefusedJobsFail(t *testing.T) {
	t.Parallel()
	s := usual()
	s.provider.Rates.Refused = 1
	w := newWorld(t, s)
	task, _ := w.one()
	w.becomes(task, control.TaskFailed)
	if code := w.text(`SELECT error_code FROM generation_task WHERE task_id = $1`, task); code != "content_refused" {
		t.Errorf("code %q", code)
	}
	if n := w.number(`SELECT count(*) FROM task_attempt`); n != 1 {
		t.Errorf("%d attempts", n)
	}
	w.clean()
}

func TestTrap_D25_Cancel(t *testing.T) {
	t.Parallel()
	cancel := func(w *world, task uuid.UUID) {
		w.t.Helper()
		if _, _, err := facts.NewCancels(w.db).Cancel(w.t.Context(), w.tenant, task, control.System); err != nil {
			w.t.Fatal(err)
		}
	}
	t.Run("before the submit", func(t *testing.T) {
		t.Parallel()
		s := usual()
		s.idle = true
		w := newWorld(t, s)
		task, ref := w.one()
		cancel(w, task)
		w.start()
		w.becomes(task, control.TaskCanceled)
		if len(w.submits()) != 0 || w.attemptState(ref) != control.AttemptCanceled || w.held() != 0 {
			t.Errorf("%d submits, attempt %s, %d held", len(w.submits()), w.attemptState(ref), w.held())
		}
		w.clean()
	})
	t.Run("while it runs", func(t *testing.T) {
		t.Parallel()
		s := usual()
		s.provider.Models[0].P50, s.provider.Models[0].P95 = 50_000, 50_000
		w := newWorld(t, s)
		task, _ := w.one()
		w.becomes(task, control.TaskRunning)
		cancel(w, task)
		w.becomes(task, control.TaskCanceled)
		if w.held() != 0 {
			t.Errorf("%d held", w.held())
		}
		w.once()
		w.clean()
	})
	t.Run("too late: the result wins", func(t *testing.T) {
		t.Parallel()
		s := usual()
		made := script(&s)
		s.provider.Profiles[0].Cancel = provider.CancelQueuedOnly
		w := newWorld(t, s)
		task, _ := w.one()
		w.becomes(task, control.TaskRunning)
		cancel(w, task)
		w.becomes(task, control.TaskSucceeded)
		if _, _, cancels := made.seen(); cancels != 0 {
			t.Errorf("%d cancels of a job that no longer waits", cancels)
		}
		w.clean()
	})
}

// What is in flight when the service stops is unknown, its slot kept; the next one finds the job.
func TestStopLeavesNothingInTheDark(t *testing.T) {
	t.Parallel()
	s := usual()
	s.provider.Rates.Unknown = 1 // half of the answers are held back
	s.provider.Rates.CallbackLost = 1
	s.settings.SubmitTimeout, s.settings.Grace = 30*time.Second, 200*time.Millisecond
	w := newWorld(t, s)
	const tasks = 16
	w.queue(tasks, 3)
	w.claim(time.Hour)
	w.eventually("all sent", func() bool { return len(w.submits()) == tasks })
	began := time.Now()
	w.stop()
	if took := time.Since(began); took > 2500*time.Millisecond {
		t.Errorf("stopping took %v", took)
	}
	if n := w.number(`SELECT count(*) FROM task_attempt WHERE state = 'SUBMITTING'`); n != 0 {
		t.Errorf("%d attempts left in the dark", n)
	}
	w.clean()
	w.service = w.newService(s)
	w.start()
	w.eventually("all succeed", func() bool {
		return w.number(`SELECT count(*) FROM generation_task WHERE state = 'SUCCEEDED'`) == tasks
	})
	w.once()
	w.clean()
}

// A full pool holds up nobody but its own.
func TestPoolsBoundSubmits(t *testing.T) {
	t.Parallel()
	s := usual()
	made := script(&s)
	release := make(chan struct{})
	made.submit = func(ctx context.Context, _ provider.Submission) (provider.Answer, bool) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return provider.Answer{}, false
	}
	s.settings.SubmitTimeout, s.settings.PoolSubmits, s.settings.LaneSubmits = 20*time.Second, 3, 10
	w := newWorld(t, s)
	const tasks = 30
	w.queue(tasks, 3)
	w.claim(time.Hour)
	w.eventually("pool full", func() bool { c := w.service.Counts(); return c.InFlight == 3 && c.Postponed > 20 })
	if n := w.number(`SELECT count(*) FROM task_attempt WHERE state <> 'CREATED'`); n != 3 {
		t.Errorf("%d attempts begun", n)
	}
	close(release)
	w.eventually("all succeed", func() bool {
		return w.number(`SELECT count(*) FROM generation_task WHERE state = 'SUCCEEDED'`) == tasks
	})
	w.once()
	w.clean()
}
