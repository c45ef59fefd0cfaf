package facts

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/plan"
)

// ledger gathers what a transaction adds to counters and takes from them, and writes it with one
// statement for a table. The rows must be locked already. A counter never goes below zero: one that
// has drifted must not hold up a release (the check reports it, the rebuilder repairs it).
type ledger struct {
	tenants  map[uuid.UUID]*workCount
	lanes    map[plan.TenantLane]*workCount
	users    map[plan.TenantUser]*userCount
	groups   map[string]int64 // common units
	accounts map[plan.LaneGroup]*accountCount
	shards   map[shardKey]int64
}

// workCount is what is added to a tenant's row, or to its row in a lane.
type workCount struct {
	queuedTasks, queuedMilli, runningTasks, runningUnits int64
	servedMilli, debtMilli                               int64    // of a lane
	learnt                                               int64    // tasks that moved the tenant's factor
	factor                                               *float64 // the tenant's, when it has moved
}

type userCount struct{ queued, running, image, video int64 }

type accountCount struct{ own, common, borrowed, lent int64 }

func newLedger() *ledger {
	return &ledger{
		tenants: map[uuid.UUID]*workCount{}, lanes: map[plan.TenantLane]*workCount{},
		users: map[plan.TenantUser]*userCount{}, groups: map[string]int64{},
		accounts: map[plan.LaneGroup]*accountCount{}, shards: map[shardKey]int64{},
	}
}

func entry[K comparable, V any](m map[K]*V, k K) *V {
	v, ok := m[k]
	if !ok {
		v = new(V)
		m[k] = v
	}
	return v
}

// queued counts a task into (n = 1) or out of (n = -1) what waits.
func (l *ledger) queued(t *taskRow, n int64) {
	for _, c := range []*workCount{entry(l.tenants, t.tenant), entry(l.lanes, plan.TenantLane{Tenant: t.tenant, Lane: t.lane})} {
		c.queuedTasks += n
		c.queuedMilli += n * t.costMilli
	}
	entry(l.users, plan.TenantUser{Tenant: t.tenant, User: t.user}).queued += n
}

// running counts an attempt of that many units into (n = 1) or out of (n = -1) what runs.
func (l *ledger) running(tenant, user uuid.UUID, lane string, kind control.Kind, units, n int64) {
	for _, c := range []*workCount{entry(l.tenants, tenant), entry(l.lanes, plan.TenantLane{Tenant: tenant, Lane: lane})} {
		c.runningTasks += n
		c.runningUnits += n * units
	}
	u := entry(l.users, plan.TenantUser{Tenant: tenant, User: user})
	u.running += n
	if kind == control.KindImage {
		u.image += n
	} else {
		u.video += n
	}
}

// account counts units into (n = 1) or out of (n = -1) a lane's account in a pool group.
func (l *ledger) account(at plan.LaneGroup, account control.Account, lender string, units, n int64) {
	a := entry(l.accounts, at)
	switch account {
	case control.AccountOwn:
		a.own += n * units
	case control.AccountCommon:
		a.common += n * units
		l.groups[at.Group] += n * units
	case control.AccountBorrowed:
		a.borrowed += n * units
		entry(l.accounts, plan.LaneGroup{Lane: lender, Group: at.Group}).lent += n * units
	}
}

// reservation counts one row's units out of every counter of pools and accounts that it was counted in.
func (l *ledger) release(r *reservationRow) {
	l.account(plan.LaneGroup{Lane: r.lane, Group: r.group}, r.account, r.lender, r.units, -1)
	l.shards[shardKey{r.pool, r.shard}] -= r.units
	for i, key := range r.groupKeys {
		l.shards[shardKey{key, r.groupShards[i]}] -= r.groupUnits[i]
	}
}

