package simulated

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"fairlane/control/provider"
)

// Adapter speaks to one profile of a server.
type Adapter struct {
	base   string
	can    provider.Capabilities
	client *provider.Client
	header http.Header
	keys   [][]byte
}

// NewAdapter makes the adapter of a profile of the server at base ("http://127.0.0.1:4711"). The client
// must be allowed to dial loopback; it stays the caller's to close.
func NewAdapter(base string, cfg Config, p Profile, client *provider.Client) (*Adapter, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("simulated provider: %q is no address", base)
	}
	a := &Adapter{
		base: strings.TrimSuffix(base, "/") + "/" + url.PathEscape(p.Code) + "/v1/jobs",
		can:  cfg.Capabilities(p), client: client, header: http.Header{"Content-Type": {"application/json"}},
	}
	if cfg.APIKey != "" {
		a.header.Set("Authorization", "Bearer "+cfg.APIKey)
	}
	if p.Signed {
		key, err := provider.WebhookSecret(cfg.WebhookSecret)
		if err != nil {
			return nil, err
		}
		a.keys = [][]byte{key}
	}
	return a, nil
}

type answerBody struct {
	jobView
	Jobs []jobView `json:"jobs"`
}

// Submit creates a job.
func (a *Adapter) Submit(ctx context.Context, s provider.Submission) provider.Answer {
	input := s.Parameters
	if len(input) == 0 {
		input = json.RawMessage(`{}`)
	}
	body, err := json.Marshal(createRequest{
		Key: s.Key, Attempt: s.AttemptID.String(), Account: s.Account, Model: s.Model, Callback: s.CallbackURL, Input: input,
	})
	if err != nil {
		return provider.Answer{Outcome: provider.SurelyNot, Class: provider.ClassInvalid, Message: provider.Clean(err.Error(), 300)}
	}
	header := a.header
	if s.Trace != "" {
		header = header.Clone()
		header.Set("Traceparent", s.Trace)
	}
	sent := a.client.Submit(ctx, a.base, header, body)
	return provider.Classify(a.can, sent, parseCreate)
}

func parseCreate(_ int, body []byte) (provider.Parsed, error) {
	var v jobView
	if err := json.Unmarshal(body, &v); err != nil {
		return provider.Parsed{}, err
	}
	p := provider.Parsed{JobID: v.ID}
	if v.Error != nil {
		p.Code, p.Message = v.Error.Code, v.Error.Message
		if v.Error.Code == "content_refused" {
			p.Class = provider.ClassRefused
		}
	}
	return p, nil
}

// Status reads a job.
func (a *Adapter) Status(ctx context.Context, job provider.Job) (provider.Status, error) {
	var v answerBody
	status, raw, err := a.do(ctx, http.MethodGet, a.base+"/"+url.PathEscape(job.ID), &v)
	switch {
	case err != nil:
		return provider.Status{}, err
	case status == http.StatusNotFound:
		return provider.Status{State: provider.JobAbsent, Progress: -1, CostMicro: -1}, nil
	}
	return toStatus(v.jobView, raw)
}

// Lookup finds a job by our key.
func (a *Adapter) Lookup(ctx context.Context, job provider.Job) (provider.Status, error) {
	if !a.can.LookupByClientID {
		return provider.Status{}, provider.ErrCannot
	}
	var v answerBody
	query := url.Values{"client_key": {job.Key}, "account": {job.Account}}
	status, raw, err := a.do(ctx, http.MethodGet, a.base+"?"+query.Encode(), &v)
	switch {
	case err != nil:
		return provider.Status{}, err
	case status == http.StatusNotFound || v.Jobs == nil: // not the answer of a look-up: it says nothing
		return provider.Status{}, fmt.Errorf("look-up was answered with %d and no list", status)
	case len(v.Jobs) == 0:
		return provider.Status{State: provider.JobAbsent, Progress: -1, CostMicro: -1}, nil
	case v.Jobs[0].Key != job.Key:
		return provider.Status{}, fmt.Errorf("look-up answered with another key")
	}
	return toStatus(v.Jobs[0], raw)
}

// Cancel asks for the end of a job.
func (a *Adapter) Cancel(ctx context.Context, job provider.Job) error {
	if a.can.Cancel == provider.CancelNone {
		return provider.ErrCannot
	}
	sent, err := a.client.Do(ctx, http.MethodPost, a.base+"/"+url.PathEscape(job.ID)+"/cancel", a.header)
	switch {
	case err != nil:
		return err
	case sent.Status/100 == 2, sent.Status == http.StatusConflict, sent.Status == http.StatusNotFound:
		return nil // done, or too late: what became of the job is read, not concluded
	case sent.Status == http.StatusNotImplemented:
		return provider.ErrCannot
	}
	return fmt.Errorf("cancel was answered with %d", sent.Status)
}

// ParseCallback checks the signature of a profile that signs, and reads the event.
func (a *Adapter) ParseCallback(r provider.CallbackRequest) (provider.Callback, error) {
	if a.keys != nil {
		if err := provider.VerifyWebhook(r.Header, a.keys, r.At, r.Body); err != nil {
			return provider.Callback{}, err
		}
	}
	var e event
	if err := json.Unmarshal(r.Body, &e); err != nil {
		return provider.Callback{}, fmt.Errorf("event: %w", err)
	}
	if e.Job.ID == "" {
		return provider.Callback{}, fmt.Errorf("event: job.id is missing")
	}
	st, err := toStatus(e.Job, "")
	return provider.Callback{Signed: a.keys != nil, Status: st}, err
}

func (a *Adapter) do(ctx context.Context, method, address string, into *answerBody) (status int, raw string, err error) {
	sent, err := a.client.Do(ctx, method, address, a.header)
	if err != nil {
		return 0, "", err
	}
	if sent.Status == http.StatusNotFound {
		return sent.Status, sent.Raw, nil
	}
	if sent.Status != http.StatusOK {
		return sent.Status, sent.Raw, fmt.Errorf("answered with %d", sent.Status)
	}
	if err := json.Unmarshal(sent.Body, into); err != nil {
		return sent.Status, sent.Raw, fmt.Errorf("the answer cannot be read: %w", err)
	}
	return sent.Status, sent.Raw, nil
}

func toStatus(v jobView, raw string) (provider.Status, error) {
	st := provider.Status{JobID: v.ID, Key: v.Key, Progress: v.Progress, Result: v.Result, Seconds: v.Seconds, CostMicro: -1, Raw: raw}
	if v.Error != nil {
		st.Code, st.Message = v.Error.Code, v.Error.Message
	}
	switch v.Status {
	case "queued":
		st.State = provider.JobQueued
	case "running":
		st.State = provider.JobRunning
	case endSucceeded:
		st.State, st.CostMicro = provider.JobSucceeded, v.Cost
	case endFailed:
		st.State, st.CostMicro, st.Class, st.Retry = provider.JobFailed, v.Cost, provider.ClassInternal, true
		if st.Code == "content_refused" {
			st.Class, st.Retry = provider.ClassRefused, false
		}
	case endCanceled:
		st.State, st.CostMicro = provider.JobCanceled, v.Cost
	default:
		return provider.Status{}, fmt.Errorf("status %q is not known", provider.Clean(v.Status, 40))
	}
	return st, nil
}
