package plan

import (
	"time"

	"github.com/google/uuid"

	"fairlane/control"
)

// Explanation is why a task waits: its gates in the order in which they are tried, up to and with the
// one that holds it, each with its numbers, and the least that would have to change for it to start now.
type Explanation struct {
	At      time.Time
	Version int64 // of the policy
	Holds   Gate
	Gates   []GateReport
	Base    int64    // quantum of the heaviest tenant, milli-units
	Changes []Change // all of them together; none when the task only waits for its turn
}

// Number returns a number of the gate that holds the task, by name; 0 when it has none of that name.
func (x *Explanation) Number(name string) int64 {
	for _, g := range x.Gates {
		for _, n := range g.Numbers {
			if g.Holds && n.Name == name {
				return n.Value
			}
		}
	}
	return 0
}

// GateReport is one gate with what it found.
type GateReport struct {
	Gate    Gate
	Holds   bool
	Numbers []Number
	Options []Option // accounts or pools that were tried
}

// Number is a number of an explanation.
type Number struct {
	Name  string // wanted, free, used, limit, capacity, reserved, running, until, deficit, debt, cost, rounds, quantum, expected, promise, kept, lent, borrowed, largest
	Value int64
	Unit  Unit
}

// Unit says how a number is meant.
type Unit int

// The units of numbers.
const (
	Whole   Unit = iota // slot units, tasks, rounds
	Milli               // fairness milli-units
	Seconds             // a length of time
	Instant             // Unix seconds
)

// Option is an account or a pool that was tried.
type Option struct {
	Account control.Account // "": it is a pool
	Lender  string
	Pool    string
	Reason  Reason // "": it would take the task
	Numbers []Number
}

// Reason is why an account or a pool gives nothing.
type Reason string

// The reasons of accounts and pools.
const (
	NoUnits       Reason = "NO_UNITS"       // nothing left
	NotLent       Reason = "NOT_LENT"       // nobody lends to the lane
	AtLimit       Reason = "LIMIT"          // the lane borrows as much as it may
	TooLong       Reason = "TOO_LONG"       // the task may take longer than the promise
	LenderStopped Reason = "LENDER_STOPPED" // the lender needs its units itself
	AllLent       Reason = "LENDABLE"       // it lends as much as it may
	OnlyHeadroom  Reason = "HEADROOM"       // what is left is never lent
	NoLookUp      Reason = "NO_LOOKUP"      // a provider that cannot look jobs up takes nothing borrowed
	Paused        Reason = "PAUSED"
	BreakerOpen   Reason = "BREAKER"
	AtAdaptive    Reason = "ADAPTIVE"
	KeptForLane   Reason = "LANE_MINIMUM"
	KeptForTask   Reason = "EARMARK"
	TooSmall      Reason = "TOO_SMALL"
	Dedicated     Reason = "DEDICATED"
	Full          Reason = "FULL"
)

// Change is one change of policy or state.
type Change struct {
	What     What
	Object   string // lane, pool, tenant's code, pool group or model; "": none
	From, To int64  // of the field; instants in Unix seconds
}

// What is changed.
type What string

// The changes that an explanation can name.
const (
	WaitUntil       What = "WAIT_UNTIL"
	ResumeLane      What = "RESUME_LANE"
	ResumePool      What = "RESUME_POOL"
	ReinstateTenant What = "REINSTATE_TENANT"
	RaiseTenant     What = "TENANT_MAX_UNITS"
	RaiseTasks      What = "TENANT_MAX_TASKS"
	RaiseUser       What = "USER_MAX_TASKS"
	RaiseReserve    What = "LANE_RESERVED"
	RaiseBorrow     What = "LANE_BORROW_LIMIT"
	RaiseCommon     What = "GROUP_CAPACITY" // of its pools together and of its cap
	RaisePool       What = "POOL_CAPACITY"
	CloseBreaker    What = "BREAKER_CLOSES"
	EndEarmark      What = "EARMARK_ENDS"
	AllowPool       What = "POOL_DEDICATION"
	AddPool         What = "POOL_FOR_MODEL"
)

// Waiting is a task that Explain is asked about.
type Waiting struct {
	TaskID, TenantID, UserID uuid.UUID
	Lane                     string
	Need                     control.Need
	CostMilli                int64 // fairness milli-units
	EligibleAt               time.Time
}

// Explain says why a task waits, as of the last cycle. A task behind others of its tenant is explained
// as if it were the first.
func (p *Planner) Explain(t Waiting) Explanation {
	x := explaining{p: p, t: t, out: Explanation{At: p.now, Version: p.policy.Version, Base: p.settings().BaseMilli}}
	x.gates()
	return x.out
}

// explaining is an explanation in the making.
type explaining struct {
	p   *Planner
	t   Waiting
	l   *lane
	m   *party
	s   *stand
	out Explanation
}

