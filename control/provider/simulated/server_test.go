package simulated_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control/provider"
	"fairlane/control/provider/simulated"
)

func submission(key string) provider.Submission {
	return provider.Submission{AttemptID: uuid.New(), Key: key, Account: "a", Model: "m"}
}

func TestJobsRunAndEnd(t *testing.T) {
	t.Parallel()
	r := serve(t, steady(), t.TempDir())
	a := r.adapter(t)
	s := submission("k1")
	got := a.Submit(t.Context(), s)
	if got.Outcome != provider.Accepted {
		t.Fatalf("%+v", got)
	}
	job := provider.Job{ID: got.JobID, Key: "k1", Account: "a"}
	if st, err := a.Lookup(t.Context(), job); err != nil || st.JobID != got.JobID || st.Key != "k1" {
		t.Errorf("look-up: %+v %v", st, err)
	}
	if st, err := a.Lookup(t.Context(), provider.Job{Key: "nobody", Account: "a"}); err != nil || st.State != provider.JobAbsent {
		t.Errorf("look-up of nothing: %+v %v", st, err)
	}
	if st, err := a.Status(t.Context(), provider.Job{ID: "nobody"}); err != nil || st.State != provider.JobAbsent {
		t.Errorf("status of nothing: %+v %v", st, err)
	}
	eventually(t, "job succeeds", func() bool {
		st, err := a.Status(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		return st.State == provider.JobSucceeded && st.CostMicro == 420_000 && st.Seconds > 0.09 && len(st.Result) > 0
	})
	// The same key again is the same job, and is not charged again.
	if again := a.Submit(t.Context(), s); again.Outcome != provider.Accepted || again.JobID != got.JobID {
		t.Errorf("again: %+v", again)
	}
	if n := submits(t, r.journal())[s.AttemptID.String()]; n != 1 {
		t.Errorf("%d submits in the journal", n)
	}
}

func TestConcurrencyIsKeptUnderARush(t *testing.T) {
	t.Parallel()
	cfg := steady()
	cfg.Models[0].P50, cfg.Models[0].P95 = 3000, 3000
	cfg.Profiles[0].Pools[0].Concurrency = 10
	r := serve(t, cfg, t.TempDir())
	a := r.adapter(t)
	var mu sync.Mutex
	outcomes := map[provider.Outcome]int{}
	var all sync.WaitGroup
	for range 60 {
		all.Go(func() {
			got := a.Submit(t.Context(), submission(uuid.NewString()))
			mu.Lock()
			defer mu.Unlock()
			outcomes[got.Outcome]++
			if got.Outcome == provider.SurelyNot && (got.Class != provider.ClassRateLimited || !got.Retry || got.RetryAfter < time.Second) {
				t.Errorf("%+v", got)
			}
		})
	}
	all.Wait()
	if outcomes[provider.Accepted] != 10 || outcomes[provider.SurelyNot] != 50 || len(submits(t, r.journal())) != 10 {
		t.Errorf("%v, %d in the journal", outcomes, len(submits(t, r.journal())))
	}
}

func TestCancelFreesTheSlot(t *testing.T) {
	t.Parallel()
	cfg := steady()
	cfg.Models[0].P50, cfg.Models[0].P95 = 3000, 3000
	cfg.Profiles[0].Pools[0].Concurrency = 1
	r := serve(t, cfg, t.TempDir())
	a := r.adapter(t)
	first := a.Submit(t.Context(), submission("1"))
	if full := a.Submit(t.Context(), submission("2")); full.Outcome != provider.SurelyNot {
		t.Fatalf("%+v", full)
	}
	for range 2 { // the second comes too late, which is no error
		if err := a.Cancel(t.Context(), provider.Job{ID: first.JobID}); err != nil {
			t.Fatal(err)
		}
	}
	if st, err := a.Status(t.Context(), provider.Job{ID: first.JobID}); err != nil || st.State != provider.JobCanceled || st.CostMicro != 0 {
		t.Errorf("%+v %v", st, err)
	}
	if next := a.Submit(t.Context(), submission("3")); next.Outcome != provider.Accepted {
		t.Errorf("%+v", next)
	}
	r.stop() // and it stays canceled over a restart
	r = serve(t, cfg, r.dir)
	if st, err := r.adapter(t).Status(t.Context(), provider.Job{ID: first.JobID}); err != nil || st.State != provider.JobCanceled {
		t.Errorf("after a restart: %+v %v", st, err)
	}
}

// An answer that gets lost is one job in the journal and an unknown submit; a request that never
// arrived is no job.
func TestTrap_D20_LostAnswersAreOneJobEach(t *testing.T) {
	t.Parallel()
	for name, rates := range map[string]simulated.Rates{"unknown": {Unknown: 1}, "vanished": {Vanished: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := steady()
			cfg.Rates, cfg.HoldSeconds = rates, 30
			r := serve(t, cfg, t.TempDir())
			a := r.adapter(t)
			var classes sync.Map
			var all sync.WaitGroup
			for range 24 {
				all.Go(func() {
					s := submission(uuid.NewString())
					// Long enough for a busy machine to accept or cut; a held answer takes 30 s.
					patience := 3 * time.Second
					if rates.Vanished > 0 {
						patience = 20 * time.Second
					}
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					got := a.Submit(ctx, s)
					classes.Store(got.Class, true)
					if got.Outcome != provider.Unknown {
						t.Errorf("%+v", got)
					}
					st, err := a.Lookup(t.Context(), provider.Job{Key: s.Key, Account: "a"})
					if err != nil || (st.State == provider.JobAbsent) != (rates.Vanished > 0) {
						t.Errorf("look-up: %+v %v", st, err)
					}
					if n := submits(t, r.journal())[s.AttemptID.String()]; n > 1 || (n == 1) == (rates.Vanished > 0) {
						t.Errorf("%d submits in the journal", n)
					}
				})
			}
			all.Wait()
			if _, cut := classes.Load(provider.ClassConnection); !cut {
				t.Error("no connection was cut")
			}
			if _, held := classes.Load(provider.ClassTimeout); held != (rates.Unknown > 0) {
				t.Errorf("held answers: %v", held)
			}
		})
	}
}