// queue adds the statements that write the ledger, at most one for a table.
func (l *ledger) queue(b *pgx.Batch) {
	if n := len(l.tenants); n > 0 {
		ids, c := make([]uuid.UUID, 0, n), newWorkColumns(n)
		factors, learnt := make([]*float64, 0, n), make([]int64, 0, n)
		for id, d := range l.tenants {
			ids, factors, learnt = append(ids, id), append(factors, d.factor), append(learnt, d.learnt)
			c.add(d)
		}
		b.Queue(addTenantSQL, ids, c.queuedTasks, c.queuedMilli, c.runningTasks, c.runningUnits, factors, learnt).Exec(ignoreTag)
	}
	if n := len(l.lanes); n > 0 {
		ids, lanes, c := make([]uuid.UUID, 0, n), make([]string, 0, n), newWorkColumns(n)
		for k, d := range l.lanes {
			ids, lanes = append(ids, k.Tenant), append(lanes, k.Lane)
			c.add(d)
		}
		b.Queue(addTenantLaneSQL, ids, lanes, c.queuedTasks, c.queuedMilli, c.runningTasks, c.runningUnits, c.servedMilli, c.debtMilli).Exec(ignoreTag)
	}
	if n := len(l.users); n > 0 {
		ids, users := make([]uuid.UUID, 0, n), make([]uuid.UUID, 0, n)
		queued, running, image, video := make([]int64, 0, n), make([]int64, 0, n), make([]int64, 0, n), make([]int64, 0, n)
		for k, d := range l.users {
			ids, users = append(ids, k.Tenant), append(users, k.User)
			queued, running = append(queued, d.queued), append(running, d.running)
			image, video = append(image, d.image), append(video, d.video)
		}
		b.Queue(addUserSQL, ids, users, queued, running, image, video).Exec(ignoreTag)
	}
	if n := len(l.groups); n > 0 {
		keys, common := make([]string, 0, n), make([]int64, 0, n)
		for k, d := range l.groups {
			keys, common = append(keys, k), append(common, d)
		}
		b.Queue(addGroupSQL, keys, common).Exec(ignoreTag)
	}
	if n := len(l.accounts); n > 0 {
		lanes, groups := make([]string, 0, n), make([]string, 0, n)
		own, common, borrowed, lent := make([]int64, 0, n), make([]int64, 0, n), make([]int64, 0, n), make([]int64, 0, n)
		for k, d := range l.accounts {
			lanes, groups = append(lanes, k.Lane), append(groups, k.Group)
			own, common = append(own, d.own), append(common, d.common)
			borrowed, lent = append(borrowed, d.borrowed), append(lent, d.lent)
		}
		b.Queue(addAccountSQL, lanes, groups, own, common, borrowed, lent).Exec(ignoreTag)
	}
	if n := len(l.shards); n > 0 {
		keys, nos, units := make([]string, 0, n), make([]int32, 0, n), make([]int64, 0, n)
		for k, d := range l.shards {
			keys, nos, units = append(keys, k.pool), append(nos, k.no), append(units, d)
		}
		b.Queue(addShardSQL, keys, nos, units).Exec(ignoreTag)
	}
}

type workColumns struct {
	queuedTasks, queuedMilli, runningTasks, runningUnits, servedMilli, debtMilli []int64
}

func newWorkColumns(n int) *workColumns {
	column := func() []int64 { return make([]int64, 0, n) }
	return &workColumns{column(), column(), column(), column(), column(), column()}
}

func (c *workColumns) add(d *workCount) {
	c.queuedTasks = append(c.queuedTasks, d.queuedTasks)
	c.queuedMilli = append(c.queuedMilli, d.queuedMilli)
	c.runningTasks = append(c.runningTasks, d.runningTasks)
	c.runningUnits = append(c.runningUnits, d.runningUnits)
	c.servedMilli = append(c.servedMilli, d.servedMilli)
	c.debtMilli = append(c.debtMilli, d.debtMilli)
}

const (
	addTenantSQL = `
		UPDATE tenant_runtime r
		SET queued_tasks = greatest(0, r.queued_tasks + k.qt), queued_units = greatest(0, r.queued_units + k.qu),
		    running_tasks = greatest(0, r.running_tasks + k.rt), running_units = greatest(0, r.running_units + k.ru),
		    cost_factor = coalesce(k.cf, r.cost_factor), cost_tasks = r.cost_tasks + k.ct, updated_at = clock_timestamp()
		FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::float8[], $7::bigint[])
		     k(tenant_id, qt, qu, rt, ru, cf, ct)
		WHERE r.tenant_id = k.tenant_id`

	addTenantLaneSQL = `
		UPDATE tenant_lane_runtime r
		SET queued_tasks = greatest(0, r.queued_tasks + k.qt), queued_units = greatest(0, r.queued_units + k.qu),
		    running_tasks = greatest(0, r.running_tasks + k.rt), running_units = greatest(0, r.running_units + k.ru),
		    served_milli = r.served_milli + k.sm, debt_milli = r.debt_milli + k.dm, updated_at = clock_timestamp()
		FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
		     k(tenant_id, lane, qt, qu, rt, ru, sm, dm)
		WHERE r.tenant_id = k.tenant_id AND r.lane = k.lane`

	addUserSQL = `
		UPDATE user_runtime r
		SET queued_tasks = greatest(0, r.queued_tasks + k.q), running_tasks = greatest(0, r.running_tasks + k.r),
		    running_image = greatest(0, r.running_image + k.i), running_video = greatest(0, r.running_video + k.v),
		    updated_at = clock_timestamp()
		FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[]) k(tenant_id, user_id, q, r, i, v)
		WHERE r.tenant_id = k.tenant_id AND r.user_id = k.user_id`

	addGroupSQL = `
		UPDATE pool_group_account g SET common_used = greatest(0, g.common_used + k.units)
		FROM unnest($1::text[], $2::bigint[]) k(pool_group, units)
		WHERE g.pool_group = k.pool_group`

	addAccountSQL = `
		UPDATE lane_account a
		SET own_used = greatest(0, a.own_used + k.own), common_used = greatest(0, a.common_used + k.common),
		    borrowed_used = greatest(0, a.borrowed_used + k.borrowed), lent_units = greatest(0, a.lent_units + k.lent)
		FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
		     k(lane, pool_group, own, common, borrowed, lent)
		WHERE a.lane = k.lane AND a.pool_group = k.pool_group`

	addShardSQL = `
		UPDATE resource_pool_shard s SET used_units = greatest(0, s.used_units + k.units), version = s.version + 1
		FROM unnest($1::text[], $2::int[], $3::bigint[]) k(resource_key, shard_no, units)
		WHERE s.resource_key = k.resource_key AND s.shard_no = k.shard_no`
)
