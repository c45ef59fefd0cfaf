package facts

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"fairlane/control/plan"
	"fairlane/policy"
)

// copyAccounts writes what pool groups have and lanes hold. What is no longer in the document keeps its
// row and its use, with nothing more to give.
func copyAccounts(ctx context.Context, tx pgx.Tx, v *policy.Version) error {
	if err := copyGroups(ctx, tx, v); err != nil {
		return err
	}
	held, err := heldAccounts(ctx, tx)
	if err != nil {
		return err
	}
	want := map[plan.LaneGroup]accountTerms{}
	for i := range v.Document.Lanes {
		l := &v.Document.Lanes[i]
		for j := range l.Accounts {
			want[plan.LaneGroup{Lane: l.Code, Group: l.Accounts[j].PoolGroup}] = termsOf(&l.Accounts[j], l.Paused || !v.Document.Switches.SchedulingRunning)
		}
	}
	for k := range held {
		if _, kept := want[k]; !kept {
			want[k] = accountTerms{paused: true}
		}
	}
	var lanes, groups, lendsTo []string
	var columns [len(accountTerms{}.n)][]int64
	var paused []bool
	for k, a := range want {
		if h, exists := held[k]; exists && h.equal(a) {
			continue
		}
		lanes, groups, paused = append(lanes, k.Lane), append(groups, k.Group), append(paused, a.paused)
		lendsTo = append(lendsTo, arrayLiteral(a.lendsTo, quoteElement))
		for i := range columns {
			columns[i] = append(columns[i], a.n[i])
		}
	}
	if len(lanes) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, lockAccountSQL, lanes, groups); err != nil {
		return err
	}
	args := []any{v.Number, lanes, groups, paused, lendsTo}
	for _, c := range columns {
		args = append(args, c)
	}
	_, err = tx.Exec(ctx, upsertAccountSQL, args...)
	return err
}

// accountTerms is what the policy says of a lane's account.
type accountTerms struct {
	n       [5]int64 // in the order of accountNumbers
	paused  bool
	lendsTo []string
}

const accountNumbers = `reserved_units, headroom_units, lendable_units, borrow_limit, borrow_timeout`

func termsOf(a *policy.LaneAccount, paused bool) accountTerms {
	return accountTerms{[...]int64{a.ReservedUnits, a.HeadroomUnits, a.LendableUnits, a.BorrowLimit, a.BorrowTimeout}, paused, a.LendsTo}
}

func (t accountTerms) equal(o accountTerms) bool {
	return t.n == o.n && t.paused == o.paused && slices.Equal(t.lendsTo, o.lendsTo)
}

const upsertAccountSQL = `
	INSERT INTO lane_account (policy_version, lane, pool_group, paused, lends_to, ` + accountNumbers + `)
	SELECT $1::bigint, k.lane, k.grp, k.paused, k.lends::text[], k.reserved, k.headroom, k.lendable, k.most, k.timeout
	FROM unnest($2::text[], $3::text[], $4::boolean[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[])
	     k(lane, grp, paused, lends, reserved, headroom, lendable, most, timeout)
	ON CONFLICT (lane, pool_group) DO UPDATE SET updated_at = now(), policy_version = excluded.policy_version,
		paused = excluded.paused, lends_to = excluded.lends_to, reserved_units = excluded.reserved_units,
		headroom_units = excluded.headroom_units, lendable_units = excluded.lendable_units, borrow_limit = excluded.borrow_limit,
		borrow_timeout = excluded.borrow_timeout`

func heldAccounts(ctx context.Context, tx pgx.Tx) (map[plan.LaneGroup]accountTerms, error) {
	rows, err := tx.Query(ctx, `SELECT lane, pool_group, paused, lends_to, `+accountNumbers+` FROM lane_account`)
	if err != nil {
		return nil, err
	}
	held := map[plan.LaneGroup]accountTerms{}
	for rows.Next() {
		var k plan.LaneGroup
		var a accountTerms
		if err := rows.Scan(&k.Lane, &k.Group, &a.paused, &a.lendsTo, &a.n[0], &a.n[1], &a.n[2], &a.n[3], &a.n[4]); err != nil {
			return nil, err
		}
		held[k] = a
	}
	return held, rows.Err()
}

