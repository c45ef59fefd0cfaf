package plan_test

import (
	"cmp"
	"slices"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/policy"
)

// serves reports whether a pool may run a task at all.
func (n *naive) serves(p policy.Pool, t *nTask) bool {
	return p.Kind == policy.PoolProvider && p.Model == t.Model &&
		(len(p.DedicatedLanes) == 0 || slices.Contains(p.DedicatedLanes, t.Lane)) &&
		(len(p.DedicatedTenants) == 0 || slices.Contains(p.DedicatedTenants, t.TenantID))
}

// lenders of a task in policy order: they lend to its lane, and for as long as it may take.
func (n *naive) lenders(t *nTask) (out []*nLane) {
	if n.lane(t.Lane).account().BorrowLimit == 0 {
		return nil
	}
	for _, m := range n.lanes {
		a := m.account()
		if m.Code != t.Lane && a.LendableUnits > 0 && slices.Contains(a.LendsTo, t.Lane) && t.need.P95.Bound().Seconds() <= float64(a.BorrowTimeout) {
			out = append(out, m)
		}
	}
	return out
}

func (l *nLane) account() policy.LaneAccount { return l.Accounts[0] }

func (n *naive) neverFits(t *nTask) bool {
	if t.judged != n.version {
		t.never, t.judged = n.judge(t), n.version
	}
	return t.never
}

func (n *naive) judge(t *nTask) bool {
	own, common := n.w.accounts(t.Lane)
	most := max(own, common)
	for _, m := range n.lenders(t) {
		a := m.account()
		most = max(most, min(n.lane(t.Lane).account().BorrowLimit, a.LendableUnits, a.ReservedUnits-a.HeadroomUnits))
	}
	if t.SlotUnits > n.rule(t.TenantID).MaxRunningUnits || t.SlotUnits > most {
		return true
	}
	for _, p := range n.w.doc.Pools {
		if n.serves(p, t) && n.widest(p, t.Lane) >= t.SlotUnits {
			return false
		}
	}
	return true
}

// above lists a pool and every cap group that contains it, once each.
func (n *naive) above(p policy.Pool) []policy.Pool {
	out := []policy.Pool{p}
	for i := 0; i < len(out); i++ {
		for _, key := range out[i].Parents {
			if g, _ := n.w.doc.Pool(key); !slices.ContainsFunc(out, func(o policy.Pool) bool { return o.Key == g.Key }) {
				out = append(out, *g)
			}
		}
	}
	return out
}

// widest task of a lane that the pool could ever run.
func (n *naive) widest(p policy.Pool, lane string) int64 {
	out := int64(1 << 60)
	for _, o := range n.above(p) {
		c := o.CapacityUnits
		for _, m := range o.LaneMinimums {
			if m.Lane != lane {
				c -= m.Units
			}
		}
		out = min(out, c)
	}
	return out
}

func (n *naive) use0(pool string) plan.PoolUse {
	u, ok := n.pools[pool]
	if !ok {
		u.Limit = -1
	}
	return u
}

// room of one pool, whoever comes.
func (n *naive) room(p policy.Pool) int64 {
	u := n.use0(p.Key)
	if p.Paused || u.Open {
		return 0
	}
	f := p.CapacityUnits - u.Used
	if u.Limit >= 0 {
		f = min(f, u.Limit-u.Used)
	}
	return f
}

// roomFor is the room of one pool for a task of a lane, which holds an earmark or not.
func (n *naive) roomFor(p policy.Pool, lane string, holder *nTask) int64 {
	f := n.room(p)
	for _, m := range p.LaneMinimums {
		if m.Lane != lane {
			f -= max(0, m.Units-n.use0(p.Key).Lanes[m.Lane])
		}
	}
	if h := n.holds[p.Key]; h != nil && h != holder {
		f -= h.SlotUnits
	}
	return f
}

func (n *naive) free(p policy.Pool) int64 {
	f := int64(1 << 60)
	for _, o := range n.above(p) {
		f = min(f, n.room(o))
	}
	return f
}

func (n *naive) freeFor(p policy.Pool, t *nTask) int64 {
	f := int64(1 << 60)
	for _, o := range n.above(p) {
		f = min(f, n.roomFor(o, t.Lane, t))
	}
	return f
}

// fit returns the pool that a task would run in; "" when none has room.
func (n *naive) fit(t *nTask, borrowed bool) string {
	var all []policy.Pool
	for _, p := range n.w.doc.Pools {
		if n.serves(p, t) && n.freeFor(p, t) >= t.SlotUnits && (p.CanLookUp || !borrowed) {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.SortFunc(all, func(a, b policy.Pool) int {
		fa, fb := n.room(a)*b.CapacityUnits, n.room(b)*a.CapacityUnits
		return cmp.Or(cmp.Compare(a.Preference, b.Preference), cmp.Compare(fb, fa), cmp.Compare(a.Key, b.Key))
	})
	return all[0].Key
}

// heldIn is what earmarks keep of a lane's units; those given after one of them do not count for it.
func (n *naive) heldIn(lane string, but *nTask) (units int64) {
	for _, h := range n.holders() {
		if h.Lane == lane && h.inLane && (but.pool0 == "" || h.ticket < but.ticket) {
			units += h.SlotUnits
		}
	}
	return units
}

func (n *naive) account(t *nTask) (control.Account, *nLane) {
	own, common := n.w.accounts(t.Lane)
	l := n.lane(t.Lane)
	u := n.use[t.Lane]
	switch {
	case own-u.Own-u.Lent-n.heldIn(t.Lane, t) >= t.SlotUnits:
		return control.AccountOwn, nil
	case common-n.common >= t.SlotUnits:
		return control.AccountCommon, nil
	case u.Borrowed+t.SlotUnits > l.account().BorrowLimit:
		return "", nil
	}
	for _, m := range n.lenders(t) {
		a, u := m.account(), n.use[m.Code]
		free := min(a.LendableUnits-u.Lent, a.ReservedUnits-u.Own-u.Lent-n.heldIn(m.Code, &nTask{})-a.HeadroomUnits)
		if !m.stopped && free >= t.SlotUnits {
			return control.AccountBorrowed, m
		}
	}
	return "", nil
}

func (n *naive) fits(t *nTask) bool {
	a, _ := n.account(t)
	return a != "" && n.fit(t, a == control.AccountBorrowed) != ""
}

// sameStand reports whether two tasks of a tenant fit or not together.
func (n *naive) sameStand(a, b *nTask) bool {
	x, y := a.need, b.need
	x.P95, y.P95 = 0, 0
	return x == y && (a.pool0 == "") == (b.pool0 == "") && (a.pool0 == "" || a == b) && (a.need == b.need || slices.Equal(n.lenders(a), n.lenders(b)))
}

func needOf(t *nTask) control.Need { return t.need }
