package facts

// The statements lock tasks before attempts and both in the order of their keys. A row that somebody
// else changed meanwhile is looked at again by the server before it is written, so the conditions on
// state and fence hold at the instant of the write.
const (
	beginSQL = `
		WITH q AS (SELECT * FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS q(id, fence, ord)),
		held AS (
			SELECT a.attempt_id, t.cancel_requested_at IS NOT NULL AS canceled
			FROM task_attempt a JOIN generation_task t ON t.task_id = a.task_id
			WHERE a.state = 'CREATED' AND EXISTS (SELECT FROM q WHERE q.id = a.attempt_id AND q.fence = a.fencing_token)
			  AND a.attempt_id = ANY ($1::uuid[])
			ORDER BY a.attempt_id FOR UPDATE OF a),
		begun AS (
			UPDATE task_attempt a SET state = 'SUBMITTING', submit_started_at = clock_timestamp(),
				next_check_at = clock_timestamp() + make_interval(secs => $3), updated_at = clock_timestamp()
			FROM held WHERE a.attempt_id = held.attempt_id AND NOT held.canceled
			RETURNING a.attempt_id)
		SELECT CASE WHEN b.attempt_id IS NOT NULL AND q.fence = a.fencing_token THEN 'BEGUN'
		            WHEN h.canceled AND q.fence = a.fencing_token THEN 'CANCELED'
		            WHEN a.attempt_id IS NULL THEN 'MISSING' ELSE 'PAST' END,
		       q.id, q.fence, coalesce(a.task_id, q.id), coalesce(a.attempt_no, 0), coalesce(a.lane, ''), coalesce(a.resource_key, ''),
		       coalesce(a.provider, ''), coalesce(a.provider_account, ''), coalesce(t.model_code, ''), coalesce(t.kind, ''),
		       coalesce(a.provider_request_key, ''), coalesce(a.callback_token, ''), coalesce(t.parameters, '{}'),
		       coalesce(t.trace_context, ''), coalesce(t.expected_seconds, 0), coalesce(a.deadline_at, now())
		FROM q LEFT JOIN task_attempt a ON a.attempt_id = q.id LEFT JOIN generation_task t ON t.task_id = a.task_id
		LEFT JOIN held h ON h.attempt_id = q.id LEFT JOIN begun b ON b.attempt_id = q.id
		ORDER BY q.ord`

	moveHead = `
		WITH q AS (SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::float8[], $9::float8[])
			AS q(id, fence, event, job, class, code, raw, next, lease)),
		held AS (
			SELECT t.task_id, t.state, t.cancel_requested_at, t.current_attempt_id, a.attempt_id
			FROM task_attempt a JOIN generation_task t ON t.task_id = a.task_id
			WHERE a.attempt_id = ANY ($1::uuid[])
			ORDER BY t.task_id FOR UPDATE OF t),`

	// A cancel that was asked for meanwhile is looked at at once.
	acceptSQL = moveHead + `
		moved AS (
			UPDATE task_attempt a SET state = 'ACCEPTED', provider_job_id = q.job,
				submit_finished_at = coalesce(a.submit_finished_at, clock_timestamp()), check_count = 0,
				next_check_at = clock_timestamp() + make_interval(secs => CASE WHEN h.cancel_requested_at IS NULL THEN q.next ELSE 0 END),
				raw_answer = coalesce(nullif(q.raw, ''), a.raw_answer), error_class = NULL, error_code = NULL, updated_at = clock_timestamp()
			FROM q JOIN held h ON h.attempt_id = q.id
			WHERE a.attempt_id = q.id AND a.fencing_token = q.fence AND a.state IN ('SUBMITTING', 'UNKNOWN')
			RETURNING a.attempt_id, a.task_id, q.event, q.job, q.lease),
		task AS (
			UPDATE generation_task t SET state = 'RUNNING', version = t.version + 1,
				started_at = coalesce(t.started_at, clock_timestamp()), updated_at = clock_timestamp()
			FROM moved m JOIN held h ON h.attempt_id = m.attempt_id
			WHERE t.task_id = m.task_id AND t.current_attempt_id = m.attempt_id AND t.state IN ('DISPATCHING', 'SUBMIT_UNKNOWN')
			RETURNING t.task_id, h.state AS was, t.state AS now),
		lease AS (
			UPDATE resource_reservation r SET lease_until = greatest(r.lease_until, clock_timestamp() + make_interval(secs => m.lease))
			FROM moved m WHERE r.attempt_id = m.attempt_id AND r.state = 'ACTIVE'),
		event AS (
			INSERT INTO task_event (event_id, task_id, attempt_id, type, from_state, to_state, detail)
			SELECT m.event, m.task_id, m.attempt_id, 'AttemptAccepted', task.was, task.now, jsonb_build_object('job', m.job)
			FROM moved m LEFT JOIN task ON task.task_id = m.task_id)
		SELECT attempt_id FROM moved`

	unknownSQL = moveHead + `
		moved AS (
			UPDATE task_attempt a SET state = 'UNKNOWN', submit_finished_at = clock_timestamp(), check_count = 0,
				next_check_at = clock_timestamp() + make_interval(secs => q.next),
				raw_answer = nullif(q.raw, ''), error_class = nullif(q.class, ''), error_code = nullif(q.code, ''), updated_at = clock_timestamp()
			FROM q JOIN held h ON h.attempt_id = q.id
			WHERE a.attempt_id = q.id AND a.fencing_token = q.fence AND a.state = 'SUBMITTING'
			RETURNING a.attempt_id, a.task_id, q.event, q.class, q.job, q.lease),
		task AS (
			UPDATE generation_task t SET state = 'SUBMIT_UNKNOWN', version = t.version + 1, updated_at = clock_timestamp()
			FROM moved m JOIN held h ON h.attempt_id = m.attempt_id
			WHERE t.task_id = m.task_id AND t.current_attempt_id = m.attempt_id AND t.state = 'DISPATCHING'
			RETURNING t.task_id, h.state AS was, t.state AS now),
		event AS (
			INSERT INTO task_event (event_id, task_id, attempt_id, type, from_state, to_state, detail)
			SELECT m.event, m.task_id, m.attempt_id, 'AttemptUnknown', task.was, task.now, jsonb_build_object('class', m.class)
			FROM moved m LEFT JOIN task ON task.task_id = m.task_id)
		SELECT attempt_id FROM moved`

	lostSQL = moveHead + `
		moved AS (
			UPDATE task_attempt a SET state = 'LOST', next_check_at = clock_timestamp() + make_interval(secs => q.next),
				error_class = nullif(q.class, ''), error_code = nullif(q.code, ''), updated_at = clock_timestamp()
			FROM q JOIN held h ON h.attempt_id = q.id
			WHERE a.attempt_id = q.id AND a.fencing_token = q.fence AND a.state = 'ACCEPTED'
			RETURNING a.attempt_id, a.task_id, q.event, q.class, q.job, q.raw, q.lease),
		event AS (
			INSERT INTO task_event (event_id, task_id, attempt_id, type, detail)
			SELECT m.event, m.task_id, m.attempt_id, 'AttemptLost', jsonb_build_object('class', m.class)
			FROM moved m)
		SELECT attempt_id FROM moved`

	checkColumns = `a.attempt_id, a.fencing_token, a.task_id, a.attempt_no, a.state, a.provider, a.provider_account, t.model_code,
		a.provider_request_key, coalesce(a.provider_job_id, ''), clock_timestamp(), a.submit_started_at, a.submit_finished_at, a.deadline_at,
		t.expected_seconds, t.expected_p95_seconds, a.check_count, t.cancel_requested_at IS NOT NULL, a.cancel_sent_at IS NOT NULL`

	// statement_timestamp is stable, so that the index on next_check_at bounds the scan.
	dueSQL = `
		WITH due AS (
			SELECT attempt_id FROM task_attempt
			WHERE state IN ('SUBMITTING', 'ACCEPTED', 'UNKNOWN', 'LOST') AND next_check_at <= statement_timestamp()
			  AND (provider = ANY ($3::text[]) OR state = 'SUBMITTING' OR next_check_at <= statement_timestamp() - make_interval(secs => $2))
			ORDER BY next_check_at LIMIT $1 FOR UPDATE SKIP LOCKED),
		a AS (
			UPDATE task_attempt x SET next_check_at = clock_timestamp() + make_interval(secs => $2), check_count = x.check_count + 1
			FROM due WHERE x.attempt_id = due.attempt_id RETURNING x.*)
		SELECT ` + checkColumns + ` FROM a JOIN generation_task t ON t.task_id = a.task_id`

	hastenSQL = `
		WITH due AS (
			SELECT attempt_id FROM task_attempt
			WHERE (attempt_id = ANY ($1::uuid[]) OR task_id = ANY ($1::uuid[]))
			  AND state IN ('ACCEPTED', 'UNKNOWN', 'LOST') AND next_check_at > statement_timestamp()
			ORDER BY attempt_id FOR UPDATE SKIP LOCKED)
		UPDATE task_attempt a SET next_check_at = statement_timestamp() FROM due WHERE a.attempt_id = due.attempt_id`

	noteSQL = `
		WITH n AS (SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bool[], $4::float8[], $5::bool[], $6::float8[])
			AS n(id, fence, answered, progress, cancel, next)),
		held AS (
			SELECT attempt_id FROM task_attempt
			WHERE attempt_id = ANY ($1::uuid[]) AND state IN ('ACCEPTED', 'UNKNOWN', 'LOST') ORDER BY attempt_id FOR UPDATE),
		noted AS (
			UPDATE task_attempt a SET
				progress = CASE WHEN n.progress >= 0 THEN least(n.progress, 1) ELSE a.progress END,
				next_check_at = clock_timestamp() + make_interval(secs => n.next),
				check_count = CASE WHEN n.answered THEN 0 ELSE a.check_count END,
				cancel_sent_at = CASE WHEN n.cancel THEN coalesce(a.cancel_sent_at, clock_timestamp()) ELSE a.cancel_sent_at END,
				updated_at = clock_timestamp()
			FROM n JOIN held ON held.attempt_id = n.id
			WHERE a.attempt_id = n.id AND a.fencing_token = n.fence
			RETURNING a.attempt_id, n.answered)
		UPDATE resource_reservation r SET lease_until = clock_timestamp() + make_interval(secs => $7)
		FROM noted WHERE noted.answered AND r.attempt_id = noted.attempt_id AND r.state = 'ACTIVE'
		  AND r.lease_until < clock_timestamp() + make_interval(secs => $7 / 2)`

	// The id follows from the attempt: while one such row waits, no second is written.
	reemitSQL = `
		WITH stale AS (
			SELECT a.*, md5(a.attempt_id::text || ':again')::uuid AS event_id FROM task_attempt a
			WHERE a.state = 'CREATED' AND a.created_at <= statement_timestamp() - make_interval(secs => $1)
			ORDER BY a.created_at LIMIT $2),
		sent AS (
			INSERT INTO outbox_event (event_id, topic, group_key, event_type, aggregate_id, payload)
			SELECT s.event_id, $3::text, s.lane, $4::text, s.task_id, jsonb_build_object(
				'event_id', s.event_id, 'event_type', $4::text, 'task_id', s.task_id, 'attempt_id', s.attempt_id, 'tenant_id', t.tenant_id,
				'queue_class', s.lane, 'provider', s.provider, 'provider_account', s.provider_account, 'model_code', t.model_code,
				'resource_class', t.resource_class, 'fencing_token', s.fencing_token, 'policy_version', s.policy_version,
				'aggregate_version', t.version, 'trace_id', coalesce(t.trace_context, ''), 'created_at', clock_timestamp())
			FROM stale s JOIN generation_task t ON t.task_id = s.task_id
			ON CONFLICT (event_id) DO NOTHING RETURNING group_key),
		told AS (SELECT pg_notify($5::text, group_key) FROM (SELECT DISTINCT group_key FROM sent) g)
		SELECT (SELECT count(*) FROM sent), (SELECT count(*) FROM told)`
)
