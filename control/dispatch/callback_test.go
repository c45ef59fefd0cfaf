package dispatch_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/dispatch"
	"fairlane/control/provider"
)

// quietJobs is a provider whose jobs run for long and that never calls back by itself.
func quietJobs() setup {
	s := usual()
	s.provider.Models[0].P50, s.provider.Models[0].P95 = 50_000, 50_000
	s.provider.Rates.CallbackLost = 1
	return s
}

func event(t *testing.T, kind, job string, more map[string]any) []byte {
	t.Helper()
	fields := map[string]any{"id": job, "status": kind, "progress": 0.5, "cost_micro": 7}
	for k, v := range more {
		fields[k] = v
	}
	raw, err := json.Marshal(map[string]any{"type": "job." + kind, "job": fields})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (w *world) signed(body []byte, at time.Time) http.Header {
	w.t.Helper()
	key, err := provider.WebhookSecret(w.cfg.WebhookSecret)
	if err != nil {
		w.t.Fatal(err)
	}
	h := http.Header{}
	provider.SignWebhook(h, key, uuid.NewString(), at, body)
	return h
}

func (w *world) token(ref dispatch.Ref) string {
	w.t.Helper()
	return w.text(`SELECT callback_token FROM task_attempt WHERE attempt_id = $1`, ref.AttemptID)
}

func (w *world) job(ref dispatch.Ref) string {
	w.t.Helper()
	return w.text(`SELECT coalesce(provider_job_id, '') FROM task_attempt WHERE attempt_id = $1`, ref.AttemptID)
}

// receive hands in a callback that is well signed now.
func (w *world) receive(ref dispatch.Ref, body []byte) error {
	w.t.Helper()
	return w.service.Receive(w.t.Context(), "p", ref.AttemptID, w.token(ref), w.signed(body, time.Now()), body)
}

// settled waits until every callback is handled, and returns their outcomes in the order they came.
func (w *world) settled() string {
	w.t.Helper()
	w.eventually("callbacks settled", func() bool {
		return w.number(`SELECT count(*) FROM provider_callback WHERE handled_at IS NULL`) == 0
	})
	return w.text(`SELECT coalesce(string_agg(outcome, ' ' ORDER BY received_at, callback_id), '') FROM provider_callback`)
}

// succeeded comes before processing, queued last: the end stands, the rest is kept and changes nothing.
func TestTrap_D23_CallbacksOutOfOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quietJobs())
	task, ref := w.one()
	w.becomes(task, control.TaskRunning)
	job := w.job(ref)
	if err := w.receive(ref, event(t, "succeeded", job, map[string]any{"result": map[string]any{"url": "u"}})); err != nil {
		t.Fatal(err)
	}
	w.becomes(task, control.TaskSucceeded)
	for _, kind := range []string{"running", "queued", "failed"} {
		if err := w.receive(ref, event(t, kind, job, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.settled(); got != "ENDED LATE LATE LATE" {
		t.Errorf("outcomes %q", got)
	}
	if w.taskState(task) != control.TaskSucceeded || w.held() != 0 {
		t.Errorf("task %s, %d units held", w.taskState(task), w.held())
	}
	w.clean()
}

func TestTrap_D24_ReplayedCallbacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quietJobs())
	task, ref := w.one()
	w.becomes(task, control.TaskRunning)
	body := event(t, "succeeded", w.job(ref), nil)
	token := w.token(ref)
	stripped := w.signed(body, time.Now())
	stripped.Del("Webhook-Timestamp")
	for name, c := range map[string]struct {
		provider string
		attempt  uuid.UUID
		token    string
		header   http.Header
		body     []byte
		want     control.Code
	}{
		"captured an hour ago":  {"p", ref.AttemptID, token, w.signed(body, time.Now().Add(-time.Hour)), body, control.CodeUnauthorized},
		"timestamp stripped":    {"p", ref.AttemptID, token, stripped, body, control.CodeUnauthorized},
		"not signed":            {"p", ref.AttemptID, token, http.Header{}, body, control.CodeUnauthorized},
		"signed for another":    {"p", ref.AttemptID, token, w.signed([]byte(`{}`), time.Now()), body, control.CodeUnauthorized},
		"wrong token":           {"p", ref.AttemptID, "guess", w.signed(body, time.Now()), body, control.CodeNotFound},
		"no token":              {"p", ref.AttemptID, "", w.signed(body, time.Now()), body, control.CodeNotFound},
		"attempt that is not":   {"p", uuid.New(), token, w.signed(body, time.Now()), body, control.CodeNotFound},
		"provider that is not":  {"q", ref.AttemptID, token, w.signed(body, time.Now()), body, control.CodeNotFound},
		"no attempt and no job": {"p", uuid.Nil, "", w.signed(event(t, "running", "", nil), time.Now()), event(t, "running", "", nil), control.CodeInvalid},
		"no JSON":               {"p", ref.AttemptID, token, w.signed([]byte("<"), time.Now()), []byte("<"), control.CodeInvalid},
		"no UTF-8":              {"p", ref.AttemptID, token, w.signed([]byte("\xff"), time.Now()), []byte("\xff"), control.CodeInvalid},
		"unknown status":        {"p", ref.AttemptID, token, w.signed(event(t, "dreaming", "j", nil), time.Now()), event(t, "dreaming", "j", nil), control.CodeInvalid},
		"job id with a newline": {"p", ref.AttemptID, token, w.signed(event(t, "running", "a\nb", nil), time.Now()), event(t, "running", "a\nb", nil), control.CodeInvalid},
		"too large":             {"p", ref.AttemptID, token, http.Header{}, make([]byte, dispatch.MaxCallback+1), control.CodeTooLarge},
	} {
		if err := w.service.Receive(t.Context(), c.provider, c.attempt, c.token, c.header, c.body); control.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if n := w.number(`SELECT count(*) FROM provider_callback`); n != 0 || w.taskState(task) != control.TaskRunning {
		t.Errorf("%d callbacks kept, task %s", n, w.taskState(task))
	}
	// A valid one twice, and again when all is over: one end, one release.
	for range 3 {
		if err := w.receive(ref, body); err != nil {
			t.Fatal(err)
		}
	}
	w.becomes(task, control.TaskSucceeded)
	if err := w.receive(ref, body); err != nil {
		t.Fatal(err)
	}
	if got := w.settled(); got != "ENDED" {
		t.Errorf("outcomes %q", got)
	}
	if n := w.number(`SELECT count(*) FROM task_event WHERE task_id = $1 AND to_state = 'SUCCEEDED'`, task); n != 1 || w.held() != 0 {
		t.Errorf("ended %d times, %d units held", n, w.held())
	}
	w.clean()
}

// A callback may be about another job than the attempt's: it says nothing about the attempt.
func TestCallbackOfAnotherJobIsIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quietJobs())
	task, ref := w.one()
	w.becomes(task, control.TaskRunning)
	if err := w.receive(ref, event(t, "succeeded", "job_of_somebody", nil)); err != nil {
		t.Fatal(err)
	}
	if got := w.settled(); got != "OTHER_JOB" || w.taskState(task) != control.TaskRunning {
		t.Errorf("outcome %q, task %s", got, w.taskState(task))
	}
	if err := w.receive(ref, event(t, "running", w.job(ref), map[string]any{"progress": 0.75})); err != nil {
		t.Fatal(err)
	}
	w.eventually("progress", func() bool {
		return w.text(`SELECT coalesce(progress, 0)::text FROM task_attempt WHERE attempt_id = $1`, ref.AttemptID) == "0.75"
	})
}

