package facts

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/policy"
)

// enforce copies what the version says into the rows by which claims and admissions decide, in the
// lock order. before is the document of the version before; empty for the first.
func enforce(ctx context.Context, tx pgx.Tx, v *policy.Version, before *policy.Document, tenants []policy.Tenant) error {
	if err := copySettings(ctx, tx, v, tenants); err != nil {
		return err
	}
	if err := addLaneRows(ctx, tx, before, v.Document); err != nil {
		return err
	}
	if err := copyDebtLimits(ctx, tx, v); err != nil {
		return err
	}
	if err := copyAccounts(ctx, tx, v); err != nil {
		return err
	}
	return copyPools(ctx, tx, v)
}

// settingsRow is a row of tenant_scheduling_policy but for its version.
type settingsRow struct {
	lane string
	n    [len(settingsColumns)]int64
}

var settingsColumns = [...]string{"weight", "max_queued_tasks", "max_queued_units", "max_running_tasks", "max_running_units",
	"max_cost_per_minute", "max_cost_per_day", "reserved_units", "burst_units", "max_wait_seconds",
	"user_max_queued_tasks", "user_max_running_tasks", "user_max_running_image", "user_max_running_video"}

func settingsOf(s policy.TenantSettings) settingsRow {
	return settingsRow{s.Lane, [...]int64{s.Weight, s.MaxQueuedTasks, s.MaxQueuedUnits, s.MaxRunningTasks, s.MaxRunningUnits,
		s.MaxCostPerMinute, s.MaxCostPerDay, s.ReservedUnits, s.BurstUnits, s.MaxWaitSeconds,
		s.UserMaxQueuedTasks, s.UserMaxRunningTasks, s.UserMaxRunningImage, s.UserMaxRunningVideo}}
}

const settingsValues = `weight, max_queued_tasks, max_queued_units, max_running_tasks, max_running_units,
	max_cost_per_minute, max_cost_per_day, reserved_units, burst_units, max_wait_seconds,
	user_max_queued_tasks, user_max_running_tasks, user_max_running_image, user_max_running_video`

// copySettings writes the effective settings of the tenants whose rows say something else.
func copySettings(ctx context.Context, tx pgx.Tx, v *policy.Version, tenants []policy.Tenant) error {
	held, err := heldSettings(ctx, tx)
	if err != nil {
		return err
	}
	r := policy.NewResolver(v.Document)
	var ids []uuid.UUID
	var lanes []string
	var columns [len(settingsColumns)][]int64
	for _, t := range tenants {
		s, ok := r.Effective(t)
		if !ok {
			continue // refused by the rules
		}
		want := settingsOf(s)
		if got, exists := held[t.ID]; exists && got == want {
			continue
		}
		ids, lanes = append(ids, t.ID), append(lanes, want.lane)
		for i := range columns {
			columns[i] = append(columns[i], want.n[i])
		}
	}
	if len(ids) == 0 {
		return nil
	}
	const lockSQL = `SELECT FROM tenant_scheduling_policy WHERE tenant_id = ANY($1) ORDER BY tenant_id FOR NO KEY UPDATE`
	if _, err := tx.Exec(ctx, lockSQL, ids); err != nil {
		return err
	}
	args := []any{v.Number, ids, lanes}
	for _, c := range columns {
		args = append(args, c)
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO tenant_scheduling_policy (policy_version, tenant_id, service_class, `+settingsValues+`)
		SELECT $1::bigint, * FROM unnest($2::uuid[], $3::text[], $4::int[], $5::int[], $6::bigint[], $7::int[], $8::bigint[],
			$9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::int[], $14::int[], $15::int[], $16::int[], $17::int[])
		ON CONFLICT (tenant_id) DO UPDATE SET updated_at = now(), policy_version = excluded.policy_version, service_class = excluded.service_class,
			weight = excluded.weight, max_queued_tasks = excluded.max_queued_tasks, max_queued_units = excluded.max_queued_units,
			max_running_tasks = excluded.max_running_tasks, max_running_units = excluded.max_running_units,
			max_cost_per_minute = excluded.max_cost_per_minute, max_cost_per_day = excluded.max_cost_per_day,
			reserved_units = excluded.reserved_units, burst_units = excluded.burst_units, max_wait_seconds = excluded.max_wait_seconds,
			user_max_queued_tasks = excluded.user_max_queued_tasks, user_max_running_tasks = excluded.user_max_running_tasks,
			user_max_running_image = excluded.user_max_running_image, user_max_running_video = excluded.user_max_running_video`, args...)
	return err
}

// heldSettings reads the rows unlocked: whoever changes them holds the policy head.
func heldSettings(ctx context.Context, tx pgx.Tx) (map[uuid.UUID]settingsRow, error) {
	rows, err := tx.Query(ctx, `SELECT tenant_id, service_class, `+settingsValues+` FROM tenant_scheduling_policy`)
	if err != nil {
		return nil, err
	}
	held := map[uuid.UUID]settingsRow{}
	var id uuid.UUID
	var s settingsRow
	into := []any{&id, &s.lane}
	for i := range s.n {
		into = append(into, &s.n[i])
	}
	_, err = pgx.ForEachRow(rows, into, func() error { held[id] = s; return nil })
	return held, err
}

// addLaneRows gives every tenant its counters in lanes that are new.
func addLaneRows(ctx context.Context, tx pgx.Tx, before, after *policy.Document) error {
	var lanes []string
	for i := range after.Lanes {
		if _, had := before.Lane(after.Lanes[i].Code); !had {
			lanes = append(lanes, after.Lanes[i].Code)
		}
	}
	if len(lanes) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO tenant_lane_runtime (tenant_id, lane)
		SELECT t.tenant_id, l.lane FROM tenant t CROSS JOIN unnest($1::text[]) l(lane) ORDER BY 1, 2
		ON CONFLICT DO NOTHING`, lanes)
	return err
}
