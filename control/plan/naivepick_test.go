package plan_test

import (
	"cmp"
	"slices"

	"fairlane/control"
	"fairlane/control/plan"
)

// nOffer is what a lane would start.
type nOffer struct {
	entry  *nEntry
	phase  int
	passes []func() // marks of heads whose turn comes with it
	commit func()
}

// pick starts one task; false when nothing can start.
func (n *naive) pick() bool {
	offers := map[*nLane]*nOffer{}
	for _, l := range n.lanes {
		if !l.busy {
			continue
		}
		if o := n.peek(l); o != nil {
			offers[l] = o
		}
	}
	if len(offers) == 0 {
		return false
	}
	var lane *nLane
	var turns []turn
	paid := false
	for _, l := range n.lanes {
		t := turn{nMember: &l.nMember, largest: n.laneLargest(l), idle: !l.busy}
		if o, ok := offers[l]; ok && l.weight > 0 {
			t.cost = o.entry.CostMilli
			paid = true
		}
		turns = append(turns, t)
	}
	commit := func() {}
	if paid {
		var i int
		i, commit = n.ring.walk(turns, func(int, int64) {})
		for _, l := range n.lanes {
			if &l.nMember == turns[i].nMember {
				lane = l
			}
		}
	} else {
		for _, l := range n.lanes {
			if _, ok := offers[l]; ok && (lane == nil || l.pos > n.zero && lane.pos <= n.zero) {
				lane = l
			}
		}
		n.zero = lane.pos
	}
	o := offers[lane]
	n.markTurns(lane, offers, paid)
	commit()
	o.commit()
	lane.streak++
	if o.phase != 0 {
		lane.streak = 0
	}
	m := o.entry.party
	account, lender := n.account(o.entry.nTask)
	s := &nStart{
		task: o.entry.nTask, party: m, lane: lane, account: account, lender: lender,
		pool: n.fit(o.entry.nTask, account == control.AccountBorrowed), charged: o.phase == 1 || o.phase == 2, paid: paid,
	}
	n.countPassed(s)
	m.urgent++
	if o.entry.Band != 0 {
		m.urgent = 0
	}
	n.release(s.task)
	s.task.hidden = true
	n.count(s, 1)
	n.starts = append(n.starts, s)
	return true
}

// markTurns marks the heads that do not fit and whose turn comes before a start of the lane.
func (n *naive) markTurns(l *nLane, offers map[*nLane]*nOffer, paid bool) {
	o := offers[l]
	for _, m := range n.in(l) {
		list := n.entries(m)
		if m == o.entry.party {
			list, _ = n.blocked(m)
		}
		for _, e := range list {
			switch {
			case m == o.entry.party:
				k := *o.entry
				k.rank = o.phase
				if e.rank < o.phase || e.rank == o.phase && (o.phase == 0 || o.phase == 3 || !before(n.key(l, k), n.key(l, e))) {
					e.marked = true
				}
			case e.rank < o.phase:
				e.marked = true
			case o.phase == 0 || o.phase == 3:
				k := *o.entry
				k.rank = o.phase
				came := (e.rank == 0 || e.rank == 3) && before(n.key(l, e), n.key(l, k))
				e.turned = e.turned || came && e.rank == 3
				e.marked = e.marked || came && e.rank == 0
			}
		}
	}
	for _, mark := range o.passes {
		mark()
	}
	for _, m := range n.in(l) {
		for _, e := range n.entries(m) {
			if m != o.entry.party && (e.rank == 2 || e.rank == 3) && e.rank == o.phase && e.turned {
				e.marked = true
			}
		}
	}
	for _, m := range n.lanes {
		if m == l || !m.busy || m.weight == 0 {
			continue
		}
		var e *nEntry
		if other := offers[m]; other != nil {
			e = n.firstBlocked(m, other.entry, other.phase)
		} else {
			e = n.firstBlocked(m, nil, 0)
		}
		if e == nil || !e.first {
			continue
		}
		if !paid || before(n.ring.when(&m.nMember, e.CostMilli, n.laneLargest(m)), n.ring.when(&l.nMember, o.entry.CostMilli, n.laneLargest(l))) {
			e.marked = true
		}
	}
}

