package plan

import (
	"testing"

	"pgregory.net/rapid"
)

// The most expensive head of a lane and the next aging are found whatever was noted before.
func TestNotesEqualLists(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var c costs
		var a agings
		parties := make([]*party, 5)
		for i := range parties {
			parties[i] = &party{}
		}
		due := map[*party]int64{}
		now := int64(0)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			m := rapid.SampledFrom(parties).Draw(t, "party")
			m.live, m.largest = rapid.Bool().Draw(t, "live"), rapid.Int64Range(1, 5).Draw(t, "cost")
			if m.live {
				c.note(m, 0)
			}
			want := int64(0)
			for _, o := range parties {
				if o.live {
					want = max(want, o.largest)
				}
			}
			if got := c.max(); got != want {
				t.Fatalf("most expensive is %d, want %d", got, want)
			}
			now++
			if rapid.Bool().Draw(t, "ages") {
				due[m] = now + rapid.Int64Range(1, 9).Draw(t, "later")
				a.add(m, due[m])
			}
			for m := a.due(now); m != nil; m = a.due(now) {
				if due[m] > now || due[m] == 0 {
					t.Fatalf("a party ages at %d, now is %d", due[m], now)
				}
				delete(due, m)
			}
			for m, at := range due {
				if at <= now {
					t.Fatalf("party %p should have aged at %d, now is %d", m, at, now)
				}
			}
		}
	})
}
