package plan_test

import (
	"cmp"
	"slices"

	"fairlane/control"
	"fairlane/control/plan"
)

// pick starts one task; false when nothing can start.
func (n *naive) pick() bool {
	type offer struct {
		party  *nParty
		task   *nTask
		phase  string
		commit func()
	}
	offers := map[*nLane]offer{}
	for _, l := range n.lanes {
		if !l.busy {
			continue
		}
		if m, t, ph, commit := n.peek(l); m != nil {
			offers[l] = offer{m, t, ph, commit}
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
			t.cost = o.task.CostMilli
			paid = true
		}
		turns = append(turns, t)
	}
	if paid {
		i, commit := n.ring.walk(turns)
		for _, l := range n.lanes {
			if &l.nMember == turns[i].nMember {
				lane = l
			}
		}
		commit()
	} else {
		for _, l := range n.lanes {
			if _, ok := offers[l]; ok && (lane == nil || l.pos > n.zero && lane.pos <= n.zero) {
				lane = l
			}
		}
		n.zero = lane.pos
	}
	o := offers[lane]
	o.commit()
	lane.streak++
	if o.phase != "reserve" {
		lane.streak = 0
	}
	o.party.urgent++
	if o.task.Band != 0 {
		o.party.urgent = 0
	}
	s := &nStart{task: o.task, party: o.party, lane: lane, pool: n.fit(o.task), account: n.account(o.task), charged: o.phase == "ring", paid: paid}
	o.task.hidden = true
	n.count(s, 1)
	n.starts = append(n.starts, s)
	return true
}

// peek finds a lane's next start; commit makes it so.
func (n *naive) peek(l *nLane) (*nParty, *nTask, string, func()) {
	picks := map[*nParty]*nTask{}
	sets := map[string][]*nParty{}
	for _, m := range n.in(l) {
		t := n.candidate(m)
		if t == nil {
			continue
		}
		picks[m] = t
		r := n.rule(m.tenant)
		reserved := int64(0)
		if r.Lane == l.Code {
			reserved = r.ReservedUnits
		}
		after := n.inLane[plan.TenantLane{Tenant: m.tenant, Lane: l.Code}].Units + t.SlotUnits
		within := min(reserved, r.MaxRunningUnits)
		if after <= within {
			sets["V"] = append(sets["V"], m)
		}
		switch {
		case m.weight == 0 && after > within:
			sets["Z"] = append(sets["Z"], m)
		case m.weight > 0 && after <= max(reserved+r.BurstUnits, within):
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
		return m, picks[m], "reserve", func() { l.cursor = m.pos }
	}
	x := sets["S"]
	if len(x) == 0 {
		x = sets["O"]
	}
	if len(x) > 0 {
		var turns []turn
		in := n.in(l)
		for _, m := range in {
			t := turn{nMember: &m.nMember, largest: n.charge(l, m.largest)}
			if slices.Contains(x, m) {
				t.cost = n.charge(l, picks[m].CostMilli)
			}
			turns = append(turns, t)
		}
		i, commit := l.ring.walk(turns)
		j := slices.IndexFunc(in, func(m *nParty) bool { return &m.nMember == turns[i].nMember })
		return in[j], picks[in[j]], "ring", commit
	}
	if z := sets["Z"]; len(z) > 0 {
		m := robin(z)
		return m, picks[m], "leftover", func() { l.cursor = m.pos }
	}
	return nil, nil, "", nil
}

func (n *naive) count(s *nStart, by int64) {
	t := s.task
	units := by * t.SlotUnits
	u := n.use[t.Lane]
	if s.account == control.AccountOwn {
		u.Own += units
	} else {
		u.Common += units
		n.common += units
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
	n.hold(s.pool, units, map[string]bool{})
}

func (n *naive) hold(key string, units int64, seen map[string]bool) {
	if seen[key] {
		return
	}
	seen[key] = true
	n.pools[key] += units
	p, _ := n.w.doc.Pool(key)
	for _, up := range p.Parents {
		n.hold(up, units, seen)
	}
}
