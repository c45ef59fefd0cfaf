package facts

import (
	"context"

	"fairlane/control/reconcile"
)

// Waits looks for tenants that wait longer than their bound. It implements reconcile.Waits.
type Waits struct{ db *DB }

// NewWaits looks over the connections of db.
func NewWaits(db *DB) *Waits { return &Waits{db: db} }

// maxStarving bounds how many tenants are kept: those that wait the longest.
const maxStarving = 1000

// One row of counters and one look into an index for every tenant with a queue. A head is served within
// ⌈cost / ((1 − repay share) × quantum)⌉ + 1 turns of its ring, the quantum by its weight against the
// largest of the lane.
const sqlStarving = `
	WITH rule AS (
	  SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[]) r(lane, seconds, exempt)
	), waiting AS (
	  SELECT q.lane, q.tenant_id, o.task_id, o.queued_since, o.fairness_units, p.weight::numeric, max(p.weight) OVER (PARTITION BY q.lane) AS heaviest, rule.exempt,
	         least(nullif(rule.seconds, 0), nullif(p.max_wait_seconds::bigint * 3 / 4, 0)) AS bound,
	         t.running_tasks >= p.max_running_tasks OR t.running_units + o.provider_slot_units > p.max_running_units AS capped
	  FROM rule JOIN tenant_lane_runtime q USING (lane) JOIN tenant_scheduling_policy p USING (tenant_id) JOIN tenant_runtime t USING (tenant_id)
	  CROSS JOIN LATERAL (SELECT task_id, queued_since, fairness_units, provider_slot_units FROM generation_task g
	        WHERE g.state = 'QUEUED' AND g.tenant_id = q.tenant_id AND g.queue_class = q.lane ORDER BY queued_since LIMIT 1) o
	  WHERE q.queued_tasks > 0
	), over AS (
	  SELECT *, queued_since + bound * interval '1 second' AS since FROM waiting
	  WHERE exempt = '' AND queued_since + bound * interval '1 second' < clock_timestamp()
	  ORDER BY queued_since LIMIT $6
	), put AS (
	  INSERT INTO starvation (lane, tenant_id, task_id, oldest_at, bound_seconds, turns, capped, since)
	  SELECT lane, tenant_id, task_id, queued_since, bound,
	         CASE WHEN weight > 0 THEN ceil(fairness_units * heaviest / ((1000 - $5::numeric) * $4::numeric * weight)) + 1 ELSE 0 END, capped, since
	  FROM over
	  ON CONFLICT (lane, tenant_id) DO UPDATE SET task_id = excluded.task_id, oldest_at = excluded.oldest_at, bound_seconds = excluded.bound_seconds,
	         turns = excluded.turns, capped = excluded.capped, since = excluded.since
	), ended AS (
	  DELETE FROM starvation s WHERE NOT EXISTS (SELECT FROM over o WHERE o.lane = s.lane AND o.tenant_id = s.tenant_id)
	), lanes AS (
	  SELECT rule.lane, rule.seconds, min(w.queued_since) AS oldest, min(w.bound) AS bound, count(o.*) FILTER (WHERE NOT o.capped) AS tenants,
	         count(o.*) FILTER (WHERE o.capped) AS capped,
	         CASE WHEN rule.exempt <> '' THEN rule.exempt WHEN rule.seconds = 0 AND min(w.bound) IS NULL THEN $7 ELSE '' END AS exempt
	  FROM rule LEFT JOIN waiting w USING (lane) LEFT JOIN over o ON o.lane = w.lane AND o.tenant_id = w.tenant_id
	  GROUP BY rule.lane, rule.seconds, rule.exempt
	), gone AS (
	  DELETE FROM starvation_lane s WHERE s.lane <> ALL($1)
	), kept AS (
	  INSERT INTO starvation_lane (lane, exempt, bound_seconds, oldest_at, tenants, capped, checked_at)
	  SELECT lane, exempt, coalesce(nullif(seconds, 0), bound, 0), oldest, tenants, capped, clock_timestamp() FROM lanes
	  ON CONFLICT (lane) DO UPDATE SET exempt = excluded.exempt, bound_seconds = excluded.bound_seconds, oldest_at = excluded.oldest_at,
	         tenants = excluded.tenants, capped = excluded.capped, checked_at = excluded.checked_at
	)
	SELECT coalesce(sum(tenants), 0)::bigint FROM lanes`

// Starving looks at every lane of the rule, keeps who is over its bound, and returns how many tenants are.
func (w *Waits) Starving(ctx context.Context, rule reconcile.StarvationRule) (int64, error) {
	lanes, seconds, exempt := make([]string, len(rule.Lanes)), make([]int64, len(rule.Lanes)), make([]string, len(rule.Lanes))
	for i, l := range rule.Lanes {
		lanes[i], seconds[i], exempt[i] = l.Lane, l.Seconds, l.Exempt
	}
	var n int64
	err := w.db.pool.QueryRow(ctx, sqlStarving, lanes, seconds, exempt, rule.BaseQuantumUnits, rule.RepayPermille, maxStarving, reconcile.ExemptNoBound).Scan(&n)
	return n, away(err)
}
