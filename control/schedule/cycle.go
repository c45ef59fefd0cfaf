package schedule

import (
	"context"
	"fmt"
	"time"

	"fairlane/control/crashpoint"
	"fairlane/control/plan"
	"fairlane/control/queue"
)

// cycle reads the counters, plans a batch, claims it, and tells the planner what came of it; refused are
// the starts whose tasks are no longer as the index has them. An error of the claim leaves open what was
// committed, so that the term must end.
func (t *turn) cycle(ctx context.Context) (p plan.Plan, refusedTasks []plan.Start, err error) {
	needs := t.planner.Needs(t.cfg.Now().Add(t.ahead))
	snapshot, err := t.store.Snapshot(ctx, t.cfg.Group, needs.Tenants, needs.Users)
	if err != nil {
		return plan.Plan{}, nil, fmt.Errorf("snapshot: %w", err)
	}
	t.ahead = snapshot.At.Sub(t.cfg.Now())
	p = t.planner.Cycle(snapshot.At, snapshot, t.batch())
	if len(p.Starts)+len(p.Relabels)+len(p.Lending)+len(p.Repaid) == 0 {
		t.planner.Settle()
		return p, nil, nil
	}
	crashpoint.Hit("schedule.planned")
	began := t.cfg.Now()
	answers, err := t.store.Claim(ctx, t.claim(&p))
	if err != nil {
		return plan.Plan{}, nil, fmt.Errorf("claim: %w", err)
	}
	crashpoint.Hit("schedule.claimed")
	granted, refused := 0, map[string]int{}
	for i, a := range answers {
		if a.Refused == "" {
			t.planner.Confirm(a.TaskID)
			granted++
			continue
		}
		t.planner.Refuse(a.TaskID, plan.Gate(a.Refused), a.Pool)
		refused[string(a.Refused)]++
		if a.Refused == RefusedTask {
			refusedTasks = append(refusedTasks, p.Starts[i])
		}
	}
	t.planner.Settle()
	if err := t.feed.apply(nil, claimed(p.Starts, answers)); err != nil {
		return plan.Plan{}, nil, err
	}
	if t.cfg.Observer != nil {
		t.cfg.Observer.Claimed(t.cfg.Now().Sub(began), granted, refused)
	}
	if granted == 0 {
		p.More = false // whatever refused them must change first
	}
	return p, refusedTasks, nil
}

// claimed are the tasks that wait no longer; the claim has raised the versions of their rows by one.
func claimed(starts []plan.Start, answers []Claimed) []queue.Gone {
	out := make([]queue.Gone, 0, len(starts))
	for i, a := range answers {
		if s := &starts[i]; a.Refused == "" {
			out = append(out, queue.Gone{TaskID: s.TaskID, Version: s.TaskVersion + 1, Lane: s.Lane, TenantID: s.TenantID})
		}
	}
	return out
}

// claim gives each start what its attempt needs beside it.
func (t *turn) claim(p *plan.Plan) Claim {
	doc := t.version.Document
	c := Claim{PoolGroup: t.cfg.Group, PolicyVersion: t.version.Number, Starts: make([]ClaimStart, len(p.Starts)),
		Relabels: p.Relabels, Lending: p.Lending, Repaid: p.Repaid}
	for i, s := range p.Starts {
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
