package plan_test

import (
	"bytes"
	"cmp"
	"slices"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/policy"
)

// nPassed is what the model knows of a head that did not fit.
type nPassed struct {
	first  bool // the oldest of its band and route
	marked bool
	turned bool // the ring passed it while it was beyond its tenant's soft share
	skips  int64
	since  int64 // when it was first passed over, seconds; -1: never
	ticket int64
	pool0  string   // the pool kept for it
	kept   []string // that pool and the cap groups
	inLane bool     // units of its lane are kept too
	end    int64    // seconds
}

type nLending struct {
	stopped, needy bool
	calm           int64
}

// owe brings a debt to what the database has.
func (n *naive) owe(m *nParty) {
	l := n.lane(m.lane)
	owed := n.w.debts[plan.TenantLane{Tenant: m.tenant, Lane: m.lane}]
	by := owed - m.owed
	m.owed = owed
	if by == 0 || l.Strategy == policy.WRR {
		return
	}
	if m.in {
		l.ring.credit(&m.nMember, n.charge(l, m.largest))
	}
	m.debt += by * l.ring.w
}

func (n *naive) repaid() (out []plan.Repaid) {
	for _, s := range n.starts {
		m := s.party
		if s.lane.Strategy == policy.WRR {
			continue
		}
		if by := (m.owed*s.lane.ring.w - m.debt) / s.lane.ring.w; by != 0 {
			m.owed -= by
			out = append(out, plan.Repaid{TenantLane: plan.TenantLane{Tenant: m.tenant, Lane: m.lane}, Milli: by})
		}
	}
	return out
}

// nEntry is a head among those that its tenant tries, with its phase.
type nEntry struct {
	*nTask
	party *nParty
	rank  int // 0 reserve, 1 share, 2 over, 3 leftover, 4 beyond the tenant's maximum
}

// entries of a tenant in the order in which they are tried, up to the first beyond its maximum.
func (n *naive) entries(m *nParty) (out []nEntry) {
	list := slices.Clone(m.heads)
	slices.SortFunc(list, func(a, b *nTask) int {
		return cmp.Or(cmp.Compare(n.effective(m, a), n.effective(m, b)), older(a, b))
	})
	r, u := n.rule(m.tenant), n.used[m.tenant]
	for _, t := range list {
		beyond := u.Units+t.SlotUnits > r.MaxRunningUnits || u.Tasks >= r.MaxRunningTasks
		if beyond && t.first {
			break
		}
		strict := slices.ContainsFunc(list, func(o *nTask) bool {
			return o.first && o.Band == t.Band && o.Route == t.Route && o.skips >= n.set.MaxSkips
		})
		if !t.first && strict || slices.ContainsFunc(out, func(o nEntry) bool { return n.sameStand(o.nTask, t) }) {
			continue
		}
		e := nEntry{t, m, 4}
		if !beyond {
			e.rank = n.rank(m, t)
		}
		out = append(out, e)
	}
	return out
}

func (n *naive) rank(m *nParty, t *nTask) int {
	reserve, share := n.sets(m, t)
	switch {
	case reserve:
		return 0
	case m.weight == 0:
		return 3
	case share:
		return 1
	}
	return 2
}

// sets tells whether a start lies inside the tenant's reserve, and inside its soft share.
func (n *naive) sets(m *nParty, t *nTask) (reserve, share bool) {
	r := n.rule(m.tenant)
	reserved := int64(0)
	if r.Lane == m.lane {
		reserved = r.ReservedUnits
	}
	after := n.inLane[plan.TenantLane{Tenant: m.tenant, Lane: m.lane}].Units + t.SlotUnits
	within := min(reserved, r.MaxRunningUnits)
	return after <= within, after <= max(reserved+r.BurstUnits, within)
}

// blocked returns the entries of a tenant before the one that would start: none of them fits.
func (n *naive) blocked(m *nParty) (out []nEntry, candidate *nEntry) {
	for _, e := range n.entries(m) {
		if n.fits(e.nTask) {
			if e.rank == 4 {
				return out, nil
			}
			return out, &e
		}
		out = append(out, e)
	}
	return out, nil
}

