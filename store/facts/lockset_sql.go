package facts

import "github.com/jackc/pgx/v5/pgconn"

// The statements of lockSet. NO KEY UPDATE is what a counter's UPDATE takes by itself, and does not
// stand in the way of rows that refer to the locked one. ORDER BY goes before locking, so that two
// transactions take the rows of a table in one order.
const (
	lockPolicySQL = `
		SELECT p.tenant_id, coalesce((SELECT t.status = 'ACTIVE' FROM tenant t WHERE t.tenant_id = p.tenant_id), false),
		       p.max_running_tasks, p.max_running_units,
		       p.user_max_running_tasks, p.user_max_running_image, p.user_max_running_video
		FROM tenant_scheduling_policy p WHERE p.tenant_id = ANY($1) ORDER BY p.tenant_id FOR SHARE`

	lockTenantSQL = `
		SELECT tenant_id, running_tasks, running_units, cost_factor, cost_tasks
		FROM tenant_runtime WHERE tenant_id = ANY($1) ORDER BY tenant_id FOR NO KEY UPDATE`

	lockTenantLaneSQL = `
		SELECT r.tenant_id, r.lane, r.debt_milli FROM unnest($1::uuid[], $2::text[]) k(tenant_id, lane)
		JOIN tenant_lane_runtime r ON r.tenant_id = k.tenant_id AND r.lane = k.lane
		ORDER BY r.tenant_id, r.lane FOR NO KEY UPDATE OF r`

	// Written here and not with the other counters: a row that is missing is made, in the lock order. A plan of
	// an older version cannot carry a debt beyond a total that is lower now.
	repaySQL = `
		INSERT INTO tenant_lane_runtime AS r (tenant_id, lane, debt_milli)
		SELECT k.tenant_id, k.lane, -k.milli FROM unnest($1::uuid[], $2::text[], $3::bigint[]) k(tenant_id, lane, milli)
		JOIN tenant t ON t.tenant_id = k.tenant_id
		ORDER BY k.tenant_id, k.lane
		ON CONFLICT (tenant_id, lane) DO UPDATE SET updated_at = clock_timestamp(), debt_milli = coalesce(
		    (SELECT greatest(-l.total_milli, least(l.total_milli, r.debt_milli + excluded.debt_milli)) FROM lane_debt_limit l WHERE l.lane = r.lane),
		    r.debt_milli + excluded.debt_milli)`

	lockUserSQL = `
		SELECT r.tenant_id, r.user_id, r.running_tasks, r.running_image, r.running_video
		FROM unnest($1::uuid[], $2::uuid[]) k(tenant_id, user_id)
		JOIN user_runtime r ON r.tenant_id = k.tenant_id AND r.user_id = k.user_id
		ORDER BY r.tenant_id, r.user_id FOR NO KEY UPDATE OF r`

	lockGroupSQL = `
		SELECT pool_group, common_units, common_used
		FROM pool_group_account WHERE pool_group = ANY($1) ORDER BY pool_group FOR NO KEY UPDATE`

	lockAccountSQL = `
		SELECT a.lane, a.pool_group, a.reserved_units, a.own_used, a.common_used, a.borrowed_used, a.lent_units,
		       a.headroom_units, a.lendable_units, a.borrow_limit, a.lends_to, a.borrow_timeout, a.paused, a.lending_stopped
		FROM unnest($1::text[], $2::text[]) k(lane, pool_group)
		JOIN lane_account a ON a.lane = k.lane AND a.pool_group = k.pool_group
		ORDER BY a.lane, a.pool_group FOR NO KEY UPDATE OF a`

	lockPoolShardsSQL = `
		SELECT resource_key, shard_no, capacity_units, used_units
		FROM resource_pool_shard WHERE resource_key = ANY($1) ORDER BY resource_key, shard_no FOR NO KEY UPDATE`

	lockShardSQL = `
		SELECT s.resource_key, s.shard_no, s.capacity_units, s.used_units
		FROM unnest($1::text[], $2::int[]) k(resource_key, shard_no)
		JOIN resource_pool_shard s ON s.resource_key = k.resource_key AND s.shard_no = k.shard_no
		ORDER BY s.resource_key, s.shard_no FOR NO KEY UPDATE OF s`

	lockTaskSQL = `
		SELECT task_id, tenant_id, user_id, kind, queue_class, pool_group, state, version, fairness_units,
		       provider_slot_units, attempts_made, max_attempts,
		       coalesce(current_attempt_id, '00000000-0000-0000-0000-000000000000'),
		       next_eligible_at <= clock_timestamp(), coalesce(deadline_at <= clock_timestamp(), false),
		       cancel_requested_at IS NOT NULL, model_code, resource_class, coalesce(trace_context, ''),
		       coalesce(base_units, fairness_units), expected_seconds, expected_p95_seconds, expected_gpu_seconds, estimated_cost_units,
		       second_base, cost_base_micro, gpu_second_base
		FROM generation_task WHERE task_id = ANY($1) ORDER BY task_id FOR NO KEY UPDATE`

	lockAttemptSQL = `
		SELECT attempt_id, task_id, state, fencing_token,
		       greatest(0, extract(epoch FROM clock_timestamp() - created_at))::float8,
		       coalesce(greatest(0, extract(epoch FROM clock_timestamp() - submit_finished_at)), -1)::float8, free
		FROM task_attempt WHERE attempt_id = ANY($1) ORDER BY attempt_id FOR NO KEY UPDATE`

	reservationColumns = `reservation_id, attempt_id, tenant_id, user_id, kind, lane, pool_group, resource_key,
		shard_no, reserved_units, account, coalesce(lender_lane, ''), group_keys, group_shards, group_units`

	lockReservationSQL = `
		SELECT ` + reservationColumns + `
		FROM resource_reservation WHERE attempt_id = ANY($1) AND state = 'ACTIVE'
		ORDER BY reservation_id FOR NO KEY UPDATE`
)

func ignoreTag(pgconn.CommandTag) error { return nil }
