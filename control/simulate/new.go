package simulate

import (
	"fairlane/control/admit"
	"fairlane/control/estimate"
	"fairlane/control/plan"

	"github.com/google/uuid"
)

func newWorld(cfg Config) (*world, error) {
	doc := cfg.Document
	w := &world{
		cfg: cfg, doc: doc, arrival: cfg.Trace.seeded(cfg.Seed),
		lanes: map[string]*lane{}, accounts: map[plan.LaneGroup]*account{}, pools: map[string]*pool{},
		waiting: map[uuid.UUID]*task{}, onLoan: map[uuid.UUID]*task{},
		history: estimate.NewModel(estimate.Priors(doc)), told: map[estimate.Key]estimate.History{},
		load: &admit.Load{Lanes: map[string]*admit.LaneLoad{}},
		count: counters{
			lanes: map[plan.LaneGroup]plan.LaneUse{}, common: map[string]int64{}, pools: map[string]plan.PoolUse{},
			tenants: map[uuid.UUID]plan.TenantUse{}, inLane: map[plan.TenantLane]plan.Use{},
			users: map[plan.TenantUser]plan.UserUse{}, debts: map[plan.TenantLane]int64{},
		},
		result: tally{reasons: map[string]int{}},
	}
	w.horizon = w.arrival[len(w.arrival)-1].At
	if err := w.people(); err != nil {
		return nil, err
	}
	w.places()
	w.gate = w.newGate()
	var err error
	switch cfg.Mode {
	case FIFO, RoundRobin:
		w.decider = newBaseline(w)
	default:
		w.decider, err = newPlanned(w)
	}
	return w, err
}

func (w *world) people() error {
	accounts, err := Tenants(w.cfg.Trace, w.doc, w.cfg.Plans)
	if err != nil {
		return err
	}
	for i, a := range accounts {
		t := &tenant{index: int32(i), account: a} //nolint:gosec // at most MaxTenants and the document's
		t.settings, _ = w.doc.Effective(a.PlanCode, a.ID)
		w.tenants = append(w.tenants, t)
	}
	for i, u := range w.cfg.Trace.Users {
		w.users = append(w.users, &user{id: numbered(idUser, uint64(i)+1), name: u.Name, tenant: w.tenants[u.Tenant]}) //nolint:gosec // not negative
	}
	for _, m := range w.cfg.Trace.Models {
		rule, ok := w.doc.Model(m.Code)
		if !ok {
			return &LineError{m.Line, "model", "not in the policy"}
		}
		key := estimate.Key{Model: m.Code}
		if len(rule.Resolutions) > 0 {
			key.Resolution = rule.Resolutions[0]
		}
		if len(rule.Seconds) > 0 {
			key.Seconds = rule.Seconds[0]
		}
		w.models = append(w.models, &model{code: m.Code, kind: m.Kind, key: key})
	}
	return nil
}

func (w *world) places() {
	doc := w.doc
	groups := map[string]*group{}
	for i := range doc.PoolGroups {
		code := doc.PoolGroups[i].Code
		capacity := doc.GroupCapacity(code)
		g := &group{code: code, capacity: capacity, common: max(0, capacity-doc.GroupReserved(code))}
		groups[code] = g
		w.groups = append(w.groups, g)
	}
	for i := range doc.Lanes {
		rule := &doc.Lanes[i]
		l := &lane{rule: rule, index: i, load: &admit.LaneLoad{Tenants: map[uuid.UUID]admit.TenantLoad{}}}
		w.lanes[rule.Code], w.load.Lanes[rule.Code] = l, l.load
		w.order = append(w.order, l)
		for j := range rule.Accounts {
			a := &account{key: plan.LaneGroup{Lane: rule.Code, Group: rule.Accounts[j].PoolGroup}, lane: l, rule: &rule.Accounts[j]}
			a.group = groups[a.key.Group]
			a.lending.promise = a.rule.BorrowTimeout * secondsInMicro
			w.accounts[a.key] = a
			w.every = append(w.every, a)
		}
	}
	for i := range doc.Pools {
		p := &doc.Pools[i]
		w.pools[p.Key] = &pool{rule: p}
		use := plan.PoolUse{Limit: -1}
		if len(p.LaneMinimums) > 0 {
			use.Lanes = map[string]int64{}
		}
		w.count.pools[p.Key] = use
	}
	for i := range doc.Pools {
		p := w.pools[doc.Pools[i].Key]
		p.chain = append(p.chain, p)
		for _, above := range doc.CapGroups(p.rule.Key) {
			if g := w.pools[above]; g != nil {
				p.chain = append(p.chain, g)
			}
		}
	}
}
