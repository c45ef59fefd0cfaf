package fair_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlane/control"
	"fairlane/control/fair"
)

// walker is a ring that walks every round, turn by turn.
type walker struct {
	base, burst, w  int64
	at              int // member whose turn was last; -1: none yet
	open            bool
	deficit, missed []int64
	weight          []int64
}

// next walks to the next member that wants something and can pay. A blocked member wants nothing, but
// its turns pass and count.
func (k *walker) next(cost func(i int) int64, blocked []bool) int {
	if k.open && !blocked[k.at] && k.deficit[k.at] >= cost(k.at)*k.w {
		k.deficit[k.at] -= cost(k.at) * k.w
		return k.at
	}
	for {
		k.at = (k.at + 1) % len(k.weight)
		i, q := k.at, k.base*k.weight[k.at]
		carried := min(k.deficit[i]+k.missed[i]*q, max(q*k.burst, cost(i)*k.w))
		if blocked[i] || carried+q < cost(i)*k.w {
			k.missed[i]++
			continue
		}
		k.deficit[i], k.missed[i], k.open = carried+q-cost(i)*k.w, 0, true
		return i
	}
}

// crowd is members of one ring whose dues lie in one set.
type crowd struct {
	ring    *fair.Ring
	members []*fair.Member
	dues    []*fair.Due
	in      []bool // in the set
	set     fair.Dues
}

func newCrowd(set fair.Settings, weights []int64) *crowd {
	c := &crowd{ring: fair.NewRing(set, slices.Max(weights))}
	for _, w := range weights {
		m := &fair.Member{}
		c.ring.Join(m, w)
		c.members = append(c.members, m)
		c.dues = append(c.dues, &fair.Due{Member: m})
		c.in = append(c.in, false)
	}
	return c
}

func (c *crowd) offer(i int, milli int64) {
	c.dues[i].Cost = c.ring.Cost(milli)
	c.set.Add(c.ring, c.dues[i])
	c.in[i] = true
}

// withdraw takes what a member wants out of the set.
func (c *crowd) withdraw(i int) {
	c.set.Del(c.dues[i])
	c.in[i] = false
}

// next serves the member whose turn it is and returns its number.
func (c *crowd) next() int {
	i := -1
	if open := c.ring.Open(); open != nil {
		if j := slices.Index(c.members, open); c.in[j] && c.ring.Continues(open, c.dues[j].Cost) {
			i = j
		}
	}
	if i < 0 {
		key, ok := c.set.Min(c.ring)
		if !ok {
			return -1
		}
		i = slices.IndexFunc(c.members, func(m *fair.Member) bool { return m.Pos() == key.Pos })
	}
	c.withdraw(i)
	c.ring.Serve(c.members[i], c.dues[i].Cost, c.dues[i].Cost)
	return i
}

func TestRingEqualsWalkedRounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int64Range(1, 50), 1, 6).Draw(t, "weights")
		base, burst := rapid.Int64Range(1, 5).Draw(t, "base"), rapid.Int64Range(1, 4).Draw(t, "burst")
		cost := rapid.Int64Range(1, 50)
		c := newCrowd(fair.Settings{BaseMilli: base, BurstRounds: burst}, weights)
		k := &walker{base: base, burst: burst, w: slices.Max(weights), at: -1, weight: weights,
			deficit: make([]int64, len(weights)), missed: make([]int64, len(weights))}
		costs, blocked := make([]int64, len(weights)), make([]bool, len(weights))
		for i := range weights {
			costs[i] = cost.Draw(t, "cost")
			c.offer(i, costs[i])
		}
		for n := range rapid.IntRange(1, 60).Draw(t, "picks") {
			i := rapid.IntRange(0, len(weights)-1).Draw(t, "changes")
			c.withdraw(i)
			if blocked[i] = rapid.Bool().Draw(t, "blocked"); !blocked[i] {
				costs[i] = cost.Draw(t, "cost")
				c.offer(i, costs[i])
			}
			if !slices.Contains(blocked, false) {
				continue
			}
			c.check(t, blocked)
			want := k.next(func(i int) int64 { return costs[i] }, blocked)
			got := c.next()
			if got != want {
				t.Fatalf("pick %d goes to member %d, want %d", n, got, want)
			}
			costs[got] = cost.Draw(t, "cost")
			c.offer(got, costs[got])
		}
	})
}

