package plan

import (
	"time"

	"github.com/google/uuid"

	"fairlane/control"
)

// Waiting is a task that Why is asked about.
type Waiting struct {
	TaskID, TenantID, UserID uuid.UUID
	Lane                     string
	Need                     control.Need
	EligibleAt               time.Time
}

// Held lists the first task of at most limit tenants and the gate that holds it, as of the last cycle.
func (p *Planner) Held(limit int) []Held {
	var out []Held
	for _, l := range p.order {
		for _, m := range l.parties {
			if len(out) == limit {
				return out
			}
			if len(m.heads) > 0 {
				out = append(out, p.held(m, m.heads[0].TaskID, p.at(&m.heads[0])))
			}
		}
	}
	return out
}

// Why names the gate that holds a waiting task, as of the last cycle; for a task behind others of its
// tenant, the gate that would hold it if it were the first.
func (p *Planner) Why(t Waiting) Held {
	out := Held{TaskID: t.TaskID, TenantID: t.TenantID, Lane: t.Lane, Wanted: t.Need.SlotUnits}
	m := p.find(t.TenantID, t.Lane)
	switch {
	case p.lanes[t.Lane] == nil:
		out.Gate = GateLane
		return out
	case m == nil || m.who.rule == nil || m.who.rule.Suspended:
		out.Gate = GateTenant
		return out
	case t.EligibleAt.After(p.now):
		out.Gate = GateNotEligible
		return out
	}
	n := p.resolve(m.lane, m.who, t.Need)
	for i := range m.heads {
		if h := &m.heads[i]; h.TaskID == t.TaskID {
			n = p.at(h)
		}
	}
	switch f, u := p.refused[t.TaskID], p.users[TenantUser{t.TenantID, t.UserID}]; {
	case p.neverFits(m, n):
		out.Gate = GateNeverFits
	case f != nil:
		out.Gate = f.gate
	case u != nil && u.atCap(m.who.rule, n.need.Kind):
		out.Gate = GateUser
	default:
		return p.held(m, t.TaskID, n)
	}
	return out
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

// held tries the gates that an unparked task meets, in order.
func (p *Planner) held(m *party, task uuid.UUID, n *stand) Held {
	l, r, s := m.lane, m.who.rule, n.need.SlotUnits
	out := Held{TaskID: task, TenantID: m.who.id, Lane: m.code, Wanted: s, Gate: GateTurn}
	switch {
	case l.rule.paused:
		out.Gate = GateLane
	case m.who.used.Units+s > r.MaxRunningUnits:
		out.Gate, out.Free = GateTenant, max(0, r.MaxRunningUnits-m.who.used.Units)
	case m.who.used.Tasks >= r.MaxRunningTasks:
		out.Gate = GateTenant
	default:
		account, _ := p.account(n)
		switch {
		case account == "":
			out.Gate, out.Free = GateAccount, max(0, l.own()-p.heldBefore(n), p.rules.common-p.common)
		case n.fit(account == control.AccountBorrowed) == nil:
			out.Gate = GatePool
			for _, o := range n.pools {
				out.Free = max(out.Free, o.freeFor(l.rule.code, n.hold))
			}
		}
	}
	return out
}
