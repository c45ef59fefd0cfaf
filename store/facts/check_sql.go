package facts

// probe asks for objects that break an invariant, with a detail for each.
type probe struct{ invariant, sql string }

const (
	liveAttempt  = `('CREATED', 'SUBMITTING', 'ACCEPTED', 'UNKNOWN', 'LOST')`
	terminalTask = `('SUCCEEDED', 'FAILED', 'CANCELED')`
)

// A limit may lie below what runs after an operator has lowered it. It is broken when something was
// claimed by a plan that knew the policy version which set it: the claim saw the new limit too.
var probes = []probe{
	{"I01", `
		SELECT 'pool ' || p.resource_key, format('%s of %s units are used, and some came in after the capacity was set', s.used, s.capacity)
		FROM resource_pool p CROSS JOIN LATERAL (
		    SELECT sum(used_units) used, sum(capacity_units) capacity FROM resource_pool_shard WHERE resource_key = p.resource_key) s
		WHERE s.used > s.capacity AND EXISTS (
		    SELECT FROM resource_reservation r WHERE r.state = 'ACTIVE' AND r.policy_version >= p.policy_version
		    AND (r.resource_key = p.resource_key OR p.resource_key = ANY(r.group_keys)))`},
	{"I02", `
		SELECT 'tenant ' || r.tenant_id, format('%s of %s tasks and %s of %s units run', r.running_tasks, p.max_running_tasks, r.running_units, p.max_running_units)
		FROM tenant_runtime r JOIN tenant_scheduling_policy p USING (tenant_id)
		WHERE (r.running_tasks > p.max_running_tasks OR r.running_units > p.max_running_units) AND EXISTS (
		    SELECT FROM resource_reservation v WHERE v.state = 'ACTIVE' AND v.tenant_id = r.tenant_id AND v.policy_version >= p.policy_version)`},
	{"I02", `
		SELECT 'user ' || r.user_id, format('%s of %s tasks run, images %s of %s, videos %s of %s', r.running_tasks, p.user_max_running_tasks,
		       r.running_image, p.user_max_running_image, r.running_video, p.user_max_running_video)
		FROM user_runtime r JOIN tenant_scheduling_policy p USING (tenant_id)
		WHERE (r.running_tasks > p.user_max_running_tasks AND EXISTS (SELECT FROM resource_reservation v WHERE v.state = 'ACTIVE'
		       AND v.tenant_id = r.tenant_id AND v.user_id = r.user_id AND v.policy_version >= p.policy_version))
		   OR (r.running_image > p.user_max_running_image AND EXISTS (SELECT FROM resource_reservation v WHERE v.state = 'ACTIVE'
		       AND v.tenant_id = r.tenant_id AND v.user_id = r.user_id AND v.kind = 'IMAGE' AND v.policy_version >= p.policy_version))
		   OR (r.running_video > p.user_max_running_video AND EXISTS (SELECT FROM resource_reservation v WHERE v.state = 'ACTIVE'
		       AND v.tenant_id = r.tenant_id AND v.user_id = r.user_id AND v.kind = 'VIDEO' AND v.policy_version >= p.policy_version))`},
	{"I02", `
		SELECT format('lane %s in %s', a.lane, a.pool_group), format('%s own and %s lent of %s reserved units', a.own_used, a.lent_units, a.reserved_units)
		FROM lane_account a WHERE a.own_used + a.lent_units > a.reserved_units AND EXISTS (
		    SELECT FROM resource_reservation r WHERE r.state = 'ACTIVE' AND r.pool_group = a.pool_group AND r.policy_version >= a.policy_version
		    AND (r.account = 'OWN' AND r.lane = a.lane OR r.lender_lane = a.lane))`},
	{"I02", `
		SELECT 'pool group ' || g.pool_group, format('%s of %s common units are used', g.common_used, g.common_units)
		FROM pool_group_account g WHERE g.common_used > g.common_units AND EXISTS (
		    SELECT FROM resource_reservation r WHERE r.state = 'ACTIVE' AND r.pool_group = g.pool_group AND r.account = 'COMMON'
		    AND r.policy_version >= g.policy_version)`},
	{"I02", `
		SELECT format('lane %s in %s', a.lane, a.pool_group), format('%s borrowed of at most %s units', a.borrowed_used, a.borrow_limit)
		FROM lane_account a WHERE a.borrowed_used > a.borrow_limit AND EXISTS (
		    SELECT FROM resource_reservation r WHERE r.state = 'ACTIVE' AND r.pool_group = a.pool_group AND r.lane = a.lane
		    AND r.account = 'BORROWED' AND r.policy_version >= a.policy_version)`},
	{"I05", `
		SELECT 'attempt ' || attempt_id, 'holds units in more than one account'
		FROM resource_reservation WHERE state = 'ACTIVE' GROUP BY attempt_id
		HAVING count(DISTINCT (account, lender_lane, lane, pool_group)) > 1`},
	// A repayment that was planned before the last settlements may carry a debt as far beyond its limit as that is wide.
	{"I02", `
		SELECT format('tenant %s in lane %s', r.tenant_id, r.lane), format('owes %s of at most %s milli-units', r.debt_milli, l.total_milli)
		FROM tenant_lane_runtime r JOIN lane_debt_limit l USING (lane) WHERE abs(r.debt_milli) > 2 * l.total_milli`},
	{"I03", `
		SELECT 'task ' || task_id, format('%s live attempts of stage %s', count(*), stage)
		FROM task_attempt WHERE state IN ` + liveAttempt + ` GROUP BY task_id, stage HAVING count(*) > 1`},
	{"I03", `
		SELECT 'task ' || task_id, format('attempt %s has fencing token %s after %s', attempt_no, fencing_token, before)
		FROM (SELECT task_id, attempt_no, fencing_token, lag(fencing_token) OVER (PARTITION BY task_id ORDER BY attempt_no) before FROM task_attempt) a
		WHERE fencing_token <= before`},
	{"I05", `
		SELECT 'attempt ' || a.attempt_id, format('is %s and still holds %s units of %s', a.state, r.reserved_units, r.resource_key)
		FROM resource_reservation r JOIN task_attempt a USING (attempt_id)
		WHERE r.state = 'ACTIVE' AND a.state NOT IN ` + liveAttempt},
	{"I05", `
		SELECT 'attempt ' || a.attempt_id, format('is %s and holds no units', a.state)
		FROM task_attempt a WHERE a.state IN ` + liveAttempt + ` AND a.state <> 'UNKNOWN' AND a.stage = 'GENERATION'
		AND NOT EXISTS (SELECT FROM resource_reservation r WHERE r.attempt_id = a.attempt_id AND r.state = 'ACTIVE')`},
	{"I05", `
		SELECT 'attempt ' || attempt_id, format('is %s and its charge was not settled', state)
		FROM task_attempt WHERE state NOT IN ` + liveAttempt + ` AND settled_units IS NULL`},
	{"I05", `
		SELECT 'attempt ' || r.attempt_id, format('holds %s units, its task takes %s', sum(r.reserved_units), t.provider_slot_units)
		FROM resource_reservation r JOIN generation_task t USING (task_id) WHERE r.state = 'ACTIVE'
		GROUP BY r.attempt_id, t.provider_slot_units HAVING sum(r.reserved_units) <> t.provider_slot_units`},
	{"I05", `
		SELECT 'reservation ' || r.reservation_id, format('counts %s units in %s and %s in its pool', g.units, g.key, r.reserved_units)
		FROM resource_reservation r CROSS JOIN LATERAL (
		    SELECT key, sum(units) units FROM unnest(r.group_keys, r.group_units) e(key, units) GROUP BY key) g
		WHERE r.state = 'ACTIVE' AND g.units <> r.reserved_units`},
	{"I05", `
		SELECT 'reservation ' || r.reservation_id, format('has fencing token %s, its attempt %s', r.fencing_token, a.fencing_token)
		FROM resource_reservation r JOIN task_attempt a USING (attempt_id) WHERE r.state = 'ACTIVE' AND r.fencing_token <> a.fencing_token`},
	{"I06", `
		SELECT format('lane %s in %s', a.lane, a.pool_group), format('%s lent of %s lendable units; %s reserved, of them %s headroom',
		       a.lent_units, a.lendable_units, a.reserved_units, a.headroom_units)
		FROM lane_account a WHERE a.lent_units > least(a.lendable_units, a.reserved_units - a.headroom_units) AND EXISTS (
		    SELECT FROM resource_reservation r WHERE r.state = 'ACTIVE' AND r.pool_group = a.pool_group AND r.lender_lane = a.lane
		    AND r.policy_version >= a.policy_version)`},
	{"I07", `
		SELECT 'policy version ' || v.version, format('%s audit records', (
		    SELECT count(*) FROM audit_event e WHERE e.policy_version = v.version AND e.action = 'policy.publish'))
		FROM policy_version v
		WHERE (SELECT count(*) FROM audit_event e WHERE e.policy_version = v.version AND e.action = 'policy.publish') <> 1`},
	{"I07", `
		SELECT 'audit record ' || sequence, CASE WHEN sequence <> before + 1 THEN format('follows record %s', before) ELSE 'its hash does not follow from the record before it' END
		FROM (SELECT sequence, record, hash, coalesce(lag(sequence) OVER w, 0) before, coalesce(lag(hash) OVER w, decode(repeat('00', 32), 'hex')) previous
		      FROM audit_event WINDOW w AS (ORDER BY sequence)) e
		WHERE sequence <> before + 1 OR hash <> sha256(previous || convert_to(record, 'UTF8')) ORDER BY sequence`},
	{"I07", `
		SELECT 'audit head', format('stands at %s, the last record is %s', h.sequence, coalesce(e.sequence, 0))
		FROM audit_head h LEFT JOIN LATERAL (SELECT sequence, hash FROM audit_event ORDER BY sequence DESC LIMIT 1) e ON true
		WHERE h.sequence <> coalesce(e.sequence, 0) OR h.hash <> coalesce(e.hash, decode(repeat('00', 32), 'hex'))`},
	{"I08", `
		SELECT 'policy version ' || version, format('follows %s', before)
		FROM (SELECT version, coalesce(lag(version) OVER (ORDER BY version), 0) before FROM policy_version) v WHERE version <> before + 1`},
	{"I08", `
		SELECT 'policy head', format('stands at %s, the last version is %s', h.version, coalesce((SELECT max(version) FROM policy_version), 0))
		FROM policy_head h WHERE h.version <> coalesce((SELECT max(version) FROM policy_version), 0)`},
	{"I09", `
		SELECT 'attempt ' || a.attempt_id, 'its submission is unknown and it holds no units'
		FROM task_attempt a WHERE a.state = 'UNKNOWN' AND a.stage = 'GENERATION'
		AND NOT EXISTS (SELECT FROM resource_reservation r WHERE r.attempt_id = a.attempt_id AND r.state = 'ACTIVE')`},
	{"I09", `
		SELECT 'attempt ' || attempt_id, format('is %s and its charge was settled by %s', state, settled_units)
		FROM task_attempt WHERE state IN ` + liveAttempt + ` AND settled_units IS NOT NULL`},
	{"I10", `
		SELECT 'task ' || t.task_id, format('is %s and has a live attempt in %s', t.state, a.state)
		FROM task_attempt a JOIN generation_task t USING (task_id) WHERE a.state IN ` + liveAttempt + ` AND t.state IN ` + terminalTask},
	{"I10", `
		SELECT 'task ' || task_id, format('is %s and has no time of its end', state)
		FROM generation_task WHERE state IN ` + terminalTask + ` AND finished_at IS NULL`},
	{"I10", `
		SELECT 'task ' || task_id, format('went from %s to %s', from_state, to_state)
		FROM task_event WHERE from_state IN ` + terminalTask + ` AND to_state <> from_state`},
	{"I11", `
		SELECT 'task ' || t.task_id, format('is %s without a live attempt', t.state)
		FROM generation_task t WHERE t.state IN ('DISPATCHING', 'SUBMIT_UNKNOWN', 'RUNNING') AND NOT EXISTS (
		    SELECT FROM task_attempt a WHERE a.attempt_id = t.current_attempt_id AND a.task_id = t.task_id AND a.state IN ` + liveAttempt + `)`},
	{"I11", `
		SELECT 'task ' || t.task_id, 'is QUEUED and has a live attempt'
		FROM task_attempt a JOIN generation_task t USING (task_id) WHERE t.state = 'QUEUED' AND a.state IN ` + liveAttempt + ` AND a.stage = 'GENERATION'`},
	{"I11", `
		SELECT 'task ' || task_id, format('is QUEUED after %s of %s attempts', attempts_made, max_attempts)
		FROM generation_task WHERE state = 'QUEUED' AND attempts_made >= max_attempts`},
}