// One that overtakes the submit's answer waits for it.
func TestEarlyCallbackWaitsForItsJob(t *testing.T) {
	t.Parallel()
	s := quietJobs()
	s.idle = true
	w := newWorld(t, s)
	task, ref := w.one()
	if err := w.receive(ref, event(t, "running", "job_x", nil)); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.becomes(task, control.TaskRunning)
	if got := w.settled(); got != "OTHER_JOB" {
		t.Errorf("outcome %q", got)
	}
	w.once()
}

// One with a signature may name the job alone, where the provider has a fixed callback address.
func TestCallbackIsMatchedByJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quietJobs())
	task, ref := w.one()
	w.becomes(task, control.TaskRunning)
	body := event(t, "succeeded", w.job(ref), nil)
	if err := w.service.Receive(t.Context(), "p", uuid.Nil, "", w.signed(body, time.Now()), body); err != nil {
		t.Fatal(err)
	}
	w.becomes(task, control.TaskSucceeded)
	w.clean()
}

// An unsigned one is a hint: the provider is asked, and its answer counts.
func TestUnsignedCallbackIsAHint(t *testing.T) {
	t.Parallel()
	s := quietJobs()
	s.provider.Profiles[0].Signed = false
	s.settings.Speed = 1 // polls are far away
	w := newWorld(t, s)
	task, ref := w.one()
	w.becomes(task, control.TaskRunning)
	body := event(t, "succeeded", w.job(ref), nil)
	before := w.service.Counts().Checks
	if err := w.service.Receive(t.Context(), "p", ref.AttemptID, w.token(ref), http.Header{}, body); err != nil {
		t.Fatal(err)
	}
	if got := w.settled(); got != "HINT" {
		t.Errorf("outcome %q", got)
	}
	w.eventually("asked", func() bool { return w.service.Counts().Checks > before })
	if w.taskState(task) != control.TaskRunning {
		t.Errorf("task %s: an unsigned callback was believed", w.taskState(task))
	}
}