// peek finds a lane's next start.
func (n *naive) peek(l *nLane) *nOffer {
	picks := map[*nParty]*nEntry{}
	sets := map[string][]*nParty{}
	for _, m := range n.in(l) {
		_, e := n.blocked(m)
		if e == nil {
			continue
		}
		picks[m] = e
		reserve, share := n.sets(m, e.nTask)
		if reserve {
			sets["V"] = append(sets["V"], m)
		}
		switch {
		case m.weight == 0 && !reserve:
			sets["Z"] = append(sets["Z"], m)
		case m.weight > 0 && share:
			sets["S"] = append(sets["S"], m)
		case m.weight > 0:
			sets["O"] = append(sets["O"], m)
		}
	}
	robin := func(set []*nParty) *nParty {
		return slices.MinFunc(set, func(a, b *nParty) int {
			if pa, pb := a.pos <= l.cursor, b.pos <= l.cursor; pa != pb {
				if pb {
					return -1
				}
				return 1
			}
			return cmp.Compare(a.pos, b.pos)
		})
	}
	if v := sets["V"]; len(v) > 0 && (l.streak < 7 || len(sets["S"]) == 0) {
		m := robin(v)
		return &nOffer{picks[m], 0, nil, func() { l.cursor = m.pos }}
	}
	x, phase := sets["S"], 1
	if len(x) == 0 {
		x, phase = sets["O"], 2
	}
	if len(x) > 0 {
		return n.inTurn(l, x, phase, picks)
	}
	if z := sets["Z"]; len(z) > 0 {
		m := robin(z)
		return &nOffer{picks[m], 3, nil, func() { l.cursor = m.pos }}
	}
	return nil
}

// inTurn walks a lane's ring to the next of the tenants that may start, and notes whose turn came.
func (n *naive) inTurn(l *nLane, x []*nParty, phase int, picks map[*nParty]*nEntry) *nOffer {
	var turns []turn
	parties := map[*nMember]*nParty{}
	for _, m := range n.in(l) {
		t := turn{nMember: &m.nMember, largest: n.charge(l, m.largest)}
		if slices.Contains(x, m) {
			t.cost = n.charge(l, picks[m].CostMilli)
		}
		turns = append(turns, t)
		parties[&m.nMember] = m
	}
	type passing struct {
		e nEntry
		m *nParty
	}
	var passed []passing
	left := map[*nMember][]nEntry{} // whose turn has not come yet
	for _, m := range n.in(l) {
		left[&m.nMember] = slices.DeleteFunc(n.entries(m), func(e nEntry) bool { return e.rank != 1 && e.rank != 2 })
	}
	i, commit := l.ring.walk(turns, func(i int, budget int64) {
		m := turns[i].nMember
		if len(left[m]) == 0 {
			return
		}
		left[m] = slices.DeleteFunc(left[m], func(e nEntry) bool {
			came := n.charge(l, e.CostMilli)*l.ring.w <= budget
			if came {
				passed = append(passed, passing{e, parties[m]})
			}
			return came
		})
	})
	m := parties[turns[i].nMember]
	o := &nOffer{picks[m], phase, nil, commit}
	for _, p := range passed {
		if p.m != m {
			o.passes = append(o.passes, func() {
				p.e.turned = p.e.turned || p.e.rank == 2
				p.e.marked = p.e.marked || p.e.rank == 1
			})
		}
	}
	return o
}

func (n *naive) count(s *nStart, by int64) {
	t := s.task
	units := by * t.SlotUnits
	u := n.use[t.Lane]
	switch s.account {
	case control.AccountOwn:
		u.Own += units
	case control.AccountCommon:
		u.Common += units
		n.common += units
	default:
		u.Borrowed += units
		m := n.use[s.lender.Code]
		m.Lent += units
		n.use[s.lender.Code] = m
	}
	n.use[t.Lane] = u
	tl := plan.TenantLane{Tenant: t.TenantID, Lane: t.Lane}
	tu := plan.TenantUser{Tenant: t.TenantID, User: t.UserID}
	a, b, c := n.used[t.TenantID], n.inLane[tl], n.users[tu]
	n.used[t.TenantID] = plan.Use{Tasks: a.Tasks + by, Units: a.Units + units}
	n.inLane[tl] = plan.Use{Tasks: b.Tasks + by, Units: b.Units + units}
	c.Tasks += by
	if t.Kind == control.KindImage {
		c.Image += by
	} else {
		c.Video += by
	}
	n.users[tu] = c
	leaf, _ := n.w.doc.Pool(s.pool)
	for _, p := range n.above(*leaf) {
		o := n.use0(p.Key)
		o.Used += units
		if o.Lanes == nil {
			o.Lanes = map[string]int64{}
		}
		o.Lanes[t.Lane] += units
		n.pools[p.Key] = o
	}
}
