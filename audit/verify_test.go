package audit_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlane/audit"
)

// chain is a source in memory.
type chain struct {
	rows []audit.Stored
	seq  int64
	hash []byte
	fail error
}

func newChain(t interface{ Fatal(...any) }, n int64) *chain {
	c := &chain{hash: make([]byte, 32)}
	for i := int64(1); i <= n; i++ {
		r, err := audit.Seal([32]byte(c.hash), event(i))
		if err != nil {
			t.Fatal(err)
		}
		c.rows = append(c.rows, audit.Stored{Sequence: i, Text: r.Text, Hash: slices.Clone(r.Hash[:]), Columns: audit.ColumnsOf(&r.Event)})
		c.seq, c.hash = i, slices.Clone(r.Hash[:])
	}
	return c
}

func (c *chain) Head(context.Context) (int64, []byte, error) { return c.seq, c.hash, c.fail }

func (c *chain) Page(_ context.Context, after int64, limit int) ([]audit.Stored, error) {
	var out []audit.Stored
	for _, r := range c.rows {
		if r.Sequence > after && len(out) < limit {
			out = append(out, r)
		}
	}
	return out, c.fail
}

func TestVerifyNamesTheFirstBadSequence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		tamper func(*chain)
		fault  audit.Fault
		bad    int64
	}{
		{"nothing", func(*chain) {}, audit.FaultNone, 0},
		{"record", func(c *chain) { c.rows[4].Text = c.rows[4].Text[:20] + " " + c.rows[4].Text[20:] }, audit.FaultChanged, 5},
		{"record and its hash", func(c *chain) {
			c.rows[4].Text = c.rows[4].Text + " "
			h := audit.Hash([32]byte(c.rows[3].Hash), []byte(c.rows[4].Text))
			c.rows[4].Hash = h[:]
		}, audit.FaultChanged, 6},
		{"column", func(c *chain) { c.rows[4].Columns.ActorName = "nobody" }, audit.FaultChanged, 5},
		{"time column", func(c *chain) { c.rows[4].Columns.AtMicro++ }, audit.FaultChanged, 5},
		{"places", func(c *chain) { c.rows[4].Columns.Terms = nil }, audit.FaultChanged, 5},
		{"hash", func(c *chain) { c.rows[4].Hash[0] ^= 1 }, audit.FaultChanged, 5},
		{"short hash", func(c *chain) { c.rows[4].Hash = c.rows[4].Hash[:31] }, audit.FaultChanged, 5},
		{"not JSON", func(c *chain) { c.rows[4].Text = "gone" }, audit.FaultChanged, 5},
		{"first deleted", func(c *chain) { c.rows = c.rows[1:] }, audit.FaultMissing, 1},
		{"middle deleted", func(c *chain) { c.rows = slices.Delete(c.rows, 4, 5) }, audit.FaultMissing, 5},
		{"last deleted", func(c *chain) { c.rows = c.rows[:9] }, audit.FaultMissing, 10},
		{"all deleted", func(c *chain) { c.rows = nil }, audit.FaultMissing, 1},
		{"two swapped", func(c *chain) {
			c.rows[4].Sequence, c.rows[5].Sequence = 6, 5
			c.rows[4], c.rows[5] = c.rows[5], c.rows[4]
		}, audit.FaultReordered, 5},
		{"renumbered", func(c *chain) {
			c.rows = slices.Delete(c.rows, 4, 5)
			for i := 4; i < len(c.rows); i++ {
				c.rows[i].Sequence--
			}
		}, audit.FaultReordered, 5},
		{"head hash", func(c *chain) { c.hash[0] ^= 1 }, audit.FaultHead, 10},
		{"head back", func(c *chain) { c.seq = 7; c.hash = c.rows[6].Hash }, audit.FaultHead, 10},
		{"head forward", func(c *chain) { c.seq = 12 }, audit.FaultMissing, 11},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			source := newChain(t, 10)
			c.tamper(source)
			r, err := audit.Verify(t.Context(), source)
			if err != nil || r.Fault != c.fault || r.FirstBad != c.bad || r.OK() != (c.bad == 0) {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

func TestVerifyWalksPagesAndAnEmptyChain(t *testing.T) {
	t.Parallel()
	if r, err := audit.Verify(t.Context(), newChain(t, 0)); err != nil || !r.OK() || r.Events != 0 {
		t.Errorf("%+v %v", r, err)
	}
	if r, err := audit.Verify(t.Context(), newChain(t, 1_100)); err != nil || !r.OK() || r.Events != 1_100 || r.Height != 1_100 {
		t.Errorf("%+v %v", r, err)
	}
	c := newChain(t, 3)
	c.fail = errors.New("away")
	if r, err := audit.Verify(t.Context(), c); err == nil || !r.OK() {
		t.Errorf("a source that cannot be read is not a bad chain: %+v %v", r, err)
	}
}

// Whatever byte of whatever record is changed, the change is found, and never later than one row after it.
func TestVerifyFindsEveryChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newChain(t, 6)
		i := rapid.IntRange(0, 5).Draw(t, "row")
		text := []byte(c.rows[i].Text)
		at := rapid.IntRange(0, len(text)-1).Draw(t, "byte")
		text[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		c.rows[i].Text = string(text)
		r, err := audit.Verify(context.Background(), c)
		if err != nil || r.OK() || r.FirstBad != int64(i+1) {
			t.Fatalf("%+v %v", r, err)
		}
	})
}
