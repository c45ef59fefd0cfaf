package simulated

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Server is the provider. Its handler works while Run runs.
type Server struct {
	cfg      Config
	log      *slog.Logger
	now      func() time.Time
	profiles map[string]Profile
	models   map[string]Model
	limits   map[poolKey]int
	secret   []byte
	journal  *journal
	timeline *timeline
	client   *http.Client
	calls    sync.WaitGroup
	calling  chan struct{} // bounds callbacks in flight
	asked    func()        // told of every request

	mu     sync.Mutex
	jobs   map[string]*job
	byKey  map[jobKey]*job
	active map[poolKey]map[*job]struct{}
	ctx    context.Context
}

type poolKey struct{ profile, account, model string }

type jobKey struct{ profile, account, key string }

// NewServer opens the journal in dir and takes up the jobs that it tells of. Close the server, or Run
// it, which closes it.
func NewServer(cfg Config, dir string, log *slog.Logger, now func() time.Time) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if now == nil {
		now = time.Now
	}
	s := &Server{
		cfg: cfg, log: log, now: now,
		profiles: map[string]Profile{}, models: map[string]Model{}, limits: map[poolKey]int{},
		timeline: newTimeline(now), calling: make(chan struct{}, 32), asked: func() {},
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32, IdleConnTimeout: 30 * time.Second}},
		jobs:   map[string]*job{}, byKey: map[jobKey]*job{}, active: map[poolKey]map[*job]struct{}{},
	}
	for _, m := range cfg.Models {
		s.models[m.Code] = m
	}
	for _, p := range cfg.Profiles {
		s.profiles[p.Code] = p
		for _, pool := range p.Pools {
			s.limits[poolKey{p.Code, pool.Account, pool.Model}] = pool.Concurrency
		}
	}
	if cfg.WebhookSecret != "" {
		var err error
		if s.secret, err = webhookKey(cfg.WebhookSecret); err != nil {
			return nil, err
		}
	}
	var err error
	if s.journal, err = openJournal(JournalPath(dir), s.replay); err != nil {
		return nil, err
	}
	s.resume()
	return s, nil
}

// Run serves on the listener until ctx ends, and returns when every goroutine has.
func (s *Server) Run(ctx context.Context, listener net.Listener, extra func(*http.ServeMux)) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	s.mu.Lock()
	s.ctx = running
	s.mu.Unlock()
	mux := http.NewServeMux()
	mux.Handle("/", s.Handler())
	if extra != nil {
		extra(mux)
	}
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return running },
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	var loops sync.WaitGroup
	loops.Go(func() { s.timeline.run(running) })
	served := make(chan error, 1)
	loops.Go(func() { served <- server.Serve(listener) })
	var err error
	select {
	case <-ctx.Done():
	case err = <-served:
	}
	stop()
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), 500*time.Millisecond)
	if server.Shutdown(bound) != nil {
		_ = server.Close()
	}
	cancel()
	loops.Wait()
	s.calls.Wait()
	s.client.CloseIdleConnections()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, s.Close())
}

// Close closes the journal of a server that does not run.
func (s *Server) Close() error { return s.journal.close() }

// Handler is the provider's API.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{profile}/v1/jobs", s.guarded(s.create))
	mux.HandleFunc("GET /{profile}/v1/jobs", s.guarded(s.lookup))
	mux.HandleFunc("GET /{profile}/v1/jobs/{id}", s.guarded(s.read))
	mux.HandleFunc("POST /{profile}/v1/jobs/{id}/cancel", s.guarded(s.cancel))
	return mux
}

func (s *Server) guarded(next func(http.ResponseWriter, *http.Request, Profile)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.asked()
		p, ok := s.profiles[r.PathValue("profile")]
		if !ok {
			refuse(w, http.StatusNotFound, "unknown_provider", "no such provider")
			return
		}
		given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if s.cfg.APIKey != "" && subtle.ConstantTimeCompare([]byte(given), []byte(s.cfg.APIKey)) != 1 {
			refuse(w, http.StatusUnauthorized, "unauthorized", "the key is not valid")
			return
		}
		next(w, r, p)
	}
}

// replay takes up one entry of the journal.
func (s *Server) replay(e Entry) {
	switch e.Type {
	case EntrySubmit:
		if e.Fate == nil {
			return
		}
		j := &job{Entry: e, fate: *e.Fate, ends: e.At.Add(e.Fate.Duration)}
		j.Fate = nil
		s.jobs[j.Job] = j
		if e.Key != "" {
			s.byKey[jobKey{e.Profile, e.Account, e.Key}] = j
		}
	case EntryCancel:
		if j := s.jobs[e.Job]; j != nil {
			j.fate.End, j.ends = endCanceled, e.At
		}
	case EntryCalled:
		if j := s.jobs[e.Job]; j != nil {
			j.called = true
		}
	}
}

// resume plans what is still to come of replayed jobs, and forgets those whose records have expired.
func (s *Server) resume() {
	now, kept := s.now(), 0
	for id, j := range s.jobs {
		if now.Sub(j.ends) > s.recordTTL() {
			s.forget(id)
			continue
		}
		kept++
		if j.ends.After(now) {
			s.occupy(j)
		}
		s.planEnd(j, !j.ends.After(now))
	}
	s.log.Info("simulated provider took up its jobs", "count", kept)
}

// occupy and vacate count a job in its pool; the mutex is the caller's, but at start.
func (s *Server) occupy(j *job) {
	in := s.active[j.pool()]
	if in == nil {
		in = map[*job]struct{}{}
		s.active[j.pool()] = in
	}
	in[j] = struct{}{}
}

func (s *Server) vacate(j *job) { delete(s.active[j.pool()], j) }

func (s *Server) recordTTL() time.Duration {
	return time.Duration(s.cfg.RecordHours * float64(time.Hour))
}

func (s *Server) forget(id string) {
	if j := s.jobs[id]; j != nil {
		delete(s.jobs, id)
		if key := (jobKey{j.Profile, j.Account, j.Key}); s.byKey[key] == j {
			delete(s.byKey, key)
		}
	}
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":{"code":%q,"message":%q}}`+"\n", code, message)
}
