package facts

import (
	"fmt"
	"strings"
)

// Drift is a counter that does not say what the rows behind it say.
type Drift struct {
	Table   string
	Object  string // key of the row, parts joined by " / "
	Counter string
	From    int64 // what it says; -1: there is no such row
	To      int64 // the sum of the rows
}

func (d Drift) String() string {
	return fmt.Sprintf("%s of %s %s: %d, should be %d", d.Counter, d.Table, d.Object, d.From, d.To)
}

// counterTable says how the counters of a table follow from ACTIVE reservations and QUEUED tasks. The
// check compares by it, the rebuilder repairs by it.
type counterTable struct {
	name      string
	invariant string
	keys      []string
	counters  []string
	sums      string // SQL: keys and counters, as they should be; keys without a row stand for zeros
	create    bool   // a missing row may be made
}

// counterTables stand in the lock order.
var counterTables = []counterTable{
	{
		name: "tenant_runtime", invariant: "I02", keys: []string{"tenant_id"}, create: true,
		counters: []string{"queued_tasks", "queued_units", "running_tasks", "running_units"},
		sums: `SELECT tenant_id, sum(qt)::bigint queued_tasks, sum(qu)::bigint queued_units, sum(rt)::bigint running_tasks, sum(ru)::bigint running_units
			FROM (` + workSums("tenant_id", "tenant_id") + `) u GROUP BY tenant_id`,
	},
	{
		name: "tenant_lane_runtime", invariant: "I02", keys: []string{"tenant_id", "lane"}, create: true,
		counters: []string{"queued_tasks", "queued_units", "running_tasks", "running_units"},
		sums: `SELECT tenant_id, lane, sum(qt)::bigint queued_tasks, sum(qu)::bigint queued_units, sum(rt)::bigint running_tasks, sum(ru)::bigint running_units
			FROM (` + workSums("tenant_id, queue_class AS lane", "tenant_id, lane") + `) u GROUP BY tenant_id, lane`,
	},
	{
		name: "user_runtime", invariant: "I02", keys: []string{"tenant_id", "user_id"}, create: true,
		counters: []string{"queued_tasks", "running_tasks", "running_image", "running_video"},
		sums: `SELECT tenant_id, user_id, sum(q)::bigint queued_tasks, sum(r)::bigint running_tasks, sum(i)::bigint running_image, sum(v)::bigint running_video
			FROM (SELECT tenant_id, user_id, count(*) q, 0 r, 0 i, 0 v FROM generation_task WHERE state = 'QUEUED' GROUP BY 1, 2
			      UNION ALL
			      SELECT tenant_id, user_id, 0, count(DISTINCT attempt_id), count(DISTINCT attempt_id) FILTER (WHERE kind = 'IMAGE'),
			             count(DISTINCT attempt_id) FILTER (WHERE kind = 'VIDEO')
			      FROM resource_reservation WHERE state = 'ACTIVE' GROUP BY 1, 2) u
			GROUP BY tenant_id, user_id`,
	},
	{
		name: "pool_group_account", invariant: "I02", keys: []string{"pool_group"}, counters: []string{"common_used"},
		sums: `SELECT pool_group, sum(reserved_units)::bigint common_used
			FROM resource_reservation WHERE state = 'ACTIVE' AND account = 'COMMON' GROUP BY pool_group`,
	},
	{
		name: "lane_account", invariant: "I02", keys: []string{"lane", "pool_group"},
		counters: []string{"own_used", "common_used", "borrowed_used", "lent_units"},
		sums: `SELECT lane, pool_group, coalesce(sum(units) FILTER (WHERE account = 'OWN'), 0)::bigint own_used,
			       coalesce(sum(units) FILTER (WHERE account = 'COMMON'), 0)::bigint common_used,
			       coalesce(sum(units) FILTER (WHERE account = 'BORROWED'), 0)::bigint borrowed_used,
			       coalesce(sum(units) FILTER (WHERE account = 'LENT'), 0)::bigint lent_units
			FROM (SELECT lane, pool_group, account, reserved_units units FROM resource_reservation WHERE state = 'ACTIVE'
			      UNION ALL
			      SELECT lender_lane, pool_group, 'LENT', reserved_units FROM resource_reservation WHERE state = 'ACTIVE' AND account = 'BORROWED') u
			GROUP BY lane, pool_group`,
	},
	{
		name: "resource_pool_shard", invariant: "I01", keys: []string{"resource_key", "shard_no"}, counters: []string{"used_units"},
		sums: `SELECT resource_key, shard_no, sum(units)::bigint used_units
			FROM (SELECT resource_key, shard_no, reserved_units units FROM resource_reservation WHERE state = 'ACTIVE'
			      UNION ALL
			      SELECT g.* FROM resource_reservation r, unnest(r.group_keys, r.group_shards, r.group_units) g WHERE r.state = 'ACTIVE') u
			GROUP BY resource_key, shard_no`,
	},
}