// key of an entry inside its phase, counted from now.
func (n *naive) key(l *nLane, e nEntry) [2]int64 {
	if e.rank == 0 || e.rank == 3 {
		if e.party.pos <= l.cursor {
			return [2]int64{1, e.party.pos}
		}
		return [2]int64{0, e.party.pos}
	}
	return l.ring.when(&e.party.nMember, n.charge(l, e.CostMilli), n.charge(l, e.party.largest))
}

// firstBlocked of a lane, before what it would start.
func (n *naive) firstBlocked(l *nLane, offer *nEntry, phase int) *nEntry {
	var best *nEntry
	var key [2]int64
	for _, m := range n.in(l) {
		list, _ := n.blocked(m)
		for _, e := range list {
			if e.rank == 4 {
				continue
			}
			if k := n.key(l, e); best == nil || e.rank < best.rank || e.rank == best.rank && before(k, key) {
				best, key = &e, k
			}
		}
	}
	if best != nil && offer != nil {
		o := *offer
		o.rank = phase
		if phase < best.rank || phase == best.rank && before(n.key(l, o), key) {
			return nil
		}
	}
	return best
}

// wants reports whether a start takes what a head that does not fit wants.
func (n *naive) wants(t *nTask, s *nStart) bool {
	taken, _ := n.w.doc.Pool(s.pool)
	groups := n.above(*taken)[1:]
	for _, p := range n.w.doc.Pools {
		if !n.serves(p, t) || n.widest(p, t.Lane) < t.SlotUnits {
			continue
		}
		if p.Key == s.pool {
			return true
		}
		for _, g := range n.above(p)[1:] {
			if slices.ContainsFunc(groups, func(o policy.Pool) bool { return o.Key == g.Key }) && n.roomFor(g, t.Lane, t) < t.SlotUnits {
				return true
			}
		}
	}
	a, _ := n.account(t)
	return s.account == control.AccountOwn && s.task.Lane == t.Lane && a == ""
}

// countPassed counts the marked heads that a start passes over, before it takes its units.
func (n *naive) countPassed(s *nStart) {
	var due []*nTask
	for _, l := range n.lanes {
		if !l.busy {
			continue
		}
		for _, m := range n.in(l) {
			list, _ := n.blocked(m)
			for _, e := range list {
				t := e.nTask
				if t == s.task || !t.first || e.rank == 4 || !t.marked || t.ticket > 0 || !n.wants(t, s) {
					continue
				}
				t.marked, t.turned = false, false
				if t.since < 0 {
					t.since = n.now
				}
				if t.skips++; t.skips >= n.set.MaxSkips {
					due = append(due, t)
				}
			}
		}
	}
	n.giveTickets(due)
}

func (n *naive) giveTickets(due []*nTask) {
	slices.SortFunc(due, func(a, b *nTask) int {
		return cmp.Or(cmp.Compare(n.lane(a.Lane).pos, n.lane(b.Lane).pos), cmp.Compare(n.party(a.Item).pos, n.party(b.Item).pos), bytes.Compare(a.TaskID[:], b.TaskID[:]))
	})
	for _, t := range due {
		n.tickets++
		t.ticket = n.tickets
	}
}

// forgetPassed lets what is no head any more begin anew.
func (n *naive) forgetPassed() {
	heads := map[*nTask]bool{}
	for _, m := range n.parties {
		for _, t := range m.heads {
			heads[t] = true
		}
	}
	for _, t := range n.tasks {
		if !heads[t] {
			n.release(t)
			t.nPassed = nPassed{since: -1}
		}
	}
}

func (n *naive) release(t *nTask) {
	for _, key := range t.kept {
		if n.holds[key] == t {
			delete(n.holds, key)
		}
	}
	if t.inLane {
		n.lane(t.Lane).loosed = true
	}
	t.pool0, t.kept, t.inLane = "", nil, false
}

// holders are the tasks with an earmark, by ticket.
func (n *naive) holders() (out []*nTask) {
	for _, t := range n.tasks {
		if t.pool0 != "" {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *nTask) int { return cmp.Compare(a.ticket, b.ticket) })
	return out
}