// What PostgreSQL cannot hold does not hold up a callback or a result.
func TestCallbackWithWhatTheStoreCannotHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quietJobs())
	task, ref := w.one()
	w.becomes(task, control.TaskRunning)
	body := event(t, "succeeded", w.job(ref), map[string]any{"result": map[string]any{"nul\x00": "a\x00b", "deep": strings.Repeat("x", 1000)}})
	body = []byte(strings.Replace(string(body), `"deep"`, `"huge":1e400000,"deep"`, 1))
	if err := w.receive(ref, body); err != nil {
		t.Fatal(err)
	}
	w.becomes(task, control.TaskSucceeded)
	w.clean()
}

// The provider names a job that belongs to another attempt already: that attempt keeps it, this one
// is unknown.
func TestJobIDTakenTwice(t *testing.T) {
	t.Parallel()
	s := quietJobs()
	s.provider.Profiles[0].Lookup = false
	s.settings.Speed = 1
	made := script(&s)
	made.submit = func(_ ctx, _ provider.Submission) (provider.Answer, bool) {
		return provider.Answer{Outcome: provider.Accepted, JobID: "the_same"}, true
	}
	w := newWorld(t, s)
	const tasks = 12
	w.queue(tasks, 3)
	w.claim(time.Hour)
	w.eventually("all answered", func() bool {
		return w.number(`SELECT count(*) FROM task_attempt WHERE state IN ('ACCEPTED', 'UNKNOWN')`) == tasks
	})
	if n := w.number(`SELECT count(*) FROM task_attempt WHERE state = 'ACCEPTED'`); n != 1 {
		t.Errorf("%d attempts have the same job", n)
	}
	if w.held() != tasks {
		t.Errorf("%d units held", w.held())
	}
	w.clean()
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte(`{"type":"job.succeeded","job":{"id":"x","status":"succeeded"}}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, stored := receiver(t)
		err := s.Receive(t.Context(), "p", uuid.New(), "token", http.Header{}, body)
		if code := control.CodeOf(err); err != nil && code != control.CodeInvalid && code != control.CodeTooLarge {
			t.Errorf("%q: %v", body, err)
		}
		if (err == nil) != (len(*stored) == 1) {
			t.Errorf("%q: %v, and %d kept", body, err, len(*stored))
		}
		for _, c := range *stored {
			if c.Event.JobID != "" && !provider.GoodJobID(c.Event.JobID) {
				t.Errorf("job %q kept", c.Event.JobID)
			}
			if _, err := json.Marshal(c.Event); err != nil {
				t.Error(fmt.Errorf("%q: %w", body, err))
			}
		}
	})
}
