package facts

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestShardCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		capacity, demand int64
		want             int
	}{{0, 1, 1}, {1, 1, 1}, {5, 8, 1}, {15, 8, 1}, {16, 8, 2}, {40, 2, 16}, {20, 2, 10}, {1_000_000, 1, 16}, {10, 0, 10}} {
		if got := (shardTarget{"p", c.capacity, c.demand}).count(); got != c.want {
			t.Errorf("capacity %d, demand %d: %d shards, want %d", c.capacity, c.demand, got, c.want)
		}
	}
}

// I01 through every publish: whatever is in use, the shards together hold the pool's capacity, and no
// unit that is taken is there a second time.
func TestI01_RebalanceKeepsTheSum(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		target := shardTarget{"p", rapid.Int64Range(0, 200).Draw(t, "capacity"), rapid.Int64Range(1, 12).Draw(t, "demand")}
		var held []shardUse
		var used int64
		for no := range rapid.IntRange(0, 16).Draw(t, "shards") {
			if no > 0 && rapid.IntRange(0, 9).Draw(t, "gone") == 0 {
				continue // shards in the middle may have gone before
			}
			s := shardUse{int32(no), rapid.Int64Range(0, 30).Draw(t, "had"), rapid.Int64Range(0, 30).Draw(t, "used")}
			held = append(held, s)
			used += s.used
		}
		before := slices.Clone(held)
		out := rebalance(target, held)
		if !slices.Equal(before, held) {
			t.Fatal("what was given is changed")
		}
		n := target.count()
		var sum, still int64
		for i, s := range out {
			sum += s.capacity
			still += s.used
			if i > 0 && out[i-1].no >= s.no {
				t.Fatal("shards out of order")
			}
			if int(s.no) >= n && s.used == 0 {
				t.Fatalf("shard %d is neither wanted nor used", s.no)
			}
			if used <= target.capacity && s.capacity < s.used {
				t.Fatalf("shard %d has %d of %d used though the pool has room", s.no, s.capacity, s.used)
			}
			if used >= target.capacity && s.capacity > s.used {
				t.Fatalf("shard %d has room though the pool has none", s.no)
			}
		}
		if sum != target.capacity || still != used {
			t.Fatalf("capacity %d of %d, use %d of %d", sum, target.capacity, still, used)
		}
		if used == 0 {
			if len(out) != n || out[n-1].capacity < min(target.demand, target.capacity) {
				t.Fatalf("an idle pool of %d with demand %d: %v", target.capacity, target.demand, out)
			}
		}
		for no := range n {
			if !slices.ContainsFunc(out, func(s shardUse) bool { return int(s.no) == no }) {
				t.Fatalf("shard %d is missing", no)
			}
		}
		if again := rebalance(target, out); !slices.Equal(again, out) {
			t.Fatalf("not stable: %v then %v", out, again)
		}
	})
}
