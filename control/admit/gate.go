package admit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/estimate"
)

// Config is what a gate is made of.
type Config struct {
	Policies   Policies
	Store      Store
	Loads      Loads
	Estimates  Estimates                 // default the priors alone
	Now        func() time.Time          // default time.Now
	NewID      func() (uuid.UUID, error) // default uuid.NewV7
	OnDecision func(Decision)            // for metrics; default none
}

// Gate decides on requests. It is safe for concurrent use and starts no goroutine.
type Gate struct {
	cfg   Config
	rates *rates
	view  atomic.Pointer[view]
}

// NewGate makes a gate.
func NewGate(cfg Config) *Gate {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = uuid.NewV7
	}
	if cfg.Estimates == nil {
		cfg.Estimates = priorsAlone{}
	}
	if cfg.OnDecision == nil {
		cfg.OnDecision = func(Decision) {}
	}
	return &Gate{cfg: cfg, rates: newRates(maxBuckets)}
}

// Submit answers one request. Errors: *Refusal for a decision against it; *control.Error with INVALID
// (fields named), FORBIDDEN, KEY_REUSED, KEY_BUSY or UNAVAILABLE; anything else is internal. A refusal
// leaves nothing behind.
func (g *Gate) Submit(ctx context.Context, who Principal, r Request, key string) (Answer, error) {
	a, err := g.submit(ctx, who, r, key)
	var no *Refusal
	switch {
	case err == nil && !a.Replayed:
		g.cfg.OnDecision(a.Decision)
	case errors.As(err, &no):
		g.cfg.OnDecision(no.Decision)
	}
	return a, err
}

// submit asks the gate's questions in their fixed order, the cheap ones first.
func (g *Gate) submit(ctx context.Context, who Principal, r Request, key string) (Answer, error) {
	// 1. The stored answer of the key.
	if err := checkKey(key); err != nil {
		return Answer{}, err
	}
	stored, err := g.cfg.Store.StoredAnswer(ctx, who.TenantID, key)
	if err == nil {
		return replay(stored, r.hash())
	}
	if control.CodeOf(err) != control.CodeNotFound {
		return Answer{}, err
	}
	// 2. Schema, against the catalogue of the policy in force.
	v, err := g.inForce()
	if err != nil {
		return Answer{}, err
	}
	hash := r.hash() // before defaults are filled in: they may change, the body does not
	model, err := v.check(&r)
	if err != nil {
		return Answer{}, err
	}
	settings, err := v.settings(who)
	if err != nil {
		return Answer{}, err
	}
	// 3. Rates.
	now := g.cfg.Now()
	if no := g.rates.take(now, who.TenantID, r.User, settings); no != nil {
		return Answer{}, no
	}
	// 4. Status of tenant and user.
	if who.Suspended {
		return Answer{}, TenantIsSuspended()
	}
	standing, err := g.cfg.Store.Standing(ctx, who.TenantID, r.User)
	if err != nil {
		return Answer{}, err
	}
	if standing.Blocked {
		return Answer{}, UserIsBlocked()
	}
	// 5. Switches and lane.
	lane, err := v.lane(model, settings)
	if err != nil {
		return Answer{}, err
	}
	// 6. Estimate and entitlement.
	est, err := g.cfg.Estimates.Book().Of(model, v.doc.Scheduling, estimate.Ask{
		Resolution: r.Resolution, Seconds: r.Seconds, Provider: v.places[model.Code].provider, Factor: standing.Factor,
	})
	if err != nil {
		return Answer{}, control.Errorf(control.CodeInvalid, "this request cannot be estimated: %s", err)
	}
	group, err := v.entitled(who, model, lane, settings, est, now)
	if err != nil {
		return Answer{}, err
	}
	// 7. Queues of lane and platform, expected wait.
	load, err := g.cfg.Loads.Load(ctx)
	if err != nil {
		return Answer{}, err
	}
	crowded := v.crowded(load, lane, est.FairnessMilli)
	if crowded != nil && load.tenantTasks(who.TenantID) >= v.doc.Limits.GuaranteedQueue {
		return Answer{}, crowded
	}
	deadline := tightest(r.DeadlineSeconds, lane.MaxWaitSeconds)
	w := v.wait(load, who.TenantID, settings.Weight, lane, group, est)
	if no := w.tooLong(tightest(deadline, settings.MaxWaitSeconds)); no != nil {
		return Answer{}, no
	}
	// 8. One transaction, in which the caps of tenant and user are exact.
	id, err := g.cfg.NewID()
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{
		TaskID: id, Decision: Accepted, State: control.TaskQueued, Lane: lane.Code, PolicyVersion: v.version,
		FairnessMilli: est.FairnessMilli, SlotUnits: est.SlotUnits, PriceMicro: est.PriceMicro,
		ExpectedSeconds: est.MeanSeconds, QueuedAt: now.UTC(),
	}
	w.tell(&answer, lane)
	text, err := json.Marshal(answer)
	if err != nil {
		return Answer{}, err
	}
	parameters, err := r.parameters()
	if err != nil {
		return Answer{}, err
	}
	done, err := g.cfg.Store.InsertTasks(ctx, []NewTask{{
		TaskID: id, TenantID: who.TenantID, User: r.User, Project: r.Project,
		Key: key, RequestHash: hash, Answer: text,
		Kind: control.Kind(model.Kind), Lane: lane.Code, Group: group,
		Band: control.Band(min(max(settings.Band, 1), 4)), ResourceClass: model.ResourceClass,
		Model: model.Code, Route: Route(model.Code, r.Resolution),
		SlotUnits: est.SlotUnits, FairnessMilli: est.FairnessMilli, BaseMilli: est.BaseMilli, CostMicro: est.CostMicro, PriceMicro: est.PriceMicro,
		MeanSeconds: est.MeanSeconds, P95Seconds: est.P95Seconds, GPUSeconds: est.GPUSeconds, Bases: estimate.BasesOf(v.doc.Scheduling),
		DeadlineSeconds: deadline,
		MaxAttempts:     min(max(lane.MaxAttempts, 1), 20), PolicyVersion: v.version, EstimateVersion: est.Version,
		Parameters: parameters, TraceParent: r.TraceParent, Actor: "token:" + who.TokenName,
		Crowded: crowded, Guaranteed: v.doc.Limits.GuaranteedQueue,
	}})
	switch {
	case err != nil:
		return Answer{}, err
	case done[0].Err != nil:
		return Answer{}, done[0].Err
	case done[0].Stored != nil:
		return replay(*done[0].Stored, hash)
	}
	return answer, nil
}

