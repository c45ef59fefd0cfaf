package facts

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control/estimate"
	"fairlane/control/plan"
)

// endedSample is an attempt that says how long its kind of work takes.
type endedSample struct {
	attempt    uuid.UUID
	used, held float64
	cost       int64 // -1: not known
	milli      int64
}

// readLimits reads what the policy in force says of debts, while the tenants' rows are locked: a publish
// that lowers a limit takes those rows too before it cuts the debts in them.
func (d *endDecision) readLimits(b *pgx.Batch) {
	b.Queue(`SELECT lane, task_milli, total_milli FROM lane_debt_limit`).Query(scanAll(func(r pgx.Rows) error {
		var lane string
		var l estimate.DebtLimits
		err := r.Scan(&lane, &l.Task, &l.Total)
		d.limits[lane] = l
		return err
	}))
}

// settle corrects the charge of an attempt by what it used: the tenant's debt in the lane, and the
// tenant's factor. A start that was not charged owes nothing, but teaches as others do. Attempts of one
// tenant settle in the order of the batch, so that the outcome is the same however they are grouped. It
// runs once for an attempt, since an attempt ends once.
func (d *endDecision) settle(t *taskRow, a *attemptRow, row *endedAttempt) estimate.Settlement {
	bill := estimate.Settle(t.charge, estimate.Finish{
		From: a.state, To: row.ending.State, Seconds: row.seconds, CostMicro: row.cost, Accepted: a.accepted, Held: a.held,
	})
	row.used, row.held = bill.Seconds, a.held
	if bill.Known {
		row.milli = &bill.Milli
	}
	out := estimate.Settlement{
		Kind: t.kind, Known: bill.Known, Whole: bill.Learn, Seconds: bill.Seconds, ExpectedSeconds: t.charge.Seconds,
		HeldSeconds: a.held, P95Seconds: t.p95, UsedMilli: bill.Milli, ChargedMilli: t.charge.Milli,
	}
	key := plan.TenantLane{Tenant: t.tenant, Lane: t.lane}
	if lane, ok := d.held.tenantLanes[key]; ok && !a.free { // a row that is missing is made by the rebuilder, without a debt
		var after int64
		after, row.settled = d.limits[t.lane].Settle(lane.debt, bill.Correction(t.charge.Milli))
		out.DebtMilli = after - lane.debt
		entry(d.ledger.lanes, key).debtMilli += out.DebtMilli
		lane.debt = after
	}
	if !bill.Learn {
		return out
	}
	if tenant, ok := d.held.tenants[t.tenant]; ok {
		tenant.factor = tenant.factor.Learn(t.charge.Milli, t.charge.Base, bill.Milli)
		c := entry(d.ledger.tenants, t.tenant)
		c.factor = &tenant.factor.Value
		c.learnt++
	}
	d.samples = append(d.samples, endedSample{attempt: a.id, used: bill.Seconds, held: a.held, cost: row.cost, milli: bill.Milli})
	return out
}

// queueSamples leaves what successes say to the learner.
func (d *endDecision) queueSamples(b *pgx.Batch) {
	n := len(d.samples)
	if n == 0 {
		return
	}
	ids, used, held := make([]uuid.UUID, n), make([]float64, n), make([]float64, n)
	costs, milli := make([]int64, n), make([]int64, n)
	for i, s := range d.samples {
		ids[i], used[i], held[i], costs[i], milli[i] = s.attempt, s.used, s.held, s.cost, s.milli
	}
	b.Queue(insertSampleSQL, ids, used, held, costs, milli).Exec(mustAffect(n, "samples kept"))
}

const insertSampleSQL = `
	INSERT INTO estimate_sample (attempt_id, model_code, resolution, clip_seconds, provider, used_seconds, held_seconds, cost_micro,
	    expected_seconds, expected_p95_seconds, charged_units, used_units)
	SELECT k.attempt_id, t.model_code, coalesce(t.parameters ->> 'resolution', ''),
	       CASE WHEN jsonb_typeof(t.parameters -> 'duration_seconds') = 'number' THEN (t.parameters ->> 'duration_seconds')::numeric::bigint ELSE 0 END,
	       a.provider, k.used, k.held, nullif(k.cost, -1), t.expected_seconds, t.expected_p95_seconds, t.fairness_units, k.milli
	FROM unnest($1::uuid[], $2::float8[], $3::float8[], $4::bigint[], $5::bigint[]) WITH ORDINALITY k(attempt_id, used, held, cost, milli, n)
	JOIN task_attempt a ON a.attempt_id = k.attempt_id JOIN generation_task t ON t.task_id = a.task_id ORDER BY k.n`
