package simulate

import (
	"slices"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/policy"
)

// group is a pool group.
type group struct {
	code     string
	capacity int64
	common   int64 // units that no lane holds
	used     int64
	area     int64 // used × microseconds, up to the horizon
	since    int64
	peak     int64
}

// account is a lane's share of a group.
type account struct {
	key     plan.LaneGroup
	lane    *lane
	group   *group
	rule    *policy.LaneAccount
	waiting sizes

	// It is short while something of it waits for units of which some are lent.
	short      bool
	shortSince int64
	shortTotal int64
	lending    lendingTally
}

func (a *account) shortTime(now int64) int64 {
	if a.short {
		return a.shortTotal + now - a.shortSince
	}
	return a.shortTotal
}

// observe looks, after everything of an instant has happened, which accounts are short.
func (w *world) observe() {
	for _, a := range w.every {
		use := w.count.lanes[a.key]
		least := a.waiting.least()
		short := use.Lent > 0 && a.waiting.any() && a.lane.taking > 0 &&
			a.rule.ReservedUnits-use.Own-use.Lent < least && a.group.common-w.count.common[a.key.Group] < least
		if short == a.short {
			continue
		}
		a.shortTotal, a.short, a.shortSince = a.shortTime(w.now), short, w.now
	}
}

func (s sizes) any() bool { return slices.ContainsFunc(s, func(x size) bool { return x.n > 0 }) }

func (g *group) use(units, now, horizon int64) {
	now = min(now, horizon)
	g.area += g.used * (now - g.since)
	g.since = now
	g.used += units
	g.peak = max(g.peak, g.used)
}

// grant claims a start, as the store's transaction would: everything is looked at again.
func (w *world) grant(s *plan.Start) (refused plan.Gate, pool string) {
	t := w.waiting[s.TaskID]
	if t == nil || s.SlotUnits != t.charge.SlotUnits || s.Lane != t.account.key.Lane || s.Group != t.account.key.Group {
		return plan.GateTask, ""
	}
	ten := t.party.tenant
	use := w.count.tenants[ten.account.ID]
	if !ten.account.Active() || use.Tasks >= ten.settings.MaxRunningTasks || s.SlotUnits > ten.settings.MaxRunningUnits-use.Units {
		return plan.GateTenant, ""
	}
	if t.user.atCap(w, t.kind) {
		return plan.GateUser, ""
	}
	if t.party.lane.rule.Paused || !w.doc.Switches.SchedulingRunning {
		return plan.GateLane, ""
	}
	if !w.roomInAccount(t.account, s) {
		return plan.GateAccount, ""
	}
	if full := w.fullPool(s); full != "" {
		return plan.GatePool, full
	}
	w.leaveQueue(t)
	w.begin(t, s)
	return "", ""
}

func (w *world) roomInAccount(a *account, s *plan.Start) bool {
	use := w.count.lanes[a.key]
	switch s.Account {
	case control.AccountOwn:
		return s.SlotUnits <= a.rule.ReservedUnits-use.Own-use.Lent
	case control.AccountCommon:
		return s.SlotUnits <= a.group.common-w.count.common[s.Group]
	case control.AccountBorrowed:
		m := w.accounts[plan.LaneGroup{Lane: s.Lender, Group: s.Group}]
		if m == nil || !slices.Contains(m.rule.LendsTo, s.Lane) || use.Borrowed+s.SlotUnits > a.rule.BorrowLimit {
			return false
		}
		of := w.count.lanes[m.key]
		return !of.Stopped && s.SlotUnits <= min(m.rule.LendableUnits-of.Lent, m.rule.ReservedUnits-of.Own-of.Lent-m.rule.HeadroomUnits)
	}
	return false
}

func (w *world) fullPool(s *plan.Start) string {
	leaf := w.pools[s.Pool]
	if leaf == nil || leaf.rule.Paused {
		return s.Pool
	}
	for _, p := range leaf.chain {
		if w.count.pools[p.rule.Key].Used+s.SlotUnits > p.rule.CapacityUnits {
			return p.rule.Key
		}
	}
	return ""
}

// pool is a leaf or a cap group; chain is it and every cap group that contains it.
type pool struct {
	rule  *policy.Pool
	chain []*pool
}

// hold moves the counters of everything that a start takes, or gives back.
func (w *world) hold(t *task, by int64) {
	s := &t.start
	units := by * s.SlotUnits
	for _, p := range w.pools[s.Pool].chain {
		use := w.count.pools[p.rule.Key]
		use.Used += units
		if use.Lanes != nil {
			use.Lanes[s.Lane] += units
		}
		w.count.pools[p.rule.Key] = use
	}
	w.holdAccount(t.account, s.Account, s.Lender, units)
	ten := t.party.tenant
	use := w.count.tenants[ten.account.ID]
	use.Tasks, use.Units = use.Tasks+by, use.Units+units
	w.count.tenants[ten.account.ID] = use
	in := plan.TenantLane{Tenant: ten.account.ID, Lane: s.Lane}
	n := w.count.inLane[in]
	n.Tasks, n.Units = n.Tasks+by, n.Units+units
	w.count.inLane[in] = n
	w.holdUser(t, by)
	t.account.group.use(units, w.now, w.horizon)
	for _, p := range ten.parties {
		w.settleStand(p)
	}
}

func (w *world) holdAccount(a *account, kind control.Account, lender string, units int64) {
	use := w.count.lanes[a.key]
	switch kind {
	case control.AccountOwn:
		use.Own += units
	case control.AccountCommon:
		use.Common += units
		w.count.common[a.key.Group] += units
	case control.AccountBorrowed:
		use.Borrowed += units
		m := w.accounts[plan.LaneGroup{Lane: lender, Group: a.key.Group}]
		of := w.count.lanes[m.key]
		of.Lent += units
		m.lending.peak = max(m.lending.peak, of.Lent)
		w.count.lanes[m.key] = of
	}
	w.count.lanes[a.key] = use
}

func (w *world) holdUser(t *task, by int64) {
	id := plan.TenantUser{Tenant: t.party.tenant.account.ID, User: t.user.id}
	use := w.count.users[id]
	use.Tasks += by
	if t.kind == 0 {
		use.Image += by
	} else {
		use.Video += by
	}
	if use == (plan.UserUse{}) {
		delete(w.count.users, id)
	} else {
		w.count.users[id] = use
	}
	for kind := range t.user.capped {
		capped := t.user.atCap(w, kind)
		if capped == t.user.capped[kind] {
			continue
		}
		t.user.capped[kind] = capped
		for _, in := range t.user.waits {
			if capped {
				in.party.runnable -= in.n[kind]
			} else {
				in.party.runnable += in.n[kind]
			}
		}
	}
}

func (u *user) atCap(w *world, kind int) bool {
	s := &u.tenant.settings
	use := w.count.users[plan.TenantUser{Tenant: u.tenant.account.ID, User: u.id}]
	return use.Tasks >= s.UserMaxRunningTasks || kind == 0 && use.Image >= s.UserMaxRunningImage || kind == 1 && use.Video >= s.UserMaxRunningVideo
}
