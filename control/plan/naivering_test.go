package plan_test

import (
	"cmp"
	"slices"
)

// nMember of a ring; missed counts the turns that have passed since its last quantum.
type nMember struct {
	pos, weight, deficit, debt, missed int64
}

type nRing struct {
	cur, seq, w, base, burst, repay int64
	open                            *nMember
}

func (r *nRing) q(m *nMember) int64 { return r.base * m.weight }

func (r *nRing) cap(m *nMember, largest int64) int64 { return max(r.q(m)*r.burst, largest*r.w) }

// round gives a member's deficit and debt one quantum.
func (r *nRing) round(m *nMember, deficit, debt int64) (newDeficit, newDebt int64) {
	share := r.q(m) * r.repay / 1000
	pays := min(max(debt, -share), share)
	return deficit + r.q(m) - pays, debt - pays
}

// rounds gives it several.
func (r *nRing) rounds(m *nMember, n, deficit, debt int64) (newDeficit, newDebt int64) {
	for ; n > 0; n-- {
		if debt == 0 || r.repay == 0 {
			return deficit + n*r.q(m), debt
		}
		deficit, debt = r.round(m, deficit, debt)
	}
	return deficit, debt
}

// credit gives a member the quanta of the turns that passed, up to its cap.
func (r *nRing) credit(m *nMember, largest int64) {
	if m.missed > 0 {
		m.deficit, m.debt = r.rounds(m, m.missed, m.deficit, m.debt)
		m.deficit = min(m.deficit, r.cap(m, largest))
	}
	m.missed = 0
}

// turn is a member with what it wants: cost 0 wants nothing but lets its turn pass, idle does not even.
type turn struct {
	*nMember
	cost, largest int64
	idle          bool
}

// walk goes from turn to turn until somebody can pay, on a copy; commit makes it so. Whoever is passed
// is told, with what it could have paid then.
func (r *nRing) walk(all []turn, pass func(i int, budget int64)) (chosen int, commit func()) {
	for i, t := range all {
		if t.nMember == r.open && t.cost > 0 && t.cost*r.w <= t.deficit {
			return i, func() { t.deficit -= t.cost * r.w }
		}
	}
	slices.SortFunc(all, func(a, b turn) int { return cmp.Compare(a.pos, b.pos) })
	passed, deficit, debt := make([]int64, len(all)), make([]int64, len(all)), make([]int64, len(all))
	at := 0
	for i, t := range all {
		deficit[i], debt[i] = r.rounds(t.nMember, t.missed, t.deficit, t.debt)
		if t.pos <= r.cur {
			at = i + 1
		}
	}
	for ; ; at++ {
		i := at % len(all)
		t := all[i]
		if t.idle {
			continue
		}
		carried := min(deficit[i], r.cap(t.nMember, max(t.largest, t.cost)))
		budget, rest := r.round(t.nMember, carried, debt[i])
		if t.cost > 0 && t.weight > 0 && budget >= t.cost*r.w {
			return i, func() {
				for j := range all {
					all[j].missed += passed[j]
				}
				t.deficit, t.debt, t.missed = budget-t.cost*r.w, rest, 0
				r.cur, r.open = t.pos, t.nMember
			}
		}
		pass(i, budget)
		passed[i]++
		deficit[i], debt[i] = r.round(t.nMember, deficit[i], debt[i])
	}
}

// when is the turn, counted from now, in which a member can pay: rounds to pass, then its place. The open
// visit comes first when it pays.
func (r *nRing) when(m *nMember, cost, largest int64) [2]int64 {
	if m == r.open && cost*r.w <= m.deficit {
		return [2]int64{-1, 0}
	}
	deficit, debt := r.rounds(m, m.missed, m.deficit, m.debt)
	for n := int64(0); ; n++ {
		carried := min(deficit, r.cap(m, max(largest, cost)))
		if budget, _ := r.round(m, carried, debt); budget >= cost*r.w {
			if m.pos <= r.cur {
				n++
			}
			return [2]int64{n, m.pos}
		}
		deficit, debt = r.round(m, deficit, debt)
	}
}

func before(a, b [2]int64) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }
