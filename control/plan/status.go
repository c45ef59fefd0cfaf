package plan

import (
	"time"

	"github.com/google/uuid"
)

// Status is what a planner remembers from cycle to cycle, for people: pages show it, nothing decides by it.
type Status struct {
	At       time.Time      `json:"at"` // of the last cycle
	Version  int64          `json:"version"`
	Lanes    []LaneStatus   `json:"lanes"`
	Tenants  []TenantStatus `json:"tenants"` // with waiting heads, at most the number asked for
	Earmarks []Earmark      `json:"earmarks"`
}

// LaneStatus is a lane's place in the ring of lanes.
type LaneStatus struct {
	Lane         string    `json:"lane"`
	DeficitMilli int64     `json:"deficit_milli"`
	Waiting      int       `json:"waiting"`           // tenants with unparked heads
	Unmet        int64     `json:"unmet,omitempty"`   // smallest slots that wait for lane units alone; 0: none
	Stopped      bool      `json:"stopped,omitempty"` // it lends nothing for now
	StoppedSince time.Time `json:"stopped_since,omitzero"`
}

// TenantStatus is a tenant's place in its lane's ring. Milli-units.
type TenantStatus struct {
	Tenant       uuid.UUID `json:"tenant"`
	Lane         string    `json:"lane"`
	DeficitMilli int64     `json:"deficit_milli"`
	DebtMilli    int64     `json:"debt_milli"` // below 0: credit
}

// Earmark keeps units of a pool for a task that was passed over too often.
type Earmark struct {
	Pool   string    `json:"pool"`
	Groups []string  `json:"groups,omitempty"` // cap groups of it that keep them too, because they lacked them
	Task   uuid.UUID `json:"task"`
	Tenant uuid.UUID `json:"tenant"`
	Lane   string    `json:"lane"`
	Units  int64     `json:"units"`
	OfLane bool      `json:"of_lane,omitempty"` // own units of the lane are kept as well
	Until  time.Time `json:"until"`
}

// Status tells what the planner remembers as of the last cycle, of at most limit tenants: those whose
// turn comes next by place first.
func (p *Planner) Status(limit int) Status {
	out := Status{At: p.now, Version: p.policy.Version}
	for _, l := range p.order {
		s := LaneStatus{Lane: l.rule.code, DeficitMilli: l.Deficit() / p.ring.W(), Waiting: l.live, Unmet: l.unmet, Stopped: l.stopped}
		if l.stopped {
			s.StoppedSince = time.UnixMicro(l.since).UTC()
		}
		out.Lanes = append(out.Lanes, s)
		for _, m := range l.places {
			if m == nil || !m.live {
				continue
			}
			if len(out.Tenants) == limit {
				break
			}
			out.Tenants = append(out.Tenants, TenantStatus{
				Tenant: m.who.id, Lane: m.code, DeficitMilli: m.Deficit() / l.ring.W(), DebtMilli: m.Debt() / l.ring.W(),
			})
		}
	}
	for _, h := range p.holds {
		out.Earmarks = append(out.Earmarks, Earmark{
			Pool: h.pool.rule.key, Groups: h.kept(), Task: h.task, Tenant: h.party.who.id, Lane: h.party.code, Units: h.units,
			OfLane: h.lane != nil, Until: time.UnixMicro(h.until).UTC(),
		})
	}
	return out
}

// kept lists the cap groups in which an earmark keeps units.
func (e *earmark) kept() (keys []string) {
	for _, g := range e.groups {
		keys = append(keys, g.rule.key)
	}
	return keys
}

// Suppose takes over what another planner remembers, for a planner that only explains: what is kept for
// tasks that this one does not have, deficits, debts, and which lanes lend. Call it after Cycle.
func (p *Planner) Suppose(s Status) {
	for i := range s.Lanes {
		if l := p.lanes[s.Lanes[i].Lane]; l != nil {
			l.stopped, l.since, l.loaded = s.Lanes[i].Stopped, s.Lanes[i].StoppedSince.UnixMicro(), true
		}
	}
	for i := range s.Tenants {
		if m := p.find(s.Tenants[i].Tenant, s.Tenants[i].Lane); m != nil && m.lane != nil && m.In() {
			p.withdraw(m)
			m.lane.ring.Refund(&m.Member, m.lane.ring.Cost(s.Tenants[i].DeficitMilli)-m.Deficit())
			p.enter(m)
		}
	}
	for i := range s.Earmarks {
		p.suppose(&s.Earmarks[i])
	}
	p.reopen()
}

func (p *Planner) suppose(e *Earmark) {
	o := p.pools[e.Pool]
	if o == nil || !e.Until.After(p.now) {
		return
	}
	m := p.find(e.Tenant, e.Lane)
	if m != nil && m.lane != nil {
		p.withdraw(m)
		defer p.enter(m)
	} else {
		m = &party{code: e.Lane, who: &tenant{id: e.Tenant}}
	}
	h := &passed{task: e.Task, party: m, ticket: int64(len(p.holds) + 1)}
	for i := range m.heads {
		if m.heads[i].TaskID == e.Task {
			m.heads[i].passed = h
		}
	}
	h.earmark = earmark{pool: o, units: e.Units, until: e.Until.UnixMicro()}
	o.hold = h
	for _, key := range e.Groups {
		if g := p.pools[key]; g != nil {
			g.hold = h
			h.groups = append(h.groups, g)
		}
	}
	if l := p.lanes[e.Lane]; l != nil && e.OfLane {
		h.lane = l
		l.held += e.Units
	}
	p.holds = append(p.holds, h)
}
