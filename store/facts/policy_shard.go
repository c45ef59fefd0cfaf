package facts

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// maxShards bounds the rows among which a pool's counter is split: more spare no more waiting.
const maxShards = 16

// shardTarget is what a pool's shards should hold together, and its widest task, in slot units.
type shardTarget struct {
	pool             string
	capacity, demand int64
}

// count is as many shards as the capacity allows with every shard at least the largest demand, else one.
func (t shardTarget) count() int {
	return int(min(max(t.capacity/max(1, t.demand), 1), maxShards))
}

// shardUse is one shard, as it is or as it should be.
type shardUse struct {
	no             int32
	capacity, used int64
}

// rebalance spreads the capacity over the shards. Together they hold exactly it, whatever is used:
// as long as no more than the capacity is used, no shard gets less than its use, so that no unit that
// is taken is there a second time. When more is used than there is, every shard gets at most its use.
// Shards beyond the target's count keep what they use, and go when they use nothing.
func rebalance(t shardTarget, held []shardUse) []shardUse {
	n := t.count()
	out := slices.Clone(held)
	for no := range int32(n) { //nolint:gosec // at most maxShards
		if !slices.ContainsFunc(out, func(s shardUse) bool { return s.no == no }) {
			out = append(out, shardUse{no: no})
		}
	}
	slices.SortFunc(out, func(a, b shardUse) int { return int(a.no - b.no) })
	var used int64
	for i := range out {
		out[i].capacity = 0
		used += out[i].used
	}
	if used >= t.capacity {
		left := t.capacity
		for i := range out {
			out[i].capacity = min(left, out[i].used)
			left -= out[i].capacity
		}
	} else {
		fill(out, n, t.capacity-used)
	}
	return slices.DeleteFunc(out, func(s shardUse) bool { return int(s.no) >= n && s.used == 0 })
}

// fill gives each shard its use and levels the free units over the first n, lowest first.
func fill(shards []shardUse, n int, free int64) {
	var low []*shardUse
	for i := range shards {
		shards[i].capacity = shards[i].used
		if int(shards[i].no) < n {
			low = append(low, &shards[i])
		}
	}
	slices.SortStableFunc(low, func(a, b *shardUse) int {
		switch {
		case a.used < b.used:
			return -1
		case a.used > b.used:
			return 1
		}
		return 0
	})
	// Those below the level that all of them reach together take part; none of them uses more than it.
	total, k := free+low[0].used, int64(1)
	for int(k) < len(low) && low[k].used*k < total {
		total += low[k].used
		k++
	}
	for i, s := range low[:k] {
		s.capacity = total / k
		if int64(i) < total%k {
			s.capacity++
		}
	}
}

// copyShards makes and levels the shards of the pools that need it, under their locks.
func copyShards(ctx context.Context, tx pgx.Tx, targets []shardTarget) error {
	uneven, err := unevenPools(ctx, tx, targets)
	if err != nil || len(uneven) == 0 {
		return err
	}
	keys := make([]string, len(uneven))
	for i, t := range uneven {
		keys[i] = t.pool
	}
	rows, err := tx.Query(ctx, lockPoolShardsSQL, keys)
	if err != nil {
		return err
	}
	held := map[string][]shardUse{}
	var key string
	var s shardUse
	if _, err := pgx.ForEachRow(rows, []any{&key, &s.no, &s.capacity, &s.used}, func() error {
		held[key] = append(held[key], s)
		return nil
	}); err != nil {
		return err
	}
	b := &pgx.Batch{}
	for _, t := range uneven {
		want := rebalance(t, held[t.pool])
		for _, w := range want {
			if !slices.Contains(held[t.pool], w) {
				b.Queue(`INSERT INTO resource_pool_shard (resource_key, shard_no, capacity_units) VALUES ($1, $2, $3)
					ON CONFLICT (resource_key, shard_no) DO UPDATE SET capacity_units = excluded.capacity_units,
						version = resource_pool_shard.version + 1, updated_at = now()`, t.pool, w.no, w.capacity)
			}
		}
		for _, h := range held[t.pool] {
			if !slices.ContainsFunc(want, func(w shardUse) bool { return w.no == h.no }) {
				b.Queue(`DELETE FROM resource_pool_shard WHERE resource_key = $1 AND shard_no = $2 AND used_units = 0`, t.pool, h.no)
			}
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, b).Close()
}

// unevenPools returns the pools whose shards are not as they would be with nothing in use.
func unevenPools(ctx context.Context, tx pgx.Tx, targets []shardTarget) ([]shardTarget, error) {
	rows, err := tx.Query(ctx, `
		SELECT resource_key, count(*)::int, sum(capacity_units)::bigint, min(capacity_units) FROM resource_pool_shard GROUP BY resource_key`)
	if err != nil {
		return nil, err
	}
	type shards struct {
		count       int
		sum, lowest int64
	}
	held := map[string]shards{}
	var key string
	var s shards
	if _, err := pgx.ForEachRow(rows, []any{&key, &s.count, &s.sum, &s.lowest}, func() error { held[key] = s; return nil }); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(targets), func(t shardTarget) bool {
		n := t.count()
		return held[t.pool] == shards{n, t.capacity, t.capacity / int64(n)}
	}), nil
}