func workSums(ofTasks, ofReservations string) string {
	return `SELECT ` + ofTasks + `, 1 qt, fairness_units qu, 0 rt, 0 ru FROM generation_task WHERE state = 'QUEUED'
		UNION ALL
		SELECT ` + ofReservations + `, 0, 0, count(DISTINCT attempt_id), sum(reserved_units)
		FROM resource_reservation WHERE state = 'ACTIVE' GROUP BY ` + ofReservations
}

// drifts is SQL that lists the drifts of the table: row text of the key, object, counter, from, to. With
// keyed, only rows whose key text is in $1.
func (c *counterTable) drifts(keyed bool) string {
	values := make([]string, len(c.counters))
	for i, name := range c.counters {
		values[i] = fmt.Sprintf("('%s', t.%s, coalesce(w.%s, 0))", name, name, name)
	}
	keys := strings.Join(c.keys, ", ")
	where := ""
	if keyed {
		where = ` AND ROW(` + keys + `)::text = ANY($1)`
	}
	return `SELECT ROW(` + keys + `)::text, concat_ws(' / ', ` + keys + `), v.counter, coalesce(v.have, -1), v.want
		FROM ` + c.name + ` t FULL JOIN (` + c.sums + `) w USING (` + keys + `)
		CROSS JOIN LATERAL (VALUES ` + strings.Join(values, ", ") + `) v(counter, have, want)
		WHERE v.have IS DISTINCT FROM v.want` + where + ` ORDER BY ` + keys + `, v.counter`
}

// lock is SQL that locks the rows whose key text is in $1.
func (c *counterTable) lock() string {
	keys := strings.Join(c.keys, ", ")
	return `SELECT 1 FROM ` + c.name + ` WHERE ROW(` + keys + `)::text = ANY($1) ORDER BY ` + keys + ` FOR NO KEY UPDATE`
}

// insert is SQL that makes the rows that are missing.
func (c *counterTable) insert() string {
	keys := strings.Join(c.keys, ", ")
	return `INSERT INTO ` + c.name + ` (` + keys + `) SELECT ` + keys + ` FROM (` + c.sums + `) w
		WHERE ROW(` + keys + `)::text = ANY($1) ORDER BY ` + keys + ` ON CONFLICT DO NOTHING`
}

// repair is SQL that sets the counters of the rows whose key text is in $1, upwards and downwards.
func (c *counterTable) repair() string {
	sets, same := make([]string, len(c.counters)), make([]string, len(c.keys))
	for i, name := range c.counters {
		sets[i] = fmt.Sprintf("%s = coalesce(w.%s, 0)", name, name)
	}
	for i, name := range c.keys {
		same[i] = fmt.Sprintf("t.%s = k.%s", name, name)
	}
	keys := strings.Join(c.keys, ", ")
	return `UPDATE ` + c.name + ` t SET ` + strings.Join(sets, ", ") + `
		FROM (SELECT ` + keys + ` FROM ` + c.name + ` WHERE ROW(` + keys + `)::text = ANY($1)) k LEFT JOIN (` + c.sums + `) w USING (` + keys + `)
		WHERE ` + strings.Join(same, " AND ")
}
