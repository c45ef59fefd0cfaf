package plan_test

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/queue"
	"fairlane/policy"
)

// world is a small installation around a planner: the rows that a claim moves, and what it refuses.
type world struct {
	doc     *policy.Document
	tenants []plan.TenantPlan
	version int64
	queue   *queue.Memory
	planner *plan.Planner
	now     int64 // seconds
	lanes   map[plan.LaneGroup]plan.LaneUse
	common  map[string]int64
	pools   map[string]plan.PoolUse
	used    map[uuid.UUID]plan.TenantUse
	inLane  map[plan.TenantLane]plan.Use
	users   map[plan.TenantUser]plan.UserUse
	debts   map[plan.TenantLane]int64
	stopped map[string]bool // lanes that lend nothing
	loans   []plan.Loan     // oldest first; an attempt is named by its task
	running map[uuid.UUID]running
	refuse  func(plan.Start) plan.Gate  // additional refusals; nil: none
	refused func(plan.Start, plan.Gate) // is told of every refusal; nil: nobody is
	batch   int
}

type running struct {
	plan.Start
	until int64
}

const testGroup = "G"

var epoch = time.Unix(1_700_000_000, 0).UTC()

func second(n int64) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

// numbered makes an id whose order is the number's.
func numbered(space byte, n int) uuid.UUID {
	var id uuid.UUID
	id[0] = space
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

func newWorld(doc *policy.Document, tenants []plan.TenantPlan) (*world, error) {
	w := &world{
		doc: doc, tenants: tenants, queue: queue.NewMemory(), batch: 1 << 30,
		lanes: map[plan.LaneGroup]plan.LaneUse{}, common: map[string]int64{}, pools: map[string]plan.PoolUse{},
		used: map[uuid.UUID]plan.TenantUse{}, inLane: map[plan.TenantLane]plan.Use{}, users: map[plan.TenantUser]plan.UserUse{},
		running: map[uuid.UUID]running{}, debts: map[plan.TenantLane]int64{}, stopped: map[string]bool{},
	}
	p, err := plan.Compile(doc, 1, tenants)
	if err != nil {
		return nil, err
	}
	w.planner = plan.NewPlanner(testGroup, p, w.queue)
	return w, nil
}

// publish puts the document, which the caller has changed, in force.
func (w *world) publish() error {
	w.version++
	p, err := plan.Compile(w.doc, w.version+1, w.tenants)
	if err == nil {
		w.planner.Publish(p)
	}
	return err
}

// snapshot is what the query would read.
func (w *world) snapshot(needs plan.Needs) plan.Snapshot {
	s := plan.Snapshot{
		At: second(w.now), Lanes: w.lanes, Common: w.common, Pools: w.pools,
		Tenants: map[uuid.UUID]plan.TenantUse{}, InLane: map[plan.TenantLane]plan.Use{}, Users: map[plan.TenantUser]plan.UserUse{},
		Debts: map[plan.TenantLane]int64{}, Loans: slices.Clone(w.loans),
	}
	for _, l := range w.doc.Lanes {
		key := plan.LaneGroup{Lane: l.Code, Group: testGroup}
		u := w.lanes[key]
		u.Stopped = w.stopped[l.Code]
		w.lanes[key] = u
	}
	for _, id := range needs.Tenants {
		if u, ok := w.used[id]; ok {
			s.Tenants[id] = u
		}
		for _, l := range w.doc.Lanes {
			if u, ok := w.inLane[plan.TenantLane{Tenant: id, Lane: l.Code}]; ok {
				s.InLane[plan.TenantLane{Tenant: id, Lane: l.Code}] = u
			}
			s.Debts[plan.TenantLane{Tenant: id, Lane: l.Code}] = w.debts[plan.TenantLane{Tenant: id, Lane: l.Code}]
		}
	}
	for _, id := range needs.Users {
		if u, ok := w.users[id]; ok {
			s.Users[id] = u
		}
	}
	return s
}

// cycle runs cycles until nothing more can start, and returns the starts that were claimed in order.
func (w *world) cycle(run func(plan.Start) int64) []plan.Start {
	var out []plan.Start
	for {
		needs := w.planner.Needs(second(w.now))
		p := w.planner.Cycle(second(w.now), w.snapshot(needs), w.batch)
		var claimed []plan.Start
		w.beside(p)
		for _, s := range p.Starts {
			if gate, pool := w.check(s); gate != "" {
				if w.refused != nil {
					w.refused(s, gate)
				}
				w.planner.Refuse(s.TaskID, gate, pool)
				continue
			}
			w.count(s, 1)
			w.running[s.TaskID] = running{s, w.now + run(s)}
			w.planner.Confirm(s.TaskID)
			claimed = append(claimed, s)
		}
		w.lend(p, true)
		w.planner.Settle()
		for _, s := range claimed {
			w.queue.Remove(s.TaskID, s.TaskVersion)
		}
		out = append(out, claimed...)
		if !p.More {
			return out
		}
	}
}

// beside does what a claim writes beside its starts.
func (w *world) beside(p plan.Plan) {
	w.lend(p, false)
	for _, r := range p.Repaid {
		w.debts[r.TenantLane] -= r.Milli
	}
	for _, loan := range p.Relabels {
		r, ok := w.running[loan.AttemptID]
		if !ok || r.Account != control.AccountBorrowed {
			panic("a loan that does not run was relabelled")
		}
		w.count(r.Start, -1)
		r.Account, r.Lender = control.AccountOwn, ""
		w.count(r.Start, 1)
		w.running[loan.AttemptID] = r
	}
}

// lend writes the flags of lanes that lend again, before the starts, or stop to, after them.
func (w *world) lend(p plan.Plan, stopped bool) {
	for _, l := range p.Lending {
		if l.Stopped == stopped {
			w.stopped[l.Lane] = stopped
		}
	}
}

// check is the claim's own look at every limit.
func (w *world) check(s plan.Start) (plan.Gate, string) {
	if w.refuse != nil {
		if gate := w.refuse(s); gate != "" {
			return gate, s.Pool
		}
	}
	var plans, _ = w.doc.Plan(w.planOf(s.TenantID))
	set := plans.Settings
	if o, ok := w.doc.Override(s.TenantID); ok {
		set = o.Over(set)
	}
	t, u := w.used[s.TenantID], w.users[plan.TenantUser{Tenant: s.TenantID, User: s.UserID}]
	if t.Units+s.SlotUnits > set.MaxRunningUnits || t.Tasks >= set.MaxRunningTasks {
		return plan.GateTenant, ""
	}
	if u.Tasks >= set.UserMaxRunningTasks || s.Kind == control.KindImage && u.Image >= set.UserMaxRunningImage || s.Kind == control.KindVideo && u.Video >= set.UserMaxRunningVideo {
		return plan.GateUser, ""
	}
	if lane, ok := w.doc.Lane(s.Lane); !ok || lane.Paused {
		return plan.GateLane, ""
	}
	own, common := w.accounts(s.Lane)
	l := w.lanes[plan.LaneGroup{Lane: s.Lane, Group: testGroup}]
	if s.Account == control.AccountOwn && l.Own+l.Lent+s.SlotUnits > own || s.Account == control.AccountCommon && w.common[testGroup]+s.SlotUnits > common ||
		s.Account == control.AccountBorrowed && !w.lends(s, l) {
		return plan.GateAccount, ""
	}
	for _, key := range append([]string{s.Pool}, s.CapGroups...) {
		if p, _ := w.doc.Pool(key); w.pools[key].Used+s.SlotUnits > p.CapacityUnits || p.Paused {
			return plan.GatePool, key
		}
	}
	return "", ""
}

// lends reports whether the lender of a start has the units to lend, and the lane may borrow them (I06).
func (w *world) lends(s plan.Start, l plan.LaneUse) bool {
	borrower, _ := w.doc.Lane(s.Lane)
	lender, ok := w.doc.Lane(s.Lender)
	if !ok {
		return false
	}
	a, m := lender.Accounts[0], w.lanes[plan.LaneGroup{Lane: s.Lender, Group: testGroup}]
	return slices.Contains(a.LendsTo, s.Lane) && !w.stopped[s.Lender] && l.Borrowed+s.SlotUnits <= borrower.Accounts[0].BorrowLimit &&
		m.Lent+s.SlotUnits <= a.LendableUnits && m.Own+m.Lent+s.SlotUnits <= a.ReservedUnits-a.HeadroomUnits
}

func (w *world) planOf(tenant uuid.UUID) string {
	i := slices.IndexFunc(w.tenants, func(t plan.TenantPlan) bool { return t.ID == tenant })
	return w.tenants[i].PlanCode
}

// accounts returns a lane's own units and the common units of the group.
func (w *world) accounts(code string) (own, common int64) {
	lane, _ := w.doc.Lane(code)
	for _, a := range lane.Accounts {
		own += a.ReservedUnits
	}
	return own, max(0, w.doc.GroupCapacity(testGroup)-w.doc.GroupReserved(testGroup))
}

// count moves the counters by a start or its release.
func (w *world) count(s plan.Start, by int64) {
	units := by * s.SlotUnits
	lg, tl, tu := plan.LaneGroup{Lane: s.Lane, Group: testGroup}, plan.TenantLane{Tenant: s.TenantID, Lane: s.Lane}, plan.TenantUser{Tenant: s.TenantID, User: s.UserID}
	l, t, il, u := w.lanes[lg], w.used[s.TenantID], w.inLane[tl], w.users[tu]
	switch s.Account {
	case control.AccountOwn:
		l.Own += units
	case control.AccountCommon:
		l.Common += units
		w.common[testGroup] += units
	default:
		l.Borrowed += units
		m := w.lanes[plan.LaneGroup{Lane: s.Lender, Group: testGroup}]
		m.Lent += units
		w.lanes[plan.LaneGroup{Lane: s.Lender, Group: testGroup}] = m
		if by > 0 {
			w.loans = append(w.loans, plan.Loan{AttemptID: s.TaskID, Lane: s.Lane, Lender: s.Lender, Units: s.SlotUnits})
		} else {
			w.loans = slices.DeleteFunc(w.loans, func(o plan.Loan) bool { return o.AttemptID == s.TaskID })
		}
	}
	t.Units, t.Tasks = t.Units+units, t.Tasks+by
	il.Units, il.Tasks = il.Units+units, il.Tasks+by
	u.Tasks += by
	if s.Kind == control.KindImage {
		u.Image += by
	} else {
		u.Video += by
	}
	w.lanes[lg], w.used[s.TenantID], w.inLane[tl], w.users[tu] = l, t, il, u
	for _, key := range append([]string{s.Pool}, s.CapGroups...) {
		p, ok := w.pools[key]
		if !ok {
			p.Limit = -1
		}
		p.Used += units
		p.Lanes = maps.Clone(p.Lanes)
		if p.Lanes == nil {
			p.Lanes = map[string]int64{}
		}
		p.Lanes[s.Lane] += units
		w.pools[key] = p
	}
}

// complete ends everything whose time has come and returns the ids in order of id.
func (w *world) complete() {
	for _, r := range w.ended() {
		w.finish(r.TaskID)
	}
}

// ended lists what runs and whose time has come, in order of id.
func (w *world) ended() (done []running) {
	for _, r := range w.running {
		if r.until <= w.now {
			done = append(done, r)
		}
	}
	slices.SortFunc(done, func(a, b running) int { return slices.Compare(a.TaskID[:], b.TaskID[:]) })
	return done
}

func (w *world) finish(task uuid.UUID) {
	w.count(w.running[task].Start, -1)
	delete(w.running, task)
}

// nextEnd is when the next running task ends; ok is false when none runs.
func (w *world) nextEnd() (at int64, ok bool) {
	for _, r := range w.running {
		if !ok || r.until < at {
			at, ok = r.until, true
		}
	}
	return at, ok
}
