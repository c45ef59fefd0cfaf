package plan

import (
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// Deficits shows what a lane, and a tenant in it, may spend, scaled.
func (p *Planner) Deficits(lane string, tenant uuid.UUID) (ofLane, ofTenant int64) {
	if l := p.lanes[lane]; l != nil {
		ofLane = l.Deficit()
	}
	if m := p.find(tenant, lane); m != nil {
		ofTenant = m.Deficit()
	}
	return ofLane, ofTenant
}

// Busy tells whether a lane gets its rounds.
func (p *Planner) Busy(lane string) bool { return p.lanes[lane] != nil && p.lanes[lane].busy }

// InRing lists the tenants of a lane's ring by place.
func (p *Planner) InRing(lane string) (out []uuid.UUID) {
	if l := p.lanes[lane]; l != nil {
		for _, m := range l.places {
			if m != nil {
				out = append(out, m.who.id)
			}
		}
	}
	return out
}

// Turn shows where a lane stands: places of the last turn and of the last start by reserve, and the
// reserve starts in a row.
func (p *Planner) Turn(lane string) (cur, cursor int64, streak int) {
	l := p.lanes[lane]
	return l.ring.Now().Pos, l.cursor, l.streak
}

// Debt shows what a tenant owes in its lane's ring, scaled.
// ok is false when the planner has forgotten the tenant, which then owes what PostgreSQL says.
func (p *Planner) Debt(lane string, tenant uuid.UUID) (debt int64, ok bool) {
	if m := p.find(tenant, lane); m != nil {
		return m.Debt(), true
	}
	return 0, false
}

// Holds lists the earmarks by ticket.
func (p *Planner) Holds() (out string) {
	for _, h := range p.holds {
		kept := []string{h.pool.rule.key}
		for _, g := range h.groups {
			kept = append(kept, g.rule.key)
		}
		slices.Sort(kept)
		out += fmt.Sprintln(h.task, kept, h.lane != nil, h.skips)
	}
	return out
}

// Round shows the round of a lane's ring.
func (p *Planner) Round(lane string) int64 { return p.lanes[lane].ring.Now().Round }