func (n *naive) endHolds() {
	for _, t := range n.holders() {
		p, _ := n.w.doc.Pool(t.pool0)
		reserved, _ := n.w.accounts(t.Lane)
		gone := p.Paused || !n.serves(*p, t) || n.widest(*p, t.Lane) < t.SlotUnits || t.inLane && t.SlotUnits > reserved
		if n.lane(t.Lane).Paused || gone || n.now >= t.end {
			n.release(t)
			t.skips, t.since, t.ticket = 0, -1, 0
		}
	}
}

func (n *naive) waitTickets() {
	if n.set.EarmarkAfter == 0 {
		return
	}
	var due []*nTask
	for _, t := range n.tasks {
		if t.ticket == 0 && t.since >= 0 && n.now-t.since >= n.set.EarmarkAfter {
			due = append(due, t)
		}
	}
	n.giveTickets(due)
}

// grantHolds gives earmarks in the order of the tickets: the first of each kind of task in a lane, and
// those that hold one already get the cap groups that have come to lack room.
func (n *naive) grantHolds() {
	next := n.holders()
	var waiting []nEntry
	for _, l := range n.lanes {
		for _, m := range n.in(l) {
			list, _ := n.blocked(m)
			for _, e := range list {
				if e.ticket > 0 && e.pool0 == "" && e.rank < 4 {
					waiting = append(waiting, e)
				}
			}
		}
	}
	slices.SortFunc(waiting, func(a, b nEntry) int { return cmp.Compare(a.ticket, b.ticket) })
	for i, e := range waiting {
		if !slices.ContainsFunc(waiting[:i], func(o nEntry) bool {
			return o.Lane == e.Lane && n.sameClass(o.nTask, e.nTask) && n.sameStand(o.nTask, e.nTask)
		}) {
			next = append(next, e.nTask)
		}
	}
	slices.SortFunc(next, func(a, b *nTask) int { return cmp.Compare(a.ticket, b.ticket) })
	closed, shut := map[string]bool{}, map[string]bool{}
	for _, t := range next {
		if t.pool0 != "" {
			for _, key := range n.lacking(t.pool0, t) {
				if n.holds[key] == nil && !closed[key] {
					n.holds[key] = t
					t.kept = append(t.kept, key)
				}
			}
			continue
		}
		n.grant(t, closed, shut)
	}
}

// sameClass reports whether the same dedicated pools are open to the tenants of two tasks.
func (n *naive) sameClass(a, b *nTask) bool {
	for _, p := range n.w.doc.Pools {
		if len(p.DedicatedTenants) > 0 && slices.Contains(p.DedicatedTenants, a.TenantID) != slices.Contains(p.DedicatedTenants, b.TenantID) {
			return false
		}
	}
	return true
}

func (n *naive) lacking(pool string, t *nTask) (out []string) {
	p, _ := n.w.doc.Pool(pool)
	for _, g := range n.above(*p)[1:] {
		if n.roomFor(g, t.Lane, t) < t.SlotUnits {
			out = append(out, g.Key)
		}
	}
	return out
}

func (n *naive) grant(t *nTask, closed, shut map[string]bool) {
	var all []policy.Pool
	for _, p := range n.w.doc.Pools {
		if n.serves(p, t) && n.widest(p, t.Lane) >= t.SlotUnits && !p.Paused {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b policy.Pool) int {
		return cmp.Or(cmp.Compare(n.free(b), n.free(a)), cmp.Compare(a.Preference, b.Preference), cmp.Compare(a.Key, b.Key))
	})
	wanted := append([]string{all[0].Key}, n.lacking(all[0].Key, t)...)
	taken := slices.ContainsFunc(wanted, func(key string) bool { return n.holds[key] != nil || closed[key] })
	reserved, _ := n.w.accounts(t.Lane)
	inLane := t.SlotUnits <= reserved
	full := inLane && (shut[t.Lane] || n.heldIn(t.Lane, &nTask{})+t.SlotUnits > reserved)
	if taken || full {
		for _, key := range wanted {
			closed[key] = true
		}
		if full {
			shut[t.Lane] = true
		}
		return
	}
	timeout := n.set.EarmarkTimeout
	if timeout == 0 {
		timeout = 1200
	}
	t.pool0, t.kept, t.inLane, t.end = all[0].Key, wanted, inLane, n.now+timeout
	for _, key := range wanted {
		n.holds[key] = t
	}
}
