package plan_test

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/queue"
	"fairlane/policy"
)

// naive is the second opinion: SCHEDULING's rules over plain lists, walking every round turn by turn.
// It shares no code with the planner. Weights up to 1,000 and costs up to 50 units keep it fast enough.
type naive struct {
	w       *world
	set     policy.Scheduling
	version int64
	lanes   []*nLane
	ring    nRing
	zero    int64
	tasks   map[uuid.UUID]*nTask
	parties []*nParty // in the order in which they were first seen
	streaks map[uuid.UUID]int
	starts  []*nStart // of the cycle in progress
	now     int64
	// working copies of the counters
	use    map[string]plan.LaneUse
	common int64
	pools  map[string]int64
	used   map[uuid.UUID]plan.Use
	inLane map[plan.TenantLane]plan.Use
	users  map[plan.TenantUser]plan.UserUse
}

type nTask struct {
	queue.Item
	hidden  bool
	refused plan.Gate
	fresh   bool
	pool    string
	capped  bool // user caps could bind when it was planned
	seen    [3]int64
	until   int64
}

type nLane struct {
	nMember
	policy.Lane
	ring   nRing
	busy   bool
	streak int
	cursor int64
}

type nParty struct {
	nMember
	lane    string
	tenant  uuid.UUID
	in      bool
	largest int64 // units in milli of the most expensive head, when last looked at
	heads   []*nTask
	urgent  int
}

type nStart struct {
	task    *nTask
	party   *nParty
	lane    *nLane
	pool    string
	account control.Account
	charged bool
	paid    bool
}

// nMember of a ring; missed counts the turns that have passed since its last quantum.
type nMember struct {
	pos, weight, deficit, missed int64
}

type nRing struct {
	cur, seq, w, base, burst int64
	open                     *nMember
}

func (r *nRing) q(m *nMember) int64 { return r.base * m.weight }

func (r *nRing) cap(m *nMember, largest int64) int64 { return max(r.q(m)*r.burst, largest*r.w) }

// credit gives a member the quanta of the turns that passed, up to its cap.
func (r *nRing) credit(m *nMember, largest int64) {
	if m.missed > 0 {
		m.deficit = min(m.deficit+m.missed*r.q(m), r.cap(m, largest))
	}
	m.missed = 0
}

// turn is a member with what it wants: cost 0 wants nothing but lets its turn pass, idle does not even.
type turn struct {
	*nMember
	cost, largest int64
	idle          bool
}

// walk goes from turn to turn until somebody can pay, on a copy; commit makes it so.
func (r *nRing) walk(all []turn) (chosen int, commit func()) {
	for i, t := range all {
		if t.nMember == r.open && t.cost > 0 && t.cost*r.w <= t.deficit {
			return i, func() { t.deficit -= t.cost * r.w }
		}
	}
	missed := make([]int64, len(all))
	slices.SortFunc(all, func(a, b turn) int { return cmp.Compare(a.pos, b.pos) })
	at := 0
	for at < len(all) && all[at].pos <= r.cur {
		at++
	}
	for ; ; at++ {
		i := at % len(all)
		t := all[i]
		if t.idle {
			continue
		}
		if t.cost > 0 && t.weight > 0 {
			carried := min(t.deficit+(t.missed+missed[i])*r.q(t.nMember), r.cap(t.nMember, max(t.largest, t.cost)))
			if d := carried + r.q(t.nMember); d >= t.cost*r.w {
				return i, func() {
					for j := range all {
						all[j].missed += missed[j]
					}
					t.deficit, t.missed = d-t.cost*r.w, 0
					r.cur, r.open = t.pos, t.nMember
				}
			}
		}
		missed[i]++
	}
}

func newNaive(w *world) *naive {
	n := &naive{w: w, tasks: map[uuid.UUID]*nTask{}, streaks: map[uuid.UUID]int{}}
	n.publish()
	return n
}

// publish follows the document of the world; lanes keep their place.
func (n *naive) publish() {
	for _, l := range n.lanes {
		if l.busy {
			n.ring.credit(&l.nMember, n.laneLargest(l))
		}
		for _, m := range n.in(l) {
			l.ring.credit(&m.nMember, n.charge(l, m.largest))
		}
	}
	n.version++
	d := n.w.doc
	n.set = d.Scheduling
	top := int64(1)
	for _, l := range d.Lanes {
		top = max(top, l.Weight)
	}
	n.scaleAll(&n.ring, top, func(f func(*nMember)) {
		for _, l := range n.lanes {
			f(&l.nMember)
		}
	})
	for i := range d.Lanes {
		if len(n.lanes) <= i {
			n.ring.seq++
			n.lanes = append(n.lanes, &nLane{nMember: nMember{pos: n.ring.seq}})
		}
		l := n.lanes[i]
		if l.Strategy != d.Lanes[i].Strategy {
			for _, m := range n.all(l) {
				m.deficit = 0
			}
		}
		l.Lane = d.Lanes[i]
		l.Paused = l.Paused || !d.Switches.SchedulingRunning
		l.weight = l.Weight
		n.retune(l)
	}
}