func TestBadRequestsAreRefused(t *testing.T) {
	t.Parallel()
	r := serve(t, steady(), t.TempDir())
	post := func(path, key, body string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Close = true
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	for name, c := range map[string]struct {
		path, key, body string
		want            int
	}{
		"key":      {"/p/v1/jobs", "wrong", `{}`, 401},
		"provider": {"/q/v1/jobs", "key", `{}`, 404},
		"no JSON":  {"/p/v1/jobs", "key", `<`, 400},
		"model":    {"/p/v1/jobs", "key", `{"model":"x","account":"a"}`, 422},
		"account":  {"/p/v1/jobs", "key", `{"model":"m","account":"b"}`, 422},
		"huge":     {"/p/v1/jobs", "key", `{"model":"` + strings.Repeat("m", 2<<20) + `"}`, 400},
		"no job":   {"/p/v1/jobs/x/cancel", "key", ``, 404},
	} {
		if got := post(c.path, c.key, c.body); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if n := len(submits(t, r.journal())); n != 0 {
		t.Errorf("%d jobs were made", n)
	}
}

// inbox receives callbacks.
type inbox struct {
	url    string
	mu     sync.Mutex
	events []provider.Callback
	bodies map[string]int
}

func newInbox(t *testing.T, parse func(provider.CallbackRequest) (provider.Callback, error), answer int) *inbox {
	t.Helper()
	in := &inbox{bodies: map[string]int{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		cb, err := parse(provider.CallbackRequest{Header: r.Header, Body: body, At: time.Now()})
		if err != nil {
			t.Errorf("callback: %v", err)
		}
		in.mu.Lock()
		in.events = append(in.events, cb)
		in.bodies[string(body)]++
		in.mu.Unlock()
		w.WriteHeader(answer)
	}))
	t.Cleanup(s.Close)
	in.url = s.URL
	return in
}

func (in *inbox) states() []provider.JobState {
	in.mu.Lock()
	defer in.mu.Unlock()
	var out []provider.JobState
	for _, e := range in.events {
		out = append(out, e.Status.State)
	}
	return out
}

func TestCallbacksComeAsTheyDoInLife(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rates  simulated.Rates
		signed bool
		want   []provider.JobState
	}{
		"plain":    {simulated.Rates{}, true, []provider.JobState{provider.JobSucceeded}},
		"unsigned": {simulated.Rates{}, false, []provider.JobState{provider.JobSucceeded}},
		"refused":  {simulated.Rates{Refused: 1}, true, []provider.JobState{provider.JobFailed}},
		"early":    {simulated.Rates{CallbackEarly: 1}, true, []provider.JobState{provider.JobRunning, provider.JobSucceeded}},
		"twice":    {simulated.Rates{CallbackTwice: 1}, true, []provider.JobState{provider.JobSucceeded, provider.JobSucceeded, provider.JobRunning}},
		"late":     {simulated.Rates{CallbackLate: 1}, true, []provider.JobState{provider.JobSucceeded}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := steady()
			cfg.Speed, cfg.Rates, cfg.Profiles[0].Signed = 100, c.rates, c.signed
			cfg.Models[0].P50, cfg.Models[0].P95 = 10, 10
			r := serve(t, cfg, t.TempDir())
			a := r.adapter(t)
			in := newInbox(t, a.ParseCallback, http.StatusNoContent)
			s := submission("k")
			s.CallbackURL = in.url + "/cb"
			got := a.Submit(t.Context(), s)
			if got.Outcome != provider.Accepted {
				t.Fatalf("%+v", got)
			}
			if early := len(in.states()) > 0; early != (c.rates.CallbackEarly > 0) {
				t.Errorf("called before the answer: %v", early)
			}
			eventually(t, "callbacks", func() bool { return len(in.states()) >= len(c.want) })
			for i, state := range in.states() {
				if state != c.want[i] {
					t.Errorf("callbacks %v, want %v", in.states(), c.want)
				}
			}
			for _, e := range in.events {
				if e.Signed != c.signed || e.Status.JobID != got.JobID {
					t.Errorf("%+v", e)
				}
			}
		})
	}
	t.Run("lost", func(t *testing.T) {
		t.Parallel()
		cfg := steady()
		cfg.Rates.CallbackLost = 1
		r := serve(t, cfg, t.TempDir())
		a := r.adapter(t)
		in := newInbox(t, a.ParseCallback, http.StatusNoContent)
		s := submission("k")
		s.CallbackURL = in.url
		got := a.Submit(t.Context(), s)
		eventually(t, "end", func() bool {
			st, err := a.Status(t.Context(), provider.Job{ID: got.JobID})
			return err == nil && st.State == provider.JobSucceeded
		})
		r.stop() // waits for callbacks under way
		if n := len(in.states()); n != 0 {
			t.Errorf("%d callbacks", n)
		}
	})
	t.Run("refused ones come again, four times", func(t *testing.T) {
		t.Parallel()
		cfg := steady()
		cfg.Speed = 500
		r := serve(t, cfg, t.TempDir())
		a := r.adapter(t)
		in := newInbox(t, a.ParseCallback, http.StatusServiceUnavailable)
		s := submission("k")
		s.CallbackURL = in.url
		a.Submit(t.Context(), s)
		eventually(t, "callbacks", func() bool { return len(in.states()) == 4 })
		if len(in.bodies) != 1 {
			t.Errorf("%d bodies", len(in.bodies))
		}
	})
}

