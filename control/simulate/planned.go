package simulate

import (
	"time"

	"fairlane/control/plan"
	"fairlane/control/queue"
)

// planned is the product's own way to decide: its planner over its queue, one of each per pool group.
type planned struct {
	w      *world
	groups []*planner
	of     map[string]*planner
}

type planner struct {
	group   string
	planner *plan.Planner
	queue   *queue.Memory
}

// batch is how many starts one claim carries.
const batch = 100

func newPlanned(w *world) (*planned, error) {
	accounts := make([]plan.TenantPlan, len(w.tenants))
	for i, t := range w.tenants {
		accounts[i] = plan.Tenant(t.account)
	}
	compiled, err := plan.Compile(w.doc, 1, accounts)
	if err != nil {
		return nil, err
	}
	d := &planned{w: w, of: map[string]*planner{}}
	for _, g := range w.groups {
		q := queue.NewMemory()
		p := &planner{group: g.code, queue: q, planner: plan.NewPlanner(g.code, compiled, q)}
		d.groups = append(d.groups, p)
		d.of[g.code] = p
	}
	return d, nil
}

func (d *planned) add(t *task) error {
	at := Epoch.Add(time.Duration(t.at) * time.Microsecond)
	return d.of[t.account.key.Group].queue.Upsert(queue.Item{
		TaskID: t.id, Version: 1, TenantID: t.party.tenant.account.ID, UserID: t.user.id,
		Lane: t.account.key.Lane, Group: t.account.key.Group, Band: t.band, Route: t.route, Model: t.model.code,
		Kind: t.model.kind, SlotUnits: t.charge.SlotUnits, CostMilli: t.charge.Milli, P95: t.p95, QueuedSince: at, EligibleAt: at,
	})
}

func (d *planned) remove(t *task) { d.of[t.account.key.Group].queue.Remove(t.id, 1) }

func (d *planned) decide() (wake int64, err error) {
	for _, p := range d.groups {
		at, err := d.plan(p)
		if err != nil {
			return 0, err
		}
		if at > 0 && (wake == 0 || at < wake) {
			wake = at
		}
	}
	return wake, nil
}

// mostCycles bounds the cycles of one instant, far beyond what any backlog needs.
const mostCycles = 100_000

// plan makes plans and claims them until nothing more can start.
func (d *planned) plan(p *planner) (wake int64, err error) {
	w := d.w
	for range mostCycles {
		w.result.cycles++
		p.planner.Needs(w.time())
		out := p.planner.Cycle(w.time(), w.snapshot(), batch)
		for _, l := range out.Relabels {
			w.relabel(l)
		}
		w.flag(p.group, out.Lending, false)
		for _, r := range out.Repaid {
			w.count.debts[r.TenantLane] -= r.Milli
		}
		granted := 0
		claimed := make([]*plan.Start, 0, len(out.Starts))
		for i := range out.Starts {
			s := &out.Starts[i]
			gate, full := w.grant(s)
			if gate != "" {
				w.result.refusals++
				p.planner.Refuse(s.TaskID, gate, full)
				continue
			}
			granted++
			p.planner.Confirm(s.TaskID)
			claimed = append(claimed, s)
		}
		w.flag(p.group, out.Lending, true)
		p.planner.Settle()
		for _, s := range claimed {
			p.queue.Remove(s.TaskID, s.TaskVersion+1)
		}
		if !out.More || granted == 0 {
			if out.Wake.IsZero() {
				return 0, nil
			}
			return out.Wake.Sub(Epoch).Microseconds(), nil
		}
	}
	return 0, fault("after %d plans of one instant there was still more to start", mostCycles)
}

// flag notes the lanes that lend again, before the starts of their plan, or that stop to, after them.
func (w *world) flag(group string, changes []plan.Lending, stopped bool) {
	for _, l := range changes {
		if l.Stopped == stopped {
			key := plan.LaneGroup{Lane: l.Lane, Group: group}
			use := w.count.lanes[key]
			use.Stopped = stopped
			w.count.lanes[key] = use
		}
	}
}

// snapshot hands the counters over as they are: nothing changes them before the plan is made.
func (w *world) snapshot() plan.Snapshot {
	s := plan.Snapshot{
		At: w.time(), Lanes: w.count.lanes, Common: w.count.common, Pools: w.count.pools,
		Tenants: w.count.tenants, InLane: w.count.inLane, Users: w.count.users, Debts: w.count.debts,
	}
	for _, t := range w.loans[:min(len(w.loans), plan.MaxLoans)] {
		s.Loans = append(s.Loans, plan.Loan{AttemptID: t.attempt, Lane: t.start.Lane, Lender: t.start.Lender, Units: t.charge.SlotUnits})
	}
	return s
}

var _ plan.Queue = (*queue.Memory)(nil)