func (n *naive) scaleAll(r *nRing, w int64, each func(func(*nMember))) {
	if r.w > 0 {
		each(func(m *nMember) { m.deficit = m.deficit * w / r.w })
	}
	r.w, r.base, r.burst = w, n.set.BaseQuantumUnits*1000, n.set.BurstRounds
}

// retune gives a lane its largest weight: of the tenants at home in it, of all when tasks are routed to
// it, and of those that have work in it.
func (n *naive) retune(l *nLane) {
	top := int64(1)
	for _, t := range n.w.tenants {
		s, _ := n.w.doc.Effective(t.PlanCode, t.ID)
		routed := slices.ContainsFunc(n.w.doc.Routing, func(r policy.RoutingRule) bool { return r.Lane == l.Code })
		if s.Lane == l.Code || routed {
			top = max(top, s.Weight)
		}
	}
	for _, m := range n.in(l) {
		top = max(top, n.rule(m.tenant).Weight)
	}
	n.rescale(l, top)
}

func (n *naive) rescale(l *nLane, w int64) {
	n.scaleAll(&l.ring, w, func(f func(*nMember)) {
		for _, m := range n.all(l) {
			f(&m.nMember)
		}
	})
	for _, m := range n.all(l) {
		m.weight = n.rule(m.tenant).Weight
	}
}

func (n *naive) all(l *nLane) (out []*nParty) {
	for _, m := range n.parties {
		if m.lane == l.Code {
			out = append(out, m)
		}
	}
	return out
}

func (n *naive) in(l *nLane) (out []*nParty) {
	for _, m := range n.all(l) {
		if m.in {
			out = append(out, m)
		}
	}
	return out
}

func (n *naive) rule(tenant uuid.UUID) policy.TenantSettings {
	s, _ := n.w.doc.Effective(n.w.planOf(tenant), tenant)
	return s
}

func (n *naive) lane(code string) *nLane {
	i := slices.IndexFunc(n.lanes, func(l *nLane) bool { return l.Code == code })
	return n.lanes[i]
}

// charge in milli-units.
func (n *naive) charge(l *nLane, milli int64) int64 {
	if l.Strategy == policy.WRR {
		return min(milli, 1000)
	}
	return milli
}

func (n *naive) laneLargest(l *nLane) (out int64) {
	for _, m := range n.in(l) {
		if len(m.heads) > 0 {
			out = max(out, m.largest)
		}
	}
	return out
}

func (n *naive) party(it queue.Item) *nParty {
	for _, m := range n.parties {
		if m.lane == it.Lane && m.tenant == it.TenantID {
			return m
		}
	}
	m := &nParty{lane: it.Lane, tenant: it.TenantID}
	n.parties = append(n.parties, m)
	return m
}

func (n *naive) arrive(it queue.Item) {
	n.tasks[it.TaskID] = &nTask{Item: it}
	n.party(it)
}

func (n *naive) cancel(id uuid.UUID) { delete(n.tasks, id) }

// cycle plans like the planner, and leaves the starts to be answered.
func (n *naive) cycle(now int64, batch int) (out []plan.Start) {
	n.now = now
	n.load()
	for _, t := range n.tasks {
		if t.refused != "" && (n.behind(t) != t.seen || n.now >= t.until) {
			t.refused, t.hidden = "", false
		}
	}
	n.look()
	n.enroll()
	n.mark()
	n.starts = nil
	for len(n.starts) < batch {
		if !n.pick() {
			break
		}
		n.look()
		n.mark()
	}
	for _, s := range n.starts {
		out = append(out, plan.Start{TaskID: s.task.TaskID, Pool: s.pool, Account: s.account})
	}
	return out
}

func (n *naive) load() {
	n.use, n.pools = map[string]plan.LaneUse{}, map[string]int64{}
	n.used, n.inLane, n.users = map[uuid.UUID]plan.Use{}, map[plan.TenantLane]plan.Use{}, map[plan.TenantUser]plan.UserUse{}
	for k, v := range n.w.lanes {
		n.use[k.Lane] = v
	}
	for k, v := range n.w.pools {
		n.pools[k] = v.Used
	}
	for k, v := range n.w.used {
		n.used[k] = v.Use
	}
	for k, v := range n.w.inLane {
		n.inLane[k] = v
	}
	for k, v := range n.w.users {
		n.users[k] = v
	}
	n.common = n.w.common[testGroup]
}

