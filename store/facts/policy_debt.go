package facts

import (
	"context"

	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/policy"
)

// copyDebtLimits writes down what the version says of debts, lane by lane, and cuts debts that are above
// a total that has become lower. A lane that charges tasks alike keeps no debt. The rows of the tenants
// are locked before the limits are: an attempt that ends meanwhile has either settled, and is cut here,
// or reads the new limits.
func copyDebtLimits(ctx context.Context, tx pgx.Tx, v *policy.Version) error {
	lanes := v.Document.Lanes
	codes, task, total := make([]string, len(lanes)), make([]int64, len(lanes)), make([]int64, len(lanes))
	for i := range lanes {
		codes[i] = lanes[i].Code
		if lanes[i].Strategy != policy.WRR {
			task[i] = v.Document.Scheduling.DebtTaskUnits * control.Milli
			total[i] = v.Document.Scheduling.DebtTotalUnits * control.Milli
		}
	}
	// Whoever changes the limits holds the policy head, so that they can be compared without a lock.
	if _, err := tx.Exec(ctx, lockLoweredSQL, codes, total); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, cutDebtSQL, codes, total); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, putDebtLimitSQL, codes, task, total, v.Number); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM lane_debt_limit WHERE lane <> ALL ($1::text[])`, codes)
	return err
}

const (
	lockLoweredSQL = `
		SELECT FROM tenant_lane_runtime r WHERE r.lane IN (
		    SELECT k.lane FROM unnest($1::text[], $2::bigint[]) k(lane, total) JOIN lane_debt_limit l USING (lane) WHERE k.total < l.total_milli)
		ORDER BY r.tenant_id, r.lane FOR NO KEY UPDATE`

	cutDebtSQL = `
		UPDATE tenant_lane_runtime r SET debt_milli = greatest(-k.total, least(k.total, r.debt_milli)), updated_at = clock_timestamp()
		FROM unnest($1::text[], $2::bigint[]) k(lane, total) JOIN lane_debt_limit l USING (lane)
		WHERE r.lane = k.lane AND k.total < l.total_milli AND abs(r.debt_milli) > k.total`

	putDebtLimitSQL = `
		INSERT INTO lane_debt_limit AS l (lane, task_milli, total_milli, policy_version)
		SELECT k.*, $4 FROM unnest($1::text[], $2::bigint[], $3::bigint[]) k
		ON CONFLICT (lane) DO UPDATE SET task_milli = excluded.task_milli, total_milli = excluded.total_milli, policy_version = excluded.policy_version
		WHERE (l.task_milli, l.total_milli) <> (excluded.task_milli, excluded.total_milli)`
)