// check holds the key that the set finds against the keys of all its members.
func (c *crowd) check(t *rapid.T, blocked []bool) {
	var want fair.Key
	for i, m := range c.members {
		if k := c.ring.Key(m, c.dues[i].Cost); !blocked[i] && (want == (fair.Key{}) || k.Less(want)) {
			want = k
		}
	}
	if got, ok := c.set.Min(c.ring); !ok || got != want {
		t.Fatalf("smallest key is %v, want %v", got, want)
	}
}

// The bounds of the package's doc: the widest settings, served for long, never leave their range, and
// the shares come out by weight.
func TestRingHoldsAtTheWidestRange(t *testing.T) {
	t.Parallel()
	const costly = 10_000 * control.Milli
	for _, base := range []int64{1 * control.Milli, 10_000 * control.Milli} {
		c := newCrowd(fair.Settings{BaseMilli: base, BurstRounds: 1000}, []int64{1, 1_000_000, 500_000})
		served := make([]float64, 3)
		for i := range c.members {
			c.offer(i, costly)
		}
		for range 20_000 {
			i := c.next()
			served[i] += costly
			if d := c.members[i].Deficit(); d < 0 || d > 1.1e16 {
				t.Fatalf("base %d: deficit of member %d is %d", base, i, d)
			}
			if k := c.ring.Now(); k.Round < 0 || k.Round > math.MaxInt64/2 {
				t.Fatalf("base %d: round is %d", base, k.Round)
			}
			c.offer(i, costly)
		}
		if r := served[1] / served[2]; math.Abs(r-2) > 0.01 {
			t.Errorf("base %d: weights 2:1 were served %.3f:1", base, r)
		}
	}
}

func TestRebaseChangesNoOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int64Range(1, 9), 2, 5).Draw(t, "weights")
		set := fair.Settings{BaseMilli: 3, BurstRounds: 2}
		a, b := newCrowd(set, weights), newCrowd(set, weights)
		for i := range weights {
			a.offer(i, 7)
			b.offer(i, 7)
		}
		for n := range 30 {
			if rapid.Bool().Draw(t, "rebase") {
				for i := range b.dues {
					b.withdraw(i)
				}
				by := b.ring.Rebase()
				for i, m := range b.members {
					m.Shift(by)
					b.offer(i, 7)
				}
			}
			i, j := a.next(), b.next()
			if i != j {
				t.Fatalf("pick %d goes to %d after a rebase, want %d", n, j, i)
			}
			a.offer(i, 7)
			b.offer(j, 7)
		}
	})
}

func TestRescaleKeepsWorth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, deficit, want int64 }{
		{10, 100, 7, 70}, {100, 10, 79, 7}, {3, 7, 10, 23}, {1_000_000, 1, 9_999_999_999, 9999}, {1, 1_000_000, 10_000_000, 10_000_000_000_000},
	} {
		r := fair.NewRing(fair.Settings{BaseMilli: 1, BurstRounds: 1}, c.from)
		m := &fair.Member{}
		r.Join(m, 1)
		r.Refund(m, c.deficit)
		old := r.Retune(fair.Settings{BaseMilli: 1, BurstRounds: 1}, c.to)
		r.Rescale(m, old, 1)
		if m.Deficit() != c.want {
			t.Errorf("deficit %d from scale %d to %d is %d, want %d", c.deficit, c.from, c.to, m.Deficit(), c.want)
		}
	}
}

