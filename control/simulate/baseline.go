package simulate

import (
	"slices"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/policy"
)

// baseline decides as simple schedulers do, to compare with. It looks through all tenants for each start.
type baseline struct {
	w      *world
	turns  bool // tenants in turn; else the oldest first
	queues []*line
	of     map[lineKey]*line
	cursor int // the tenant that started last
	leaves map[string][]*pool
}

type lineKey struct {
	tenant int32
	model  string
	group  string
}

// line is what waits of a tenant for a model, oldest first.
type line struct {
	lineKey
	who   *tenant
	tasks []*task
}

func newBaseline(w *world) *baseline {
	b := &baseline{w: w, turns: w.cfg.Mode == RoundRobin, of: map[lineKey]*line{}, cursor: -1, leaves: map[string][]*pool{}}
	for i := range w.doc.Pools {
		if p := &w.doc.Pools[i]; p.Kind != policy.PoolCapGroup {
			b.leaves[p.Model] = append(b.leaves[p.Model], w.pools[p.Key])
		}
	}
	for _, list := range b.leaves {
		slices.SortStableFunc(list, func(x, y *pool) int { return int(x.rule.Preference - y.rule.Preference) })
	}
	return b
}

func (b *baseline) add(t *task) error {
	key := lineKey{t.party.tenant.index, t.model.code, t.account.key.Group}
	l := b.of[key]
	if l == nil {
		l = &line{lineKey: key, who: t.party.tenant}
		b.of[key] = l
		at, _ := slices.BinarySearchFunc(b.queues, key.tenant, func(l *line, tenant int32) int { return int(l.tenant) - int(tenant) })
		b.queues = slices.Insert(b.queues, at, l)
	}
	l.tasks = append(l.tasks, t)
	return nil
}

func (b *baseline) remove(t *task) {
	l := b.of[lineKey{t.party.tenant.index, t.model.code, t.account.key.Group}]
	if at := slices.Index(l.tasks, t); at >= 0 {
		l.tasks = slices.Delete(l.tasks, at, at+1)
	}
}

func (b *baseline) decide() (wake int64, err error) {
	for {
		l, p := b.pick()
		if l == nil {
			return 0, nil
		}
		t := l.tasks[0]
		l.tasks = l.tasks[1:]
		b.cursor = int(l.tenant)
		b.w.leaveQueue(t)
		b.w.begin(t, &plan.Start{
			TaskID: t.id, Lane: t.account.key.Lane, Group: l.group, Pool: p.rule.Key,
			Account: control.AccountCommon, SlotUnits: t.charge.SlotUnits, CostMilli: t.charge.Milli,
		})
	}
}

// pick finds the next line whose oldest task fits, and where.
func (b *baseline) pick() (*line, *pool) {
	var best *line
	var where *pool
	for _, l := range b.queues {
		if len(l.tasks) == 0 || best != nil && !b.before(l, best) {
			continue
		}
		if p := b.fit(l); p != nil {
			best, where = l, p
		}
	}
	return best, where
}

func (b *baseline) before(l, m *line) bool {
	if b.turns && l.tenant != m.tenant {
		n := len(b.w.tenants)
		turn := func(t int32) int { return (int(t) - b.cursor - 1 + n) % n }
		return turn(l.tenant) < turn(m.tenant)
	}
	return lessID(l.tasks[0].id, m.tasks[0].id)
}

func (b *baseline) fit(l *line) *pool {
	t := l.tasks[0]
	slots := t.charge.SlotUnits
	use := b.w.count.tenants[l.who.account.ID]
	s := &l.who.settings
	if use.Tasks >= s.MaxRunningTasks || use.Units+slots > s.MaxRunningUnits || t.account.group.used+slots > t.account.group.capacity {
		return nil
	}
	for _, p := range b.leaves[l.model] {
		if p.rule.Group == l.group && b.w.fullPool(&plan.Start{Pool: p.rule.Key, SlotUnits: slots}) == "" {
			return p
		}
	}
	return nil
}
