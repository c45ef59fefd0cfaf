package plan

import "github.com/google/uuid"

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