// Jobs go on over a restart: time that passed meanwhile counts, and nobody is called twice.
func TestJobsSurviveARestart(t *testing.T) {
	t.Parallel()
	cfg := steady()
	cfg.Models = append(cfg.Models, simulated.Model{Code: "long", P50: 3000, P95: 3000})
	cfg.Profiles[0].Pools = append(cfg.Profiles[0].Pools, simulated.Pool{Account: "a", Model: "long", Concurrency: 1})
	r := serve(t, cfg, t.TempDir())
	a := r.adapter(t)
	in := newInbox(t, a.ParseCallback, http.StatusNoContent)
	told := submission("told")
	told.CallbackURL = in.url
	a.Submit(t.Context(), told)
	eventually(t, "callback", func() bool { return len(in.states()) == 1 })
	short, long := submission("short"), submission("long")
	short.CallbackURL, long.Model = in.url, "long"
	one, two := a.Submit(t.Context(), short), a.Submit(t.Context(), long)
	if one.Outcome != provider.Accepted || two.Outcome != provider.Accepted {
		t.Fatalf("%+v %+v", one, two)
	}
	before, err := a.Status(t.Context(), provider.Job{ID: two.JobID})
	if err != nil {
		t.Fatal(err)
	}
	r.stop()
	r = serve(t, cfg, r.dir)
	a = r.adapter(t)
	after, err := a.Status(t.Context(), provider.Job{ID: two.JobID})
	if err != nil || after.State != provider.JobRunning || after.Progress < before.Progress {
		t.Errorf("before %+v, after %+v %v", before, after, err)
	}
	eventually(t, "short job ends", func() bool {
		st, err := a.Status(t.Context(), provider.Job{ID: one.JobID})
		return err == nil && st.State == provider.JobSucceeded
	})
	eventually(t, "its callback", func() bool { return len(in.states()) >= 2 })
	if st, err := a.Lookup(t.Context(), provider.Job{Key: "long", Account: "a"}); err != nil || st.JobID != two.JobID {
		t.Errorf("%+v %v", st, err)
	}
	full := submission("more")
	full.Model = "long"
	if got := a.Submit(t.Context(), full); got.Class != provider.ClassRateLimited {
		t.Errorf("the running job does not count any more: %+v", got)
	}
	r.stop()
	r = serve(t, cfg, r.dir)
	r.stop()
	if n := len(in.states()); n != 2 {
		t.Errorf("%d callbacks for two jobs", n)
	}
	for attempt, n := range submits(t, r.journal()) {
		if n != 1 {
			t.Errorf("attempt %s: %d submits", attempt, n)
		}
	}
}
