package simulated

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"fairlane/control/provider"
)

// job is a job with its fate. Guarded by the server's mutex.
type job struct {
	Entry
	fate   fate
	ends   time.Time
	called bool // the last callback was taken
}

func (j *job) pool() poolKey { return poolKey{j.Profile, j.Account, j.Model} }

type createRequest struct {
	Key      string          `json:"client_key"`
	Attempt  string          `json:"attempt_id"`
	Account  string          `json:"account"`
	Model    string          `json:"model"`
	Callback string          `json:"callback_url"`
	Input    json.RawMessage `json:"input"`
}

type jobView struct {
	ID       string          `json:"id"`
	Key      string          `json:"client_key,omitempty"`
	Attempt  string          `json:"attempt_id,omitempty"`
	Status   string          `json:"status"`
	Progress float64         `json:"progress"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *jobError       `json:"error,omitempty"`
	Seconds  float64         `json:"seconds,omitempty"`
	Cost     int64           `json:"cost_micro"`
}

type jobError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

const maxRequest = 1 << 20

func (s *Server) create(w http.ResponseWriter, r *http.Request, p Profile) {
	var req createRequest
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil || json.Unmarshal(body, &req) != nil {
		refuse(w, http.StatusBadRequest, "invalid_request", "the body is no JSON object of at most 1 MiB")
		return
	}
	model, known := s.models[req.Model]
	pool := poolKey{p.Code, req.Account, req.Model}
	limit, open := s.limits[pool]
	if !known || !open {
		refuse(w, http.StatusUnprocessableEntity, "unknown_model", "this account has no such model")
		return
	}
	j := &job{Entry: Entry{Type: EntrySubmit, Profile: p.Code, Job: "job_" + uuid.NewString(), Key: req.Key, Attempt: req.Attempt,
		Account: req.Account, Model: req.Model, Callback: req.Callback}}
	chance := req.Key
	if chance == "" {
		chance = j.Job
	}
	j.fate = s.cfg.draw(p.Code, chance, model)
	if j.fate.Answer == answerVanish {
		drop(w)
		return
	}
	before, wait := s.takeOn(p, j, limit)
	if before != nil {
		s.answer(w, http.StatusOK, before)
		return
	}
	if wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		refuse(w, http.StatusTooManyRequests, "concurrency", "the concurrency of this account and model is used up")
		return
	}
	entry := j.Entry
	entry.Fate = &j.fate
	if err := s.journal.append(entry); err != nil {
		s.log.Error("journal", "error", err)
		s.takeBack(j)
		refuse(w, http.StatusServiceUnavailable, "internal", "the job could not be kept")
		return
	}
	s.planEnd(j, false)
	if j.fate.Callback == callbackEarly {
		_ = s.call(r.Context(), j, "job.running", s.view(j))
	}
	switch j.fate.Answer {
	case answerDropped:
		drop(w)
		return
	case answerHeld:
		timer := time.NewTimer(time.Duration(s.cfg.HoldSeconds * float64(time.Second)))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
	}
	s.answer(w, http.StatusCreated, j)
}

// takeOn enters a job, unless its key is known (before) or its pool is full (wait, until a slot is free).
func (s *Server) takeOn(p Profile, j *job, limit int) (before *job, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := jobKey{p.Code, j.Account, j.Key}
	if p.Dedupe && j.Key != "" {
		if before = s.byKey[key]; before != nil {
			return before, 0
		}
	}
	now := s.now()
	if running := s.active[j.pool()]; len(running) >= limit {
		wait = time.Minute
		for other := range running {
			wait = min(wait, other.ends.Sub(now))
		}
		return nil, max(wait, time.Millisecond)
	}
	j.At, j.ends = now, now.Add(j.fate.Duration)
	s.occupy(j)
	s.jobs[j.Job] = j
	if j.Key != "" {
		s.byKey[key] = j
	}
	return nil, 0
}

func (s *Server) takeBack(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vacate(j)
	s.forget(j.Job)
}

// planEnd plans the end of a job, its callbacks and the day on which its record expires.
func (s *Server) planEnd(j *job, over bool) {
	s.mu.Lock()
	ends, called := j.ends, j.called
	s.mu.Unlock()
	if over {
		if !called {
			s.planCallback(j)
		}
	} else {
		s.timeline.at(ends, func() { s.finish(j, ends) })
	}
	s.timeline.at(ends.Add(s.recordTTL()), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.forget(j.Job)
	})
}

// finish frees the slot of a job that was not canceled meanwhile.
func (s *Server) finish(j *job, planned time.Time) {
	s.mu.Lock()
	current := j.ends.Equal(planned)
	if current {
		s.vacate(j)
	}
	s.mu.Unlock()
	if current {
		s.planCallback(j)
	}
}

func (s *Server) read(w http.ResponseWriter, r *http.Request, p Profile) {
	s.mu.Lock()
	j := s.jobs[r.PathValue("id")]
	s.mu.Unlock()
	if j == nil || j.Profile != p.Code {
		refuse(w, http.StatusNotFound, "unknown_job", "no such job")
		return
	}
	s.answer(w, http.StatusOK, j)
}

func (s *Server) lookup(w http.ResponseWriter, r *http.Request, p Profile) {
	if !p.Lookup {
		refuse(w, http.StatusNotImplemented, "no_lookup", "jobs are not found by key")
		return
	}
	s.mu.Lock()
	j := s.byKey[jobKey{p.Code, r.URL.Query().Get("account"), r.URL.Query().Get("client_key")}]
	s.mu.Unlock()
	list := []jobView{}
	if j != nil {
		list = append(list, s.view(j))
	}
	writeJSON(w, http.StatusOK, map[string]any{"jobs": list})
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request, p Profile) {
	if p.Cancel == provider.CancelNone {
		refuse(w, http.StatusNotImplemented, "no_cancel", "jobs cannot be canceled")
		return
	}
	s.mu.Lock()
	j := s.jobs[r.PathValue("id")]
	now := s.now()
	known := j != nil && j.Profile == p.Code
	// No job here ever waits: where only waiting ones can be canceled, it is always too late.
	live := known && j.ends.After(now) && p.Cancel != provider.CancelQueuedOnly
	if live {
		j.fate.End, j.ends = endCanceled, now
		s.vacate(j)
	}
	s.mu.Unlock()
	switch {
	case !known:
		refuse(w, http.StatusNotFound, "unknown_job", "no such job")
		return
	case !live:
		refuse(w, http.StatusConflict, "too_late", "the job runs or has ended")
		return
	}
	if err := s.journal.append(Entry{Type: EntryCancel, At: now, Job: j.Job}); err != nil {
		s.log.Error("journal", "error", err)
	}
	s.planCallback(j)
	s.answer(w, http.StatusOK, j)
}

func (s *Server) answer(w http.ResponseWriter, status int, j *job) {
	writeJSON(w, status, s.view(j))
}

func (s *Server) view(j *job) jobView {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	v := jobView{ID: j.Job, Key: j.Key, Attempt: j.Attempt, Status: "running"}
	ran := j.ends.Sub(j.At)
	if now.Before(j.ends) {
		v.Progress = math.Floor(100*float64(now.Sub(j.At))/float64(ran)) / 100
		return v
	}
	v.Seconds, v.Status, v.Progress = ran.Seconds(), j.fate.End, 1
	switch j.fate.End {
	case endSucceeded:
		v.Cost = s.models[j.Model].CostMicro
		v.Result = json.RawMessage(fmt.Sprintf(`{"url":"https://media.invalid/%s/%s.mp4","model":%q}`, j.Profile, j.Job, j.Model))
	case endRefused:
		v.Status, v.Error = endFailed, &jobError{"content_refused", "the input was refused by moderation"}
	case endFailed:
		v.Error = &jobError{"internal", "the model failed"}
	}
	return v
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// drop cuts the connection without an answer.
func drop(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
		return
	}
	panic(http.ErrAbortHandler)
}
