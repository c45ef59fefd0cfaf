package facts

import (
	"fmt"
	"strings"

	"fairlane/control/monitor"
)

// rollAccounts and rollLanes make samples of a longer step of those of a shorter one: $1 from, $2 to.
func rollAccounts(step, of int) string {
	return fmt.Sprintf(`
		INSERT INTO account_sample (lane, pool_group, step, at, reserved, headroom, own, common, borrowed, lent)
		SELECT lane, pool_group, %[1]d, date_bin('%[1]d seconds', at, 'epoch'), avg(reserved), avg(headroom), avg(own), avg(common), avg(borrowed), avg(lent)
		FROM account_sample WHERE step = %[2]d AND at >= $1 AND at < $2 GROUP BY 1, 2, 4 ON CONFLICT DO NOTHING`, step, of)
}

func rollLanes(step, of int) string {
	return fmt.Sprintf(`
		INSERT INTO lane_sample (lane, step, at, queued_tasks, running_tasks, oldest_seconds)
		SELECT lane, %[1]d, date_bin('%[1]d seconds', at, 'epoch'), avg(queued_tasks), avg(running_tasks), max(oldest_seconds)
		FROM lane_sample WHERE step = %[2]d AND at >= $1 AND at < $2 GROUP BY 1, 3 ON CONFLICT DO NOTHING`, step, of)
}

// classes writes an expression for each class of waits, as an array.
func classes(expression string, first int) string {
	list := make([]string, len(monitor.WaitBounds)+1)
	for i := range list {
		list[i] = fmt.Sprintf(expression, i+first)
	}
	return "ARRAY[" + strings.Join(list, ", ") + "]::bigint[]"
}

// What a tenant was served in a minute follows from the claims of that minute, which lie in the order of
// their ids ($3 up to $4); what it has and owes is read as it is now. A row is written only for who was
// served or has work. First attempts alone count as waits: a later one has run meanwhile.
var sqlTenantMinute = `
	WITH claims AS (
	  SELECT g.tenant_id, g.queue_class AS lane, g.fairness_units AS cost, e.detail->>'attempt_no' = '1' AS first,
	         width_bucket(extract(epoch FROM e.at - g.queued_since)::float8, $6::float8[]) AS class
	  FROM task_event e JOIN generation_task g USING (task_id)
	  WHERE e.event_id >= $3 AND e.event_id < $4 AND e.at >= $1 AND e.at < $2 AND e.type = $5
	), served AS (
	  SELECT tenant_id, lane, count(*) AS starts, sum(cost)::bigint AS served, ` + classes("count(*) FILTER (WHERE first AND class = %d)", 0) + ` AS waits
	  FROM claims GROUP BY 1, 2
	), work AS (
	  SELECT tenant_id, lane FROM tenant_lane_runtime WHERE queued_tasks > 0 OR running_tasks > 0
	), weighed AS (
	  SELECT tenant_id, lane, coalesce(s.served, 0) AS served, coalesce(s.starts, 0) AS starts,
	         coalesce(s.waits, array_fill(0::bigint, ARRAY[cardinality($6::float8[]) + 1])) AS waits,
	         coalesce(r.debt_milli, 0) AS debt, coalesce(r.running_units, 0) AS running, coalesce(r.queued_tasks, 0) AS queued,
	         sum(s.served) OVER (PARTITION BY lane) AS lane_served,
	         CASE WHEN p.service_class = lane THEN p.weight ELSE 0 END AS weight,
	         sum(CASE WHEN p.service_class = lane THEN p.weight ELSE 0 END) OVER (PARTITION BY lane) AS weights
	  FROM served s FULL JOIN work w USING (tenant_id, lane)
	  LEFT JOIN tenant_lane_runtime r USING (tenant_id, lane)
	  LEFT JOIN tenant_scheduling_policy p USING (tenant_id)
	)
	INSERT INTO tenant_sample (tenant_id, lane, step, at, served_milli, lane_served_milli, entitled_milli, debt_milli, running_units, queued_tasks, starts, waits)
	SELECT tenant_id, lane, 60, $1, served, coalesce(lane_served, 0), coalesce(round(lane_served * weight / nullif(weights, 0)), 0), debt, running, queued, starts, waits
	FROM weighed ON CONFLICT DO NOTHING`

// sumTenants adds samples up: means are over the minutes with work, the debt is the last one.
var sumTenants = `sum(served_milli)::bigint, sum(lane_served_milli)::bigint, sum(entitled_milli)::bigint, (array_agg(debt_milli ORDER BY at DESC))[1],
	avg(running_units), avg(queued_tasks), sum(starts)::bigint, ` + classes("coalesce(sum(waits[%d]), 0)", 1)

var sqlTenantHour = `
	INSERT INTO tenant_sample (tenant_id, lane, step, at, served_milli, lane_served_milli, entitled_milli, debt_milli, running_units, queued_tasks, starts, waits)
	SELECT tenant_id, lane, 3600, date_bin('1 hour', at, 'epoch'), ` + sumTenants + `
	FROM tenant_sample WHERE step = 60 AND at >= $1 AND at < $2 GROUP BY 1, 2, 4 ON CONFLICT DO NOTHING`

// A promise is judged once it is due, and stays judged: what comes back later is late for ever. A loan
// over several shards is one, and back when all of it is.
const (
	sqlLoanMinute = `
		INSERT INTO loan_sample (lender, lane, pool_group, step, at, loans, units, kept, kept_units)
		SELECT borrowed_from, lane, pool_group, 60, date_bin('1 minute', due, 'epoch'), count(*), sum(units),
		       count(*) FILTER (WHERE back), coalesce(sum(units) FILTER (WHERE back), 0)
		FROM (SELECT attempt_id, borrowed_from, lane, pool_group, min(borrow_due_at) AS due, sum(reserved_units) AS units,
		             bool_and(returned_at IS NOT NULL AND returned_at <= borrow_due_at) AS back
		      FROM resource_reservation WHERE borrow_due_at >= $1 AND borrow_due_at < $2 GROUP BY 1, 2, 3, 4) loans
		GROUP BY 1, 2, 3, 5 ON CONFLICT DO NOTHING`

	sqlLoanHour = `
		INSERT INTO loan_sample (lender, lane, pool_group, step, at, loans, units, kept, kept_units)
		SELECT lender, lane, pool_group, 3600, date_bin('1 hour', at, 'epoch'), sum(loans), sum(units), sum(kept), sum(kept_units)
		FROM loan_sample WHERE step = 60 AND at >= $1 AND at < $2 GROUP BY 1, 2, 3, 5 ON CONFLICT DO NOTHING`
)
