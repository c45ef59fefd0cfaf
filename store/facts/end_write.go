package facts

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// queue adds the statements that end attempts, move tasks and release reservations. Each compares
// with what the locked rows said; a difference means a broken lock and undoes the transaction.
func (d *endDecision) queue(b *pgx.Batch) {
	d.queueTasks(b)
	d.queueAttempts(b)
	if len(d.released) > 0 {
		b.Queue(releaseSQL, d.released).Exec(mustAffect(len(d.released), "reservations released"))
	}
	d.queueSamples(b)
}

func (d *endDecision) queueTasks(b *pgx.Batch) {
	n := len(d.tasks)
	if n == 0 {
		return
	}
	ids, versions, moves, states := make([]uuid.UUID, n), make([]int64, n), make([]int64, n), make([]string, n)
	terminal, delays, costs, more := make([]bool, n), make([]int64, n), make([]int64, n), make([]int64, n)
	results, failed, codes, messages := make([]string, n), make([]bool, n), make([]string, n), make([]string, n)
	for i := range d.tasks {
		t := &d.tasks[i]
		ids[i], versions[i], moves[i], states[i] = t.id, t.version, t.moves, string(t.state)
		terminal[i], delays[i], costs[i], more[i] = t.state.Terminal(), t.retryAfter.Microseconds(), t.cost, t.more
		results[i], failed[i], codes[i], messages[i] = t.result, t.endedWithError, t.code, t.message
	}
	b.Queue(endTaskSQL, ids, versions, moves, states, terminal, delays, costs, results, failed, codes, messages, more).
		Exec(mustAffect(n, "tasks moved"))
}

func (d *endDecision) queueAttempts(b *pgx.Batch) {
	n := len(d.attempts)
	ids, from, to, tokens := make([]uuid.UUID, n), make([]string, n), make([]string, n), make([]int64, n)
	seconds, costs := make([]float64, n), make([]int64, n)
	raw, classes, codes := make([]string, n), make([]string, n), make([]string, n)
	used, held, milli, settled := make([]float64, n), make([]float64, n), make([]*int64, n), make([]int64, n)
	for i := range d.attempts {
		a := &d.attempts[i]
		ids[i], from[i], to[i], tokens[i] = a.id, string(a.from), string(a.ending.State), a.token
		seconds[i], costs[i] = a.seconds, a.cost
		raw[i] = storableText(a.ending.RawAnswer, maxAnswer)
		classes[i], codes[i] = storableText(a.ending.ErrorClass, maxCode), storableText(a.ending.ErrorCode, maxCode)
		used[i], held[i], milli[i], settled[i] = a.used, a.held, a.milli, a.settled
	}
	b.Queue(endAttemptSQL, ids, from, to, tokens, seconds, costs, raw, classes, codes, used, held, milli, settled).Exec(mustAffect(n, "attempts ended"))
}

const (
	// A retry keeps queued_since. What an attempt is known to have cost adds up over the attempts.
	endTaskSQL = `
		UPDATE generation_task t
		SET state = k.state, version = t.version + k.moves,
		    finished_at = CASE WHEN k.terminal THEN clock_timestamp() END,
		    next_eligible_at = CASE WHEN k.state = 'QUEUED' THEN clock_timestamp() + k.delay * interval '1 microsecond' ELSE t.next_eligible_at END,
		    max_attempts = t.max_attempts + k.more,
		    current_attempt_id = CASE WHEN k.state <> 'QUEUED' THEN t.current_attempt_id END,
		    actual_cost_units = CASE WHEN k.cost >= 0 THEN coalesce(t.actual_cost_units, 0) + k.cost ELSE t.actual_cost_units END,
		    result = CASE WHEN k.result <> '' THEN k.result::jsonb ELSE t.result END,
		    error_code = CASE WHEN k.failed THEN k.code END, error_message = CASE WHEN k.failed THEN k.message END,
		    updated_at = clock_timestamp()
		FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::bool[], $6::bigint[], $7::bigint[], $8::text[],
		     $9::bool[], $10::text[], $11::text[], $12::int[]) k(task_id, version, moves, state, terminal, delay, cost, result, failed, code, message, more)
		WHERE t.task_id = k.task_id AND t.version = k.version`

	endAttemptSQL = `
		UPDATE task_attempt a
		SET state = k.next, next_check_at = NULL, actual_seconds = nullif(k.seconds, 0), actual_cost_units = nullif(k.cost, -1),
		    raw_answer = coalesce(nullif(k.raw, ''), a.raw_answer),
		    error_class = coalesce(nullif(k.class, ''), a.error_class), error_code = coalesce(nullif(k.code, ''), a.error_code),
		    used_seconds = CASE WHEN k.milli IS NOT NULL THEN k.used END, held_seconds = k.held, used_units = k.milli, settled_units = k.settled,
		    updated_at = clock_timestamp()
		FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::float8[], $6::bigint[], $7::text[], $8::text[], $9::text[],
		     $10::float8[], $11::float8[], $12::bigint[], $13::bigint[])
		     k(attempt_id, state, next, token, seconds, cost, raw, class, code, used, held, milli, settled)
		WHERE a.attempt_id = k.attempt_id AND a.state = k.state AND a.fencing_token = k.token`

	releaseSQL = `
		UPDATE resource_reservation SET state = 'RELEASED', released_at = clock_timestamp(),
		    returned_at = CASE WHEN account = 'BORROWED' AND borrowed_at IS NOT NULL THEN clock_timestamp() ELSE returned_at END
		WHERE reservation_id = ANY($1) AND state = 'ACTIVE'`
)
