package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"fairlane/control"
	"fairlane/policy"
	"fairlane/store/facts"
)

// Population is what the pages are shown over.
type Population struct{ Tenants, Queued int }

const onboardBatch = 1000

// Seed fills an empty database whose policy is doc: tenants in turn on its plans, one user each, and tasks
// that wait, spread over the tenants by a power law, as large customers have more.
func Seed(ctx context.Context, db *facts.DB, pool *pgxpool.Pool, doc *policy.Document, p Population) error {
	tenants := facts.NewTenants(db)
	for from := 0; from < p.Tenants; from += onboardBatch {
		var list []facts.NewTenant
		for i := from; i < min(from+onboardBatch, p.Tenants); i++ {
			list = append(list, facts.NewTenant{
				Code: fmt.Sprintf("tenant-%05d", i), Name: fmt.Sprintf("Studio %05d 影业", i), Plan: doc.Plans[i%len(doc.Plans)].Code,
				Users: []facts.NewUser{{ExternalID: "user-1"}},
			})
		}
		if _, err := tenants.Onboard(ctx, list, control.Actor{Name: "bench"}, ""); err != nil {
			return fmt.Errorf("tenants: %w", err)
		}
	}
	if _, err := pool.Exec(ctx, queueSQL, p.Queued, time.Now().Add(-time.Hour), doc.Models[0].Code, policy.DefaultGroup, p.Tenants); err != nil {
		return fmt.Errorf("tasks: %w", err)
	}
	if _, err := facts.NewRebuild(db).RebuildCounters(ctx, control.Actor{Name: "bench"}); err != nil {
		return err
	}
	_, err := pool.Exec(ctx, `VACUUM ANALYZE`)
	return err
}

const queueSQL = `
	WITH place AS (
		SELECT t.tenant_id, u.user_id, p.service_class, row_number() OVER (ORDER BY t.tenant_id) - 1 AS no
		FROM tenant t JOIN tenant_user u USING (tenant_id) JOIN tenant_scheduling_policy p USING (tenant_id))
	INSERT INTO generation_task (task_id, tenant_id, user_id, kind, queue_class, pool_group, priority_band, resource_class, state,
		model_code, route, fairness_units, provider_slot_units, estimated_cost_units, expected_seconds, expected_p95_seconds,
		enqueue_at, queued_since, next_eligible_at, policy_version, estimate_version, idempotency_key)
	SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, w.tenant_id, w.user_id, 'VIDEO', w.service_class, $4, 3, 'STANDARD', 'QUEUED',
		$3, $3, 2000, 1, 500000, 60, 150, at, at, at, 1, 1, i::text
	FROM (SELECT i, $2::timestamptz + i * interval '10 milliseconds' AS at, power((i * 7919 % $1)::float8 / $1, 3) AS r
	      FROM generate_series(0, $1::int - 1) i) s
	JOIN place w ON w.no = floor(s.r * $5::int)::bigint`
