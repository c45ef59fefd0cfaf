package plan_test

import (
	"bytes"
	"maps"
	"slices"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/queue"
	"fairlane/policy"
)

// naive is the second opinion: the same rules over plain lists, walking every round turn by turn.
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
	use      map[string]plan.LaneUse
	common   int64
	pools    map[string]plan.PoolUse
	holds    map[string]*nTask // by pool
	tickets  int64
	relabels []plan.Loan
	used     map[uuid.UUID]plan.Use
	inLane   map[plan.TenantLane]plan.Use
	users    map[plan.TenantUser]plan.UserUse
}

type nTask struct {
	queue.Item
	hidden  bool
	visible bool // it has been eligible in a cycle
	nPassed
	refused plan.Gate
	fresh   bool
	pool    string
	capped  bool // user caps could bind when it was planned
	need    control.Need
	never   bool  // it never fits, under version judged
	judged  int64 // 0: not looked at
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
	loosed bool // an earmark has given own units back since loans were relabelled
	nLending
}

type nParty struct {
	nMember
	lane    string
	tenant  uuid.UUID
	in      bool
	largest int64 // units in milli of the most expensive head, when last looked at
	heads   []*nTask
	urgent  int
	owed    int64 // debt in milli-units as the database has it
}

type nStart struct {
	task    *nTask
	party   *nParty
	lane    *nLane
	pool    string
	account control.Account
	lender  *nLane
	charged bool
	paid    bool
}

func newNaive(w *world) *naive {
	n := &naive{w: w, tasks: map[uuid.UUID]*nTask{}, streaks: map[uuid.UUID]int{}, holds: map[string]*nTask{}}
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
		changed := l.Strategy != d.Lanes[i].Strategy
		l.Lane = d.Lanes[i]
		if changed {
			for _, m := range n.all(l) {
				m.deficit, m.debt = 0, m.owed*l.ring.w
				if l.Strategy == policy.WRR {
					m.debt = 0
				}
			}
		}
		l.Paused = l.Paused || !d.Switches.SchedulingRunning
		l.weight = l.Weight
		n.retune(l)
	}
	n.look()
}

func (n *naive) scaleAll(r *nRing, w int64, each func(func(*nMember))) {
	if r.w > 0 {
		each(func(m *nMember) { m.deficit, m.debt = m.deficit*w/r.w, m.debt*w/r.w })
	}
	r.w, r.base, r.burst, r.repay = w, n.set.BaseQuantumUnits*1000, n.set.BurstRounds, n.set.RepayPermille
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
	n.tasks[it.TaskID] = &nTask{Item: it, nPassed: nPassed{since: -1}, need: control.Need{
		Route: it.Route, Model: it.Model, Kind: it.Kind, SlotUnits: it.SlotUnits, P95: control.ClassOfP95(it.P95),
	}}
	n.party(it)
}

func (n *naive) cancel(id uuid.UUID) {
	n.release(n.tasks[id])
	delete(n.tasks, id)
}

// cycle plans like the planner, and leaves the starts to be answered.
func (n *naive) cycle(now int64, batch int) (out plan.Plan) {
	n.now = now
	n.see()
	n.look()
	n.load()
	for _, t := range n.tasks {
		if t.refused != "" && (n.behind(t) != t.seen || n.now >= t.until) {
			t.refused, t.hidden = "", false
		}
	}
	n.look()
	n.enroll()
	n.mark()
	n.endHolds()
	n.waitTickets()
	n.relabel()
	n.starts = nil
	for len(n.starts) < batch {
		if out.More = n.mustRelabel(); out.More {
			break
		}
		n.lookLending()
		n.grantHolds()
		if !n.pick() {
			break
		}
		n.look()
		n.mark()
	}
	for _, s := range n.starts {
		start := plan.Start{TaskID: s.task.TaskID, Pool: s.pool, Account: s.account}
		if s.lender != nil {
			start.Lender = s.lender.Code
		}
		out.Starts = append(out.Starts, start)
	}
	out.More = out.More || len(n.starts) == batch
	out.Relabels, out.Lending, out.Repaid = n.relabels, n.lendingMoved(), n.repaid()
	return out
}

// see lets the eligible tasks be seen: what has come since is not seen before the next cycle, not even by
// a publish.
func (n *naive) see() {
	for _, t := range n.tasks {
		t.visible = t.visible || !t.EligibleAt.After(second(n.now))
	}
}

func (n *naive) load() {
	n.see()
	n.use, n.pools = map[string]plan.LaneUse{}, map[string]plan.PoolUse{}
	n.used, n.inLane, n.users = map[uuid.UUID]plan.Use{}, map[plan.TenantLane]plan.Use{}, map[plan.TenantUser]plan.UserUse{}
	for k, v := range n.w.lanes {
		n.use[k.Lane] = v
	}
	for k, v := range n.w.pools {
		v.Lanes = maps.Clone(v.Lanes)
		n.pools[k] = v
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
	for _, m := range n.parties {
		n.owe(m)
	}
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
	n.forgetPassed()
}

// heads of each band and route, and later ones of the route and other needs, in no order.
func (n *naive) heads(m *nParty) (out []*nTask) {
	type kind struct {
		band  control.Band
		route string
	}
	groups := map[kind][]*nTask{}
	for _, t := range n.tasks {
		if t.Lane == m.lane && t.TenantID == m.tenant && !t.hidden && t.visible && !n.neverFits(t) && !n.userFull(t) {
			groups[kind{t.Band, t.Route}] = append(groups[kind{t.Band, t.Route}], t)
		}
	}
	for _, g := range groups {
		slices.SortFunc(g, older)
		met := map[control.Need]bool{}
		for i, t := range g {
			t.first = i == 0
			if need := t.need; i <= int(n.set.FitScan) && !met[need] {
				met[need] = true
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
	if l.Strategy != policy.WRR {
		m.debt += (m.owed*l.ring.w - m.debt) % l.ring.w
	}
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
