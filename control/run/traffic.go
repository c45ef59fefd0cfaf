package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"fairlane/control/run/demo"
)

const (
	trafficWorkers = 8
	trafficQueue   = 64
	cancelsWaiting = 1000
)

// traffic submits the demo's requests over the API, as the tenants' services would, until ctx ends. It
// goes on where an earlier life of the demo stopped.
func (d *demoRun) traffic(ctx context.Context, a *app) error {
	offset := d.offset()
	source := d.platform.Traffic(demoSeed^uint64(offset), offset)
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: trafficWorkers}}
	defer client.CloseIdleConnections()
	sender := &sender{base: a.settings.PublicURL, client: client, tokens: d.tokens, platform: d.platform, room: make(chan struct{}, cancelsWaiting)}
	requests := make(chan demo.Request, trafficQueue)
	var workers sync.WaitGroup
	defer sender.cancels.Wait() // last: the workers add to it
	defer workers.Wait()
	defer close(requests)
	for range trafficWorkers {
		workers.Go(func() {
			for r := range requests {
				if err := sender.submit(ctx, r); err != nil && ctx.Err() == nil {
					a.log.Debug("demo request failed", "error", err)
				}
			}
		})
	}
	began := time.Now()
	kept := began
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		r := source.Next()
		timer.Reset(r.At - time.Since(began))
		select {
		case <-ctx.Done():
			return d.keepOffset(offset, time.Since(began))
		case <-timer.C:
		}
		select {
		case requests <- r:
		default: // the platform does not keep up; a real client would have given up, too
		}
		if now := time.Now(); now.Sub(kept) > 5*time.Second {
			kept = now
			if err := d.keepOffset(offset, now.Sub(began)); err != nil {
				a.log.Warn("place in the demo's trace not kept", "error", err)
			}
		}
	}
}

func (d *demoRun) offsetFile() string { return filepath.Join(d.cmd.DataDir, "demo-offset") }

// offset is the place in the trace at which the last life stopped, in the trace's own time.
func (d *demoRun) offset() time.Duration {
	text, err := os.ReadFile(d.offsetFile())
	if err != nil {
		return 0
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || seconds < 0 {
		return 0
	}
	return (time.Duration(seconds) * time.Second) % demo.TraceLength
}

func (d *demoRun) keepOffset(from, ran time.Duration) error {
	at := from + time.Duration(float64(ran)*d.platform.Speed)
	return os.WriteFile(d.offsetFile(), []byte(strconv.FormatInt(int64(at/time.Second), 10)+"\n"), 0o600)
}

// sender speaks for the tenants' services.
type sender struct {
	base     string
	client   *http.Client
	tokens   []string
	platform *demo.Platform
	cancels  sync.WaitGroup
	room     chan struct{} // bounds the users who are about to give up
}

func (s *sender) submit(ctx context.Context, r demo.Request) error {
	body, err := json.Marshal(map[string]any{"model": r.Model, "prompt": "A paper boat crosses a rainy street at dusk."})
	if err != nil {
		return err
	}
	var accepted struct {
		TaskID uuid.UUID `json:"task_id"`
	}
	if err := s.call(ctx, r, "/v1/tasks", body, &accepted); err != nil {
		return err
	}
	if r.CancelAfter <= 0 {
		return nil
	}
	select {
	case s.room <- struct{}{}:
	default:
		return nil
	}
	s.cancels.Go(func() {
		defer func() { <-s.room }()
		timer := time.NewTimer(r.CancelAfter)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
			_ = s.call(ctx, r, "/v1/tasks/"+accepted.TaskID.String()+"/cancel", nil, nil) // the task may have ended
		}
	})
	return nil
}

func (s *sender) call(ctx context.Context, r demo.Request, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.tokens[r.Tenant])
	req.Header.Set("X-Fairlane-User", s.platform.Tenants[r.Tenant].Users[r.User].ExternalID)
	req.Header.Set("Idempotency-Key", uuid.NewString())
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	switch {
	case err != nil:
		return err
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable:
		return errors.New("refused for now: " + strconv.Itoa(res.StatusCode))
	case res.StatusCode >= 300:
		return fmt.Errorf("%s: %d %s", path, res.StatusCode, answer)
	case into == nil:
		return nil
	}
	return json.Unmarshal(answer, into)
}
