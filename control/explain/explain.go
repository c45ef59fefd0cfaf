package explain

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/queue"
	"fairlane/policy"
)

// Answer is why a task waits.
type Answer struct {
	plan.Explanation
	TaskID, TenantID uuid.UUID
	Tenant           string // code
	Lane, Group      string
	PlaceFrom        int64 // its place in the order of starts, at best
	PlaceTo          int64 // and at worst, while nothing more comes; of one that is behind others of its tenant too
}

// Service explains. It may be used by many goroutines.
type Service struct {
	store    Store
	policies Policies
	tenants  Tenants
	now      func() time.Time
	busy     chan struct{} // holds one for each explanation in the making

	mu       sync.Mutex
	compiled *plan.Policy
	version  *policy.Version
	at       time.Time
}

// atOnce is how many explanations are made at a time: each reads thousands of rows over the connections of
// those who submit, and a tenant may ask as often as it likes.
const atOnce = 4

// New explains from what these say. now is time.Now when it is nil.
func New(store Store, policies Policies, tenants Tenants, now func() time.Time) *Service {
	if now == nil {
		now = time.Now
	}
	return &Service{store: store, policies: policies, tenants: tenants, now: now, busy: make(chan struct{}, atOnce)}
}

// Explain says why a task waits. control.CodeNotFound: it does not wait, or no policy is in force yet;
// control.CodeUnavailable: others asked for too much.
func (s *Service) Explain(ctx context.Context, task uuid.UUID) (Answer, error) {
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-ctx.Done():
		return Answer{}, control.Errorf(control.CodeUnavailable, "too many explanations are asked for at once")
	}
	f, err := s.store.Waits(ctx, task)
	if err != nil {
		return Answer{}, err
	}
	compiled, err := s.policy(ctx)
	if err != nil {
		return Answer{}, err
	}
	index := queue.NewMemory()
	for i := range f.Waiting {
		if err := index.Upsert(f.Waiting[i]); err != nil && f.Waiting[i].TaskID == task {
			return Answer{}, err
		}
	}
	planner := plan.NewPlanner(f.Item.Group, compiled.With(plan.Tenant(f.Tenant)), index)
	needs := planner.Needs(s.now())
	snapshot, err := s.store.Snapshot(ctx, f.Item.Group, needs.Tenants, needs.Users)
	if err != nil {
		return Answer{}, err
	}
	planner.Cycle(snapshot.At, snapshot, 0)
	planner.Suppose(f.Status)
	it := &f.Item
	x := planner.Explain(plan.Waiting{
		TaskID: it.TaskID, TenantID: it.TenantID, UserID: it.UserID, Lane: it.Lane, CostMilli: it.CostMilli, EligibleAt: it.EligibleAt, Need: it.Need(),
	})
	from, to := place(&f, &x)
	return Answer{
		Explanation: x, TaskID: it.TaskID, TenantID: it.TenantID, Tenant: f.Tenant.Code, Lane: it.Lane, Group: it.Group, PlaceFrom: from, PlaceTo: to,
	}, nil
}

// compiledFor is how long a compiled list of tenants is used, whatever changes in it.
const compiledFor = 5 * time.Second

// policy compiles the version in force, with all tenants, since their weights are the scale of a ring.
func (s *Service) policy(ctx context.Context) (*plan.Policy, error) {
	v := s.policies.Current()
	if v == nil {
		return nil, control.Errorf(control.CodeNotFound, "no policy is in force yet")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.version == v && now.Sub(s.at) < compiledFor {
		return s.compiled, nil
	}
	list, err := s.tenants.PlanList(ctx)
	if err != nil {
		return nil, err
	}
	compiled, err := plan.Compile(v.Document, v.Number, plan.Tenants(list))
	if err != nil {
		return nil, err
	}
	s.compiled, s.version, s.at = compiled, v, now
	return compiled, nil
}

// place is the range of the task's place in its lane. At best only the tasks of its tenant that come
// before it go first. At worst each other tenant gets, while this one is served the cost of what is ahead
// and of the task, what the bound of fairness lets it have, but no more than waits:
//
//	S_j ≤ w_j × (S_i ÷ w_i + quantum + c ÷ w_i) + c, with weights relative to the lane's largest
func place(f *Facts, x *plan.Explanation) (from, to int64) {
	from = f.Ahead + 1
	most := max(f.Lane.Tasks, from)
	quantum, cost := x.Number("quantum"), f.Item.CostMilli
	if quantum <= 0 || f.Lane.Tasks == 0 {
		return from, most
	}
	mean := float64(f.Lane.Milli) / float64(f.Lane.Tasks)
	if mean <= 0 {
		return from, most
	}
	c := max(float64(cost), mean) // stands for the largest cost of the lane, which is not read
	base := x.Base
	weight := float64(quantum) / float64(base) // of this tenant, of the lane's largest
	own := mean*float64(f.Ahead) + float64(cost)
	each := own/weight + float64(base) + c/weight + c
	worst := float64(from) + math.Ceil(float64(f.Lane.Others)*each/mean)
	if worst < float64(most) {
		return from, max(from, int64(worst))
	}
	return from, most
}
