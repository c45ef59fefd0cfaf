package schedule

import (
	"context"
	"fmt"
	"time"

	"fairlane/control/crashpoint"
	"fairlane/control/plan"
)

// cycle reads the counters, plans a batch, claims it, and tells the planner what came of it. An error
// of the claim leaves open what was committed, so that the term must end.
func (t *turn) cycle(ctx context.Context) (plan.Plan, error) {
	needs := t.planner.Needs(t.cfg.Now().Add(t.ahead))
	snapshot, err := t.store.Snapshot(ctx, t.cfg.Group, needs.Tenants, needs.Users)
	if err != nil {
		return plan.Plan{}, fmt.Errorf("snapshot: %w", err)
	}
	t.ahead = snapshot.At.Sub(t.cfg.Now())
	p := t.planner.Cycle(snapshot.At, snapshot, t.cfg.Batch)
	if len(p.Starts) == 0 {
		t.planner.Settle()
		return p, nil
	}
	crashpoint.Hit("schedule.planned")
	began := t.cfg.Now()
	answers, err := t.store.Claim(ctx, t.claim(p.Starts))
	if err != nil {
		return plan.Plan{}, fmt.Errorf("claim: %w", err)
	}
	crashpoint.Hit("schedule.claimed")
	granted, refused := 0, map[string]int{}
	for _, a := range answers {
		if a.Refused == "" {
			t.planner.Confirm(a.TaskID)
			granted++
			continue
		}
		t.planner.Refuse(a.TaskID, plan.Gate(a.Refused), a.Pool)
		refused[string(a.Refused)]++
	}
	t.planner.Settle()
	for i, a := range answers {
		if a.Refused == "" { // the claim has raised the row's version by one
			t.index.Remove(a.TaskID, p.Starts[i].TaskVersion+1)
		}
	}
	if t.cfg.Observer != nil {
		t.cfg.Observer.Claimed(t.cfg.Now().Sub(began), granted, refused)
	}
	if granted == 0 {
		p.More = false // whatever refused them must change first
	}
	return p, nil
}

// claim gives each start what its attempt needs beside it.
func (t *turn) claim(starts []plan.Start) Claim {
	doc := t.version.Document
	c := Claim{PoolGroup: t.cfg.Group, PolicyVersion: t.version.Number, Starts: make([]ClaimStart, len(starts))}
	for i, s := range starts {
		c.Starts[i] = ClaimStart{Start: s, AttemptTimeout: time.Duration(doc.Limits.AttemptTimeoutFloor) * time.Second}
		if pool, ok := doc.Pool(s.Pool); ok {
			c.Starts[i].Provider, c.Starts[i].ProviderAccount = pool.Provider, pool.Account
		}
		if item, err := t.index.ByID(s.TaskID); err == nil {
			long := time.Duration(doc.Limits.AttemptTimeoutP95 * float64(item.P95))
			c.Starts[i].AttemptTimeout = max(c.Starts[i].AttemptTimeout, long)
		}
	}
	return c
}
