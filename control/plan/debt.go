package plan

// owe brings a tenant's debt to what PostgreSQL has, keeping what its visits have repaid meanwhile and
// no claim has written yet.
func (p *Planner) owe(m *party, owed int64) {
	by := owed - m.owed
	m.owed = owed
	if by == 0 || m.lane == nil || m.lane.rule.wrr {
		return
	}
	if m.In() {
		m.lane.ring.CatchUp(&m.Member, p.limit(m))
	}
	m.lane.ring.Owe(&m.Member, m.lane.ring.Cost(by))
}

// settleDebt makes a tenant's debt in its ring what PostgreSQL has; nothing under WRR.
func (p *Planner) settleDebt(m *party) {
	if m.lane == nil {
		return
	}
	debt := m.lane.ring.Cost(m.owed)
	if m.lane.rule.wrr {
		debt = 0
	}
	m.lane.ring.Owe(&m.Member, debt-m.Debt())
}

// unwritten is what a tenant's visits have repaid and no claim has written, in milli-units.
func (m *party) unwritten() int64 {
	if m.lane == nil || m.lane.rule.wrr {
		return 0
	}
	return (m.lane.ring.Cost(m.owed) - m.Debt()) / m.lane.ring.W()
}

// dropFraction forgets what a tenant that leaves has repaid below a milli-unit, so that it owes the same
// whether it is remembered or read again.
func (p *Planner) dropFraction(m *party) {
	if l := m.lane; !l.rule.wrr {
		l.ring.Owe(&m.Member, (l.ring.Cost(m.owed)-m.Debt())%l.ring.W())
	}
}

// repaid lists what the tenants that start something have paid of their debts.
func (p *Planner) repaid() (out []Repaid) {
	for i := range p.pending {
		m := p.pending[i].party
		if by := m.unwritten(); by != 0 {
			m.owed -= by
			out = append(out, Repaid{TenantLane{m.who.id, m.code}, by})
		}
	}
	return out
}
