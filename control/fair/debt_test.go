package fair_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlane/control"
	"fairlane/control/fair"
)

// debtor is a ring whose members owe or have credit, walked round by round. All amounts are scaled.
type debtor struct {
	quantum, repay, limit []int64
	deficit, debt, missed []int64
	at                    int // member whose turn was last; -1: none yet
	open                  bool
}

// round gives a member one quantum, less what it pays of a debt or with what a credit adds.
func (k *debtor) round(i int) {
	pays := min(max(k.debt[i], -k.repay[i]), k.repay[i])
	k.debt[i] -= pays
	k.deficit[i] += k.quantum[i] - pays
}

// credit gives a member the rounds that it has missed, up to its cap.
func (k *debtor) credit(i int, limit int64) {
	if k.missed[i] == 0 {
		return
	}
	for ; k.missed[i] > 0; k.missed[i]-- {
		k.round(i)
	}
	k.deficit[i] = min(k.deficit[i], limit)
}

// next walks to the next member that wants something and can pay; wants is 0 for one that is blocked.
func (k *debtor) next(wants []int64) int {
	if k.open && wants[k.at] > 0 && k.deficit[k.at] >= wants[k.at] {
		k.deficit[k.at] -= wants[k.at]
		return k.at
	}
	for {
		k.at = (k.at + 1) % len(k.quantum)
		i := k.at
		deficit, debt := k.deficit[i], k.debt[i]
		for range k.missed[i] {
			k.round(i)
		}
		k.deficit[i] = min(k.deficit[i], max(k.limit[i], wants[i]))
		k.round(i)
		if wants[i] == 0 || k.deficit[i] < wants[i] {
			k.deficit[i], k.debt[i] = deficit, debt
			k.missed[i]++
			continue
		}
		k.missed[i], k.open = 0, true
		k.deficit[i] -= wants[i]
		return i
	}
}

// Keys with debts and credits are those of walked rounds, and so is everything that they leave behind.
func TestDebtsEqualWalkedRounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int64Range(1, 20), 1, 5).Draw(t, "weights")
		set := fair.Settings{
			BaseMilli: rapid.Int64Range(1, 4).Draw(t, "base") * control.Milli, BurstRounds: rapid.Int64Range(1, 3).Draw(t, "burst"),
			Repay: rapid.SampledFrom([]int64{500, 900, 333, 1, 0}).Draw(t, "repay"),
		}
		cost := rapid.Int64Range(1, 12*control.Milli)
		c, k := newCrowd(set, weights), &debtor{at: -1, missed: make([]int64, len(weights)), debt: make([]int64, len(weights)), deficit: make([]int64, len(weights))}
		w, wants := slices.Max(weights), make([]int64, len(weights))
		for i, x := range weights {
			q := set.BaseMilli * x
			k.quantum, k.repay, k.limit = append(k.quantum, q), append(k.repay, q*set.Repay/1000), append(k.limit, q*set.BurstRounds)
			milli := cost.Draw(t, "cost")
			wants[i] = milli * w
			c.offer(i, milli)
		}
		for n := range rapid.IntRange(1, 60).Draw(t, "picks") {
			i := rapid.IntRange(0, len(weights)-1).Draw(t, "changes")
			c.withdraw(i)
			if rapid.Bool().Draw(t, "owes") {
				by := rapid.Int64Range(-30*control.Milli, 30*control.Milli).Draw(t, "by") * w
				limit := max(k.limit[i], wants[i])
				c.ring.CatchUp(c.members[i], limit)
				c.ring.Owe(c.members[i], by)
				k.credit(i, limit)
				k.debt[i] += by
			}
			wants[i] = 0
			if rapid.IntRange(0, 3).Draw(t, "blocked") > 0 {
				milli := cost.Draw(t, "cost")
				wants[i] = milli * w
				c.offer(i, milli)
			}
			if slices.Max(wants) == 0 {
				continue
			}
			want := k.next(wants)
			got := c.next()
			if got != want {
				t.Fatalf("pick %d goes to member %d, want %d", n, got, want)
			}
			if m := c.members[got]; m.Deficit() != k.deficit[got] || m.Debt() != k.debt[got] {
				t.Fatalf("after pick %d member %d has %d and owes %d, want %d and %d", n, got, m.Deficit(), m.Debt(), k.deficit[got], k.debt[got])
			}
			milli := cost.Draw(t, "cost")
			wants[got] = milli * w
			c.offer(got, milli)
		}
	})
}

// At the widest settings, with debts and credits at their limit again and again, deficits, debts and
// rounds stay in their range, and a head is served within ⌈cost ÷ ((1 − repay) × quantum)⌉ + 1 turns.
func TestDebtsHoldAtTheWidestRange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const most = 100_000 * control.Milli // owed in total, by the policy's largest limit
		set := fair.Settings{
			BaseMilli: rapid.SampledFrom([]int64{1, 4, 10_000}).Draw(t, "base") * control.Milli, BurstRounds: rapid.SampledFrom([]int64{1, 20, 1000}).Draw(t, "burst"),
			Repay: rapid.SampledFrom([]int64{900, 500, 1, 0}).Draw(t, "repay"),
		}
		weights := []int64{rapid.SampledFrom([]int64{1, 999_999, 7}).Draw(t, "weight"), 1_000_000, 333_333}
		cost := rapid.Int64Range(control.Milli, 10_000*control.Milli)
		c := newCrowd(set, weights)
		since, wants := make([]int64, len(weights)), make([]int64, len(weights))
		offer := func(i int) {
			milli := cost.Draw(t, "cost")
			wants[i] = c.ring.Cost(milli)
			since[i] = c.ring.Now().Round
			c.offer(i, milli)
		}
		for i := range weights {
			offer(i)
		}
		for range 200 {
			if i := rapid.IntRange(0, 2).Draw(t, "owes"); rapid.Bool().Draw(t, "settled") {
				m, to := c.members[i], c.ring.Cost(rapid.SampledFrom([]int64{most, -most, most / 3, 0}).Draw(t, "to"))
				c.withdraw(i)
				c.ring.CatchUp(m, c.ring.Cap(m, wants[i]))
				c.ring.Owe(m, to-m.Debt())
				c.offer(i, wants[i]/c.ring.W())
			}
			i := c.next()
			m := c.members[i]
			if d := m.Deficit(); d < 0 || d > 1.1e16+1e14 {
				t.Fatalf("deficit of member %d is %d", i, d)
			}
			if d := m.Debt(); d < -most*c.ring.W() || d > most*c.ring.W() {
				t.Fatalf("member %d owes %d", i, d)
			}
			round := c.ring.Now().Round
			if round < 0 || round > math.MaxInt64/2 {
				t.Fatalf("round is %d", round)
			}
			least := c.ring.Quantum(m) / 1000 * (1000 - set.Repay)
			if turns, bound := round-since[i], (wants[i]+least-1)/least+1; turns > bound {
				t.Fatalf("member %d waits for %d turns, bound %d", i, turns, bound)
			}
			offer(i)
		}
	})
}