// Route names what a task requires of a pool: two tasks of one route have the same candidates.
func Route(model, resolution string) string { return model + "|" + resolution }

// UserIsBlocked is the refusal of a blocked user.
func UserIsBlocked() error {
	return control.Errorf(control.CodeForbidden, "this user is blocked: nothing new is accepted")
}

// TenantIsSuspended is the refusal of a suspended tenant.
func TenantIsSuspended() error {
	return control.Errorf(control.CodeForbidden, "this tenant is suspended: nothing new is accepted, what runs goes on")
}

// TooManyUsers is the refusal of a user that would be one more than a tenant may have.
func TooManyUsers() error {
	return control.Errorf(control.CodeForbidden, "this user is new, and the tenant has %d already, the most there may be", MaxUsersPerTenant)
}

// priorsAlone are the estimates of a platform that learns nothing.
type priorsAlone struct{}

func (priorsAlone) Book() *estimate.Book { return nil }

func replay(s StoredAnswer, hash []byte) (Answer, error) {
	if !bytes.Equal(s.RequestHash, hash) {
		return Answer{}, control.Errorf(control.CodeIdemConflict, "this Idempotency-Key was used with another body; keys are kept for %d days", int(KeyLifetime.Hours())/24)
	}
	var a Answer
	if err := json.Unmarshal(s.Answer, &a); err != nil {
		return Answer{}, err
	}
	a.Replayed = true
	return a, nil
}

// parameters is what the provider is to be told, as the task keeps it.
func (r Request) parameters() (json.RawMessage, error) {
	return json.Marshal(struct {
		Prompt         string `json:"prompt"`
		NegativePrompt string `json:"negative_prompt,omitempty"`
		Resolution     string `json:"resolution,omitempty"`
		Seconds        int64  `json:"duration_seconds,omitempty"`
		Seed           *int64 `json:"seed,omitempty"`
	}{r.Prompt, r.NegativePrompt, r.Resolution, r.Seconds, r.Seed})
}

func (g *Gate) inForce() (*view, error) {
	version := g.cfg.Policies.Current()
	if version == nil {
		return nil, control.Errorf(control.CodeUnavailable, "no policy is in force yet")
	}
	v := g.view.Load()
	if v == nil || v.version != version.Number {
		v = newView(version)
		g.view.Store(v)
	}
	return v, nil
}
