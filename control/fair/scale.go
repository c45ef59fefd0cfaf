package fair

import "math/bits"

// Retune changes settings and scale. The owner first credits every member with CatchUp, then calls
// Retune, then Rescale for each member, in the ring or out of it, with the scale that Retune returns.
func (r *Ring) Retune(set Settings, w int64) (old int64) {
	old = r.w
	r.set, r.w = set, max(w, 1)
	return old
}

// Rescale brings a member's deficit and debt to the ring's scale, rounded toward zero, and gives it its weight.
func (r *Ring) Rescale(m *Member, old, weight int64) {
	m.deficit = scale(m.deficit, r.w, old)
	m.debt = scale(m.debt, r.w, old)
	m.weight = weight
}

// Reset forgets a member's deficit: its lane changed the way in which it charges.
func (r *Ring) Reset(m *Member) { m.deficit = 0 }

// scale returns x × num ÷ den, rounded toward zero, without losing the upper half of the product.
// The quotient must fit: |x| × num < den × 2^63.
func scale(x, num, den int64) int64 {
	if num == den {
		return x
	}
	neg := x < 0
	if neg {
		x = -x
	}
	hi, lo := bits.Mul64(uint64(x), uint64(num))
	q, _ := bits.Div64(hi, lo, uint64(den))
	if neg {
		return -int64(q)
	}
	return int64(q)
}

// rebaseAt is the round beyond which rounds are counted anew.
const rebaseAt = 1 << 61

// Due reports whether the ring's rounds have grown so far that Rebase must be called.
func (r *Ring) Due() bool { return r.round >= rebaseAt }

// Rebase counts rounds anew from zero and returns what was subtracted; the owner then calls Shift for
// every member of the ring. No order changes.
func (r *Ring) Rebase() (by int64) {
	by = r.round
	r.round = 0
	return by
}

// Shift moves a member to the rounds that Rebase made.
func (m *Member) Shift(by int64) { m.last -= by }

// Arrange puts the members of a ring in the order given: those that are new join, those that stay keep
// their rounds, and the cursor stays at its member or, when that has gone, at the one before it.
func (r *Ring) Arrange(order []*Member) {
	var cur, before int64
	for i, m := range order {
		if m.pos != 0 && m.pos <= r.cur && m.pos > before {
			cur, before = int64(i+1), m.pos
		}
	}
	r.cur, r.seq = cur, int64(len(order))
	for i, m := range order {
		isNew := m.pos == 0
		m.pos = int64(i + 1)
		if isNew {
			m.last = r.turn(m)
		}
	}
}

// Drop takes a member out for good.
func (r *Ring) Drop(m *Member) {
	if r.open == m {
		r.open = nil
	}
	*m = Member{}
}