// look finds the heads of every tenant anew.
func (n *naive) look() {
	for _, m := range n.parties {
		m.heads = n.heads(m)
		m.largest = 0
		for _, t := range m.heads {
			m.largest = max(m.largest, t.CostMilli)
		}
	}
}

// heads of each band and route, and later ones of the route and other needs, in no order.
func (n *naive) heads(m *nParty) (out []*nTask) {
	type kind struct {
		band  control.Band
		route string
	}
	groups := map[kind][]*nTask{}
	for _, t := range n.tasks {
		if t.Lane == m.lane && t.TenantID == m.tenant && !t.hidden && !t.EligibleAt.After(second(n.now)) && !n.neverFits(t) && !n.userFull(t) {
			groups[kind{t.Band, t.Route}] = append(groups[kind{t.Band, t.Route}], t)
		}
	}
	for _, g := range groups {
		slices.SortFunc(g, older)
		slots := map[int64]bool{}
		for i, t := range g {
			if i <= int(n.set.FitScan) && !slots[t.SlotUnits] {
				slots[t.SlotUnits] = true
				out = append(out, t)
			}
		}
	}
	return out
}

func older(a, b *nTask) int {
	if c := a.QueuedSince.Compare(b.QueuedSince); c != 0 {
		return c
	}
	return bytes.Compare(a.TaskID[:], b.TaskID[:])
}

func (n *naive) userFull(t *nTask) bool {
	r, u := n.rule(t.TenantID), n.users[plan.TenantUser{Tenant: t.TenantID, User: t.UserID}]
	return u.Tasks >= r.UserMaxRunningTasks || t.Kind == control.KindImage && u.Image >= r.UserMaxRunningImage ||
		t.Kind == control.KindVideo && u.Video >= r.UserMaxRunningVideo
}

func (n *naive) neverFits(t *nTask) bool {
	own, common := n.w.accounts(t.Lane)
	if t.SlotUnits > n.rule(t.TenantID).MaxRunningUnits || t.SlotUnits > max(own, common) {
		return true
	}
	for _, p := range n.w.doc.Pools {
		if p.Kind == policy.PoolProvider && p.Model == t.Model && n.smallest(p) >= t.SlotUnits {
			return false
		}
	}
	return true
}

func (n *naive) smallest(p policy.Pool) int64 {
	c := p.CapacityUnits
	for _, up := range p.Parents {
		g, _ := n.w.doc.Pool(up)
		c = min(c, n.smallest(*g))
	}
	return c
}

func (n *naive) free(p policy.Pool) int64 {
	f := p.CapacityUnits - n.pools[p.Key]
	if p.Paused {
		f = 0
	}
	for _, up := range p.Parents {
		g, _ := n.w.doc.Pool(up)
		f = min(f, n.free(*g))
	}
	return f
}