func (x *explaining) gates() {
	p := x.p
	x.l, x.m = p.lanes[x.t.Lane], p.find(x.t.TenantID, x.t.Lane)
	x.tell(GateNotEligible, x.t.EligibleAt.After(p.now), []Number{{"until", x.t.EligibleAt.Unix(), Instant}})
	if x.t.EligibleAt.After(p.now) {
		x.need(WaitUntil, "", p.now.Unix(), x.t.EligibleAt.Unix())
	}
	if x.l == nil {
		x.tell(GateLane, true, nil)
		return
	}
	t := p.tenants[x.t.TenantID]
	if t == nil {
		t = &tenant{id: x.t.TenantID, rule: p.policy.tenants[x.t.TenantID]}
	}
	if t.rule == nil || t.rule.Suspended {
		x.tell(GateTenant, true, nil)
		if t.rule != nil {
			x.need(ReinstateTenant, t.rule.Code, 0, 0)
		}
		return
	}
	if x.m == nil { // nothing of it can be seen yet
		x.m = &party{code: x.t.Lane, lane: x.l, who: t}
	}
	x.s = p.resolve(x.l, t, x.t.Need)
	for i := range x.m.heads {
		if h := &x.m.heads[i]; h.TaskID == x.t.TaskID {
			x.s.hold = p.at(h).hold
		}
	}
	x.neverFits()
	x.lane()
	x.tenant()
	x.user()
	account := x.account()
	x.pool(account == control.AccountBorrowed)
	if f := p.refused[x.t.TaskID]; f != nil { // a claim has seen what the counters do not show yet
		x.tell(f.gate, true, nil)
	}
	x.turn()
}

// tell reports a gate; the first that holds is the one that holds the task.
func (x *explaining) tell(gate Gate, holds bool, numbers []Number, options ...Option) {
	if x.out.Holds != "" {
		return
	}
	if holds {
		x.out.Holds = gate
	}
	x.out.Gates = append(x.out.Gates, GateReport{gate, holds, numbers, options})
}

// need names a change, whatever gate it is for: all of them are needed.
func (x *explaining) need(what What, object string, from, to int64) {
	x.out.Changes = append(x.out.Changes, Change{what, object, from, to})
}

func (x *explaining) neverFits() {
	p, r, n := x.p, x.m.who.rule, x.s.need.SlotUnits
	never := p.neverFits(x.m, x.s)
	x.tell(GateNeverFits, never, []Number{
		{"wanted", n, Whole}, {"largest", x.s.widest, Whole}, {"limit", r.MaxRunningUnits, Whole}, {"reserved", p.couldHold(x.s), Whole},
	})
}

func (x *explaining) lane() {
	x.tell(GateLane, x.l.rule.paused, nil)
	if x.l.rule.paused {
		x.need(ResumeLane, x.l.rule.code, 0, 0)
	}
}

func (x *explaining) tenant() {
	r, used, n := x.m.who.rule, x.m.who.used, x.s.need.SlotUnits
	x.tell(GateTenant, used.Units+n > r.MaxRunningUnits || used.Tasks >= r.MaxRunningTasks, []Number{
		{"wanted", n, Whole}, {"used", used.Units, Whole}, {"limit", r.MaxRunningUnits, Whole}, {"running", used.Tasks, Whole},
	})
	if used.Units+n > r.MaxRunningUnits {
		x.need(RaiseTenant, r.Code, r.MaxRunningUnits, used.Units+n)
	}
	if used.Tasks >= r.MaxRunningTasks {
		x.need(RaiseTasks, r.Code, r.MaxRunningTasks, used.Tasks+1)
	}
}

func (x *explaining) user() {
	r, u := x.m.who.rule, x.p.users[TenantUser{x.t.TenantID, x.t.UserID}]
	if u == nil {
		x.tell(GateUser, false, nil)
		return
	}
	running, limit := u.Tasks, r.UserMaxRunningTasks
	switch kind := x.s.need.Kind; {
	case u.Tasks >= limit:
	case kind == control.KindImage && u.Image >= r.UserMaxRunningImage:
		running, limit = u.Image, r.UserMaxRunningImage
	case kind == control.KindVideo && u.Video >= r.UserMaxRunningVideo:
		running, limit = u.Video, r.UserMaxRunningVideo
	}
	x.tell(GateUser, running >= limit, []Number{{"running", running, Whole}, {"limit", limit, Whole}})
	if running >= limit {
		x.need(RaiseUser, r.Code, limit, running+1)
	}
}

// turn is the last gate: the task could start, but others go first.
func (x *explaining) turn() {
	m, l := x.m, x.l
	numbers := []Number{
		{"cost", x.t.CostMilli, Milli}, {"deficit", m.Deficit() / l.ring.W(), Milli}, {"debt", m.Debt() / l.ring.W(), Milli},
		{"quantum", l.ring.Quantum(&m.Member) / l.ring.W(), Milli},
	}
	if m.In() && m.Weight() > 0 {
		c := min(x.p.charge(l, min(max(x.t.CostMilli, control.Milli), maxCost)), l.ring.Cap(&m.Member, l.ring.Cost(maxCost)))
		numbers = append(numbers, Number{"rounds", l.ring.Key(&m.Member, c).Round - l.ring.Now().Round, Whole})
	}
	x.tell(GateTurn, true, numbers)
}

func (p *Planner) find(id uuid.UUID, code string) *party {
	if t := p.tenants[id]; t != nil {
		for _, m := range t.parties {
			if m.code == code {
				return m
			}
		}
	}
	return nil
}