func copyGroups(ctx context.Context, tx pgx.Tx, v *policy.Version) error {
	type group struct{ capacity, common int64 }
	want := map[string]group{}
	for _, g := range v.Document.PoolGroups {
		capacity := v.Document.GroupCapacity(g.Code)
		want[g.Code] = group{capacity, max(0, capacity-v.Document.GroupReserved(g.Code))}
	}
	rows, err := tx.Query(ctx, `SELECT pool_group, capacity_units, common_units FROM pool_group_account`)
	if err != nil {
		return err
	}
	var code string
	var g group
	held := map[string]group{}
	if _, err := pgx.ForEachRow(rows, []any{&code, &g.capacity, &g.common}, func() error { held[code] = g; return nil }); err != nil {
		return err
	}
	for code := range held {
		if _, kept := want[code]; !kept {
			want[code] = group{}
		}
	}
	var codes []string
	var capacity, common []int64
	for code, g := range want {
		if h, exists := held[code]; !exists || h != g {
			codes, capacity, common = append(codes, code), append(capacity, g.capacity), append(common, g.common)
		}
	}
	if len(codes) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, lockGroupSQL, codes); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO pool_group_account (policy_version, pool_group, capacity_units, common_units)
		SELECT $1::bigint, * FROM unnest($2::text[], $3::bigint[], $4::bigint[])
		ON CONFLICT (pool_group) DO UPDATE SET updated_at = now(), policy_version = excluded.policy_version,
			capacity_units = excluded.capacity_units, common_units = excluded.common_units`, v.Number, codes, capacity, common)
	return err
}

// poolRow is a row of resource_pool but for what the scheduler itself learns.
type poolRow struct {
	poolPlace
	parents []string
}

type poolPlace struct {
	kind, group, provider, account, region, model, status string
	capacity                                              int64
	keeps                                                 bool // units for lanes
}

func (a poolRow) equal(b poolRow) bool {
	return a.poolPlace == b.poolPlace && slices.Equal(a.parents, b.parents)
}

// copyPools writes pools and their shards. A pool that is no longer in the document has no capacity;
// what runs in it is counted until it has ended.
func copyPools(ctx context.Context, tx pgx.Tx, v *policy.Version) error {
	held, err := heldPools(ctx, tx)
	if err != nil {
		return err
	}
	want := map[string]poolRow{}
	for i := range v.Document.Pools {
		p := &v.Document.Pools[i]
		status := "ACTIVE"
		if p.Paused {
			status = "PAUSED"
		}
		want[p.Key] = poolRow{poolPlace{string(p.Kind), p.Group, p.Provider, p.Account, p.Region, p.Model, status, p.CapacityUnits, len(p.LaneMinimums) > 0}, v.Document.CapGroups(p.Key)}
	}
	for key, p := range held {
		if _, kept := want[key]; !kept {
			p.status, p.capacity, p.keeps = "REMOVED", 0, false
			want[key] = p
		}
	}
	keys := make([]string, 0, len(want))
	for key := range want {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	b := &pgx.Batch{}
	for _, key := range keys {
		p := want[key]
		if h, exists := held[key]; exists && h.equal(p) {
			continue
		}
		b.Queue(upsertPoolSQL, key, p.kind, p.group, p.parents, p.provider, p.account, p.region, p.model, p.capacity, p.status, v.Number, p.keeps)
	}
	if b.Len() > 0 {
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
	}
	demands := v.Document.LargestDemands()
	targets := make([]shardTarget, len(keys))
	for i, key := range keys {
		targets[i] = shardTarget{key, want[key].capacity, max(1, demands[key])}
	}
	return copyShards(ctx, tx, targets)
}

const upsertPoolSQL = `
	INSERT INTO resource_pool (resource_key, kind, pool_group, parents, provider, provider_account, region, model_code, capacity_units, status, policy_version, keeps_lanes)
	VALUES ($1, $2, $3, coalesce($4, '{}'::text[]), $5, $6, $7, $8, $9, $10, $11, $12)
	ON CONFLICT (resource_key) DO UPDATE SET updated_at = now(), kind = excluded.kind, pool_group = excluded.pool_group,
		parents = excluded.parents, provider = excluded.provider, provider_account = excluded.provider_account, region = excluded.region,
		model_code = excluded.model_code, capacity_units = excluded.capacity_units, status = excluded.status,
		policy_version = excluded.policy_version, keeps_lanes = excluded.keeps_lanes`

func heldPools(ctx context.Context, tx pgx.Tx) (map[string]poolRow, error) {
	rows, err := tx.Query(ctx, `
		SELECT resource_key, kind, pool_group, parents, provider, provider_account, region, model_code, capacity_units, status, keeps_lanes FROM resource_pool`)
	if err != nil {
		return nil, err
	}
	held := map[string]poolRow{}
	for rows.Next() {
		var key string
		var p poolRow
		if err := rows.Scan(&key, &p.kind, &p.group, &p.parents, &p.provider, &p.account, &p.region, &p.model, &p.capacity, &p.status, &p.keeps); err != nil {
			return nil, err
		}
		held[key] = p
	}
	return held, rows.Err()
}