// fit returns the pool that a task would run in; "" when none has room.
func (n *naive) fit(t *nTask) string {
	var all []policy.Pool
	for _, p := range n.w.doc.Pools {
		if p.Kind == policy.PoolProvider && p.Model == t.Model && n.free(p) >= t.SlotUnits {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.SortFunc(all, func(a, b policy.Pool) int {
		fa, fb := (a.CapacityUnits-n.pools[a.Key])*b.CapacityUnits, (b.CapacityUnits-n.pools[b.Key])*a.CapacityUnits
		return cmp.Or(cmp.Compare(a.Preference, b.Preference), cmp.Compare(fb, fa), cmp.Compare(a.Key, b.Key))
	})
	return all[0].Key
}

func (n *naive) account(t *nTask) control.Account {
	own, common := n.w.accounts(t.Lane)
	switch {
	case own-n.use[t.Lane].Own >= t.SlotUnits:
		return control.AccountOwn
	case common-n.common >= t.SlotUnits:
		return control.AccountCommon
	}
	return ""
}

func (n *naive) effective(m *nParty, t *nTask) int {
	if t.Band == 0 {
		if m.urgent >= 7 {
			return 5
		}
		return 0
	}
	steps := max(0, second(n.now).Sub(t.QueuedSince).Microseconds()) / (n.set.AgingStepSeconds * 1_000_000)
	return max(1, int(t.Band)-int(min(steps, n.set.AgingCap)))
}

func (n *naive) fits(t *nTask) bool { return n.account(t) != "" && n.fit(t) != "" }

func (n *naive) candidate(m *nParty) *nTask {
	type kind struct {
		band  control.Band
		route string
	}
	oldest := map[kind]*nTask{}
	for _, t := range m.heads {
		k := kind{t.Band, t.Route}
		if oldest[k] == nil || older(t, oldest[k]) < 0 {
			oldest[k] = t
		}
	}
	var list []*nTask
	for _, t := range m.heads {
		if oldest[kind{t.Band, t.Route}] == t || n.fits(t) {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *nTask) int {
		return cmp.Or(cmp.Compare(n.effective(m, a), n.effective(m, b)), older(a, b))
	})
	r, u := n.rule(m.tenant), n.used[m.tenant]
	for _, t := range list {
		if u.Units+t.SlotUnits > r.MaxRunningUnits || u.Tasks >= r.MaxRunningTasks {
			return nil
		}
		if n.fits(t) {
			return t
		}
	}
	return nil
}

func (n *naive) enroll() {
	var fresh []*nParty
	for _, m := range n.parties {
		if m.in && len(m.heads) == 0 {
			n.leave(m)
		} else if !m.in && len(m.heads) > 0 {
			fresh = append(fresh, m)
		}
	}
	oldest := func(m *nParty) *nTask { return slices.MinFunc(m.heads, older) }
	slices.SortFunc(fresh, func(a, b *nParty) int { return older(oldest(a), oldest(b)) })
	for _, m := range fresh {
		l := n.lane(m.lane)
		m.weight = n.rule(m.tenant).Weight
		if m.weight > l.ring.w {
			for _, o := range n.in(l) {
				l.ring.credit(&o.nMember, n.charge(l, o.largest))
			}
			n.rescale(l, m.weight)
		}
		l.ring.seq++
		m.pos, m.in, m.missed = l.ring.seq, true, 0
	}
}

func (n *naive) leave(m *nParty) {
	l := n.lane(m.lane)
	m.in, m.missed, m.urgent = false, 0, 0
	m.deficit = min(m.deficit, n.set.InitialBurstCredit*1000*l.ring.w)
	if l.ring.open == &m.nMember {
		l.ring.open = nil
	}
}

func (n *naive) mark() {
	for _, l := range n.lanes {
		busy := !l.Paused && slices.ContainsFunc(n.in(l), func(m *nParty) bool { return len(m.heads) > 0 })
		if busy && !l.busy {
			l.missed = 0
		}
		if !busy && l.busy {
			n.ring.credit(&l.nMember, n.laneLargest(l))
		}
		l.busy = busy
	}
}

// answer tells what came of a start.
func (n *naive) answer(id uuid.UUID, gate plan.Gate, pool string) {
	i := slices.IndexFunc(n.starts, func(s *nStart) bool { return s.task.TaskID == id })
	s := n.starts[i]
	if gate == "" {
		delete(n.tasks, id)
		return
	}
	n.count(s, -1)
	if s.charged {
		s.party.deficit += n.charge(s.lane, s.task.CostMilli) * s.lane.ring.w
	}
	if s.paid {
		s.lane.deficit += s.task.CostMilli * n.ring.w
	}
	r := n.rule(s.task.TenantID)
	s.task.refused, s.task.pool, s.task.fresh, s.task.until = gate, pool, true, n.now+5
	s.task.capped = min(r.UserMaxRunningTasks, r.UserMaxRunningImage, r.UserMaxRunningVideo) < r.MaxRunningTasks
}

// settle ends the cycle.
func (n *naive) settle() {
	n.look()
	for _, m := range n.parties {
		if m.in && len(m.heads) == 0 {
			n.leave(m)
		}
	}
	for _, t := range n.tasks {
		if t.fresh {
			t.fresh, t.seen = false, n.behind(t)
		}
	}
}

// behind are the numbers that a refusal is about: while they stand, the task is passed over.
func (n *naive) behind(t *nTask) [3]int64 {
	switch t.refused {
	case plan.GatePool:
		p, _ := n.w.doc.Pool(t.pool)
		return [3]int64{n.pools[t.pool], -1, p.CapacityUnits}
	case plan.GateAccount:
		own, _ := n.w.accounts(t.Lane)
		return [3]int64{n.use[t.Lane].Own, n.common, own}
	case plan.GateTenant:
		u := n.used[t.TenantID]
		return [3]int64{u.Units, u.Tasks, n.version}
	case plan.GateUser:
		if t.capped {
			u := n.users[plan.TenantUser{Tenant: t.TenantID, User: t.UserID}]
			return [3]int64{u.Tasks, u.Image, u.Video}
		}
	}
	return [3]int64{n.version}
}
