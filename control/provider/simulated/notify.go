package simulated

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"fairlane/control/provider"
)

// tries is how often a callback is sent until it is taken: at once, and after 1, 5 and 25 s.
const tries = 4

type event struct {
	Type string  `json:"type"`
	Job  jobView `json:"job"`
}

// planCallback plans what is told of the end of a job, as its fate has it.
func (s *Server) planCallback(j *job) {
	if j.Callback == "" || j.fate.Callback == callbackLost {
		return
	}
	at := s.now()
	if j.fate.Callback == callbackLate {
		at = at.Add(s.cfg.scaled(90))
	}
	s.timeline.at(at, func() { s.send(j, 1) })
	if j.fate.Callback == callbackTwice {
		s.timeline.at(at.Add(s.cfg.scaled(5)), func() { s.send(j, tries) })
		s.timeline.at(at.Add(s.cfg.scaled(10)), func() {
			s.background(func(ctx context.Context) { // one that comes in the wrong order
				stale := s.view(j)
				stale.Status, stale.Progress, stale.Result, stale.Error, stale.Cost, stale.Seconds = "running", 0.5, nil, nil, 0, 0
				_ = s.call(ctx, j, "job.running", stale)
			})
		})
	}
}

func (s *Server) send(j *job, try int) {
	sent := s.background(func(ctx context.Context) {
		v := s.view(j)
		if err := s.call(ctx, j, "job."+v.Status, v); err != nil {
			if try < tries {
				pause := []float64{1, 5, 25}[try-1]
				s.timeline.at(s.now().Add(s.cfg.scaled(pause)), func() { s.send(j, try+1) })
			}
			s.log.Debug("callback not taken", "job", j.Job, "try", try, "error", err)
			return
		}
		s.mu.Lock()
		first := !j.called
		j.called = true
		s.mu.Unlock()
		if first {
			_ = s.journal.queue(Entry{Type: EntryCalled, At: s.now(), Job: j.Job}, nil)
		}
	})
	if !sent { // as many as may be are under way
		s.timeline.at(s.now().Add(50*time.Millisecond), func() { s.send(j, try) })
	}
}

// background does something beside the timeline, if there is room.
func (s *Server) background(do func(ctx context.Context)) bool {
	s.mu.Lock()
	ctx := s.ctx
	s.mu.Unlock()
	select {
	case s.calling <- struct{}{}:
	default:
		return false
	}
	s.calls.Go(func() {
		defer func() { <-s.calling }()
		do(ctx)
	})
	return true
}

func (s *Server) call(ctx context.Context, j *job, kind string, v jobView) error {
	if j.Callback == "" {
		return nil
	}
	body, err := json.Marshal(event{kind, v})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, j.Callback, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if s.profiles[j.Profile].Signed {
		provider.SignWebhook(req.Header, s.secret, j.Job+"/"+kind, s.now(), body)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("answered with %d", resp.StatusCode)
	}
	return nil
}

func webhookKey(secret string) ([]byte, error) { return provider.WebhookSecret(secret) }
