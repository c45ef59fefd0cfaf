package fair

// Debt returns what the member still pays from its quanta, scaled; below 0 it is credit.
func (m *Member) Debt() int64 { return m.debt }

// Owe changes a member's debt by a scaled amount. Rounds that have passed must have been credited with
// CatchUp before, because they repaid the debt as it was. Nothing owed may pass 10^14.
func (r *Ring) Owe(m *Member, by int64) { m.debt += by }

// repay is the most that a member pays in a round: the share of its quantum. It is exact, because
// quanta are whole units times a thousand.
func (r *Ring) repay(m *Member) int64 { return r.Quantum(m) / 1000 * r.set.Repay }

// need is the number of turns until c is affordable, at least one. In n turns a member gets n quanta
// and pays min(debt, n × repay) of them, or gets min(credit, n × repay) more; solved for n:
//
//	debt ≥ 0:  min(⌈(short + debt) ÷ q⌉, ⌈short ÷ (q − repay)⌉)
//	debt < 0:  max(⌈(short + debt) ÷ q⌉, ⌈short ÷ (q + repay)⌉)
func (r *Ring) need(m *Member, c int64) int64 {
	short := c - m.deficit
	if short <= 0 {
		return 1
	}
	q := r.Quantum(m)
	if m.debt == 0 {
		return (short + q - 1) / q
	}
	rs := r.repay(m)
	if m.debt > 0 {
		return min(ceil(short+m.debt, q), ceil(short, q-rs))
	}
	return max(1, ceil(short+m.debt, q), ceil(short, q+rs))
}

func ceil(a, b int64) int64 {
	if a <= 0 {
		return 0
	}
	return (a + b - 1) / b
}

// paid is what a member pays in n turns; below 0: what its credit adds.
func (r *Ring) paid(m *Member, n int64) int64 {
	rs := r.repay(m)
	switch {
	case m.debt == 0 || rs == 0:
		return 0
	case m.debt > 0 && n > m.debt/rs, m.debt < 0 && n > -m.debt/rs:
		return m.debt
	case m.debt > 0:
		return n * rs
	}
	return -n * rs
}

// grow gives a member n quanta.
func (r *Ring) grow(m *Member, n int64) {
	r.growTo(m, n, 1<<62)
}

// growTo gives a member n quanta, up to a limit, without multiplying more than is needed to reach it.
func (r *Ring) growTo(m *Member, n, limit int64) {
	p := r.paid(m, n)
	m.debt -= p
	switch q := r.Quantum(m); {
	case m.deficit-p >= limit || q > 0 && n > (limit-m.deficit+p)/q:
		m.deficit = limit
	default:
		m.deficit = min(limit, m.deficit+n*q-p)
	}
}