// D01: what a member keeps when it leaves is limited, whatever it had.
func TestTrap_D01_LeavingKeepsAtMostTheCredit(t *testing.T) {
	t.Parallel()
	for _, credit := range []int64{0, 3} {
		r := fair.NewRing(fair.Settings{BaseMilli: 4, BurstRounds: 20, CreditMilli: credit}, 2)
		m := &fair.Member{}
		r.Join(m, 1)
		r.Refund(m, 1000)
		r.Leave(m)
		if m.Deficit() != credit*2 {
			t.Errorf("credit %d: it keeps %d, want %d", credit, m.Deficit(), credit*2)
		}
		if r.Join(m, 1); m.Deficit() != credit*2 {
			t.Errorf("credit %d: joining grants %d", credit, m.Deficit()-credit*2)
		}
	}
}

// D06: no cost, however wrong, may raise a deficit. Costs come in above zero; the ring has no others.
func TestTrap_D06_ServingNeverRaisesTheDeficitAboveItsCap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(fair.Settings{BaseMilli: rapid.Int64Range(1, 10_000_000).Draw(t, "base"), BurstRounds: rapid.Int64Range(1, 1000).Draw(t, "burst")},
			rapid.SliceOfN(rapid.Int64Range(1, 1_000_000), 1, 5).Draw(t, "weights"))
		cost := rapid.Int64Range(control.Milli, 10_000*control.Milli)
		for i := range c.members {
			c.offer(i, cost.Draw(t, "cost"))
		}
		for range rapid.IntRange(1, 50).Draw(t, "picks") {
			i := c.next()
			m, q := c.members[i], c.ring.Quantum(c.members[i])
			if limit := c.ring.Cap(m, c.dues[i].Cost) + q; m.Deficit() < 0 || m.Deficit() > limit {
				t.Fatalf("deficit is %d, want 0 to %d", m.Deficit(), limit)
			}
			c.offer(i, cost.Draw(t, "cost"))
		}
	})
}

func TestArrangeKeepsRoundsAndCursor(t *testing.T) {
	t.Parallel()
	r := fair.NewRing(fair.Settings{BaseMilli: 1, BurstRounds: 9}, 1)
	var m [4]fair.Member
	for i := range m {
		r.Rescale(&m[i], 1, 1)
	}
	r.Arrange([]*fair.Member{&m[0], &m[1], &m[2]})
	r.Serve(&m[0], 1, 1)
	r.Serve(&m[1], 1, 1)
	r.Arrange([]*fair.Member{&m[3], &m[0], &m[2]}) // m[1], at the cursor, goes; m[3] is new
	r.Drop(&m[1])
	got := fmt.Sprint(r.Now(), r.Key(&m[2], 1), r.Key(&m[3], 1), r.Key(&m[0], 1))
	if want := "{0 2} {0 3} {1 1} {1 2}"; got != want {
		t.Errorf("cursor and keys are %s, want %s", got, want)
	}
}

func TestPlacesEqualsSet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s fair.Places
		in := map[int64]bool{}
		place := rapid.OneOf(rapid.Int64Range(0, 130), rapid.Int64Range(0, 300_000))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			p := place.Draw(t, "place")
			if in[p] {
				s.Del(p)
				delete(in, p)
			} else {
				s.Add(p)
				in[p] = true
			}
			from := place.Draw(t, "from")
			want, first := int64(-1), int64(-1)
			for q := range in {
				if q > from && (want < 0 || q < want) {
					want = q
				}
				if first < 0 || q < first {
					first = q
				}
			}
			if got := s.After(from); got != want {
				t.Fatalf("after %d comes %d, want %d", from, got, want)
			}
			if want < 0 {
				want = first
			}
			if got := s.Next(from); got != want || s.Len() != len(in) {
				t.Fatalf("next of %d is %d of %d places, want %d of %d", from, got, s.Len(), want, len(in))
			}
		}
	})
}
