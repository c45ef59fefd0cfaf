package facts

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control/plan"
)

// Snapshots implements schedule.Snapshotter.
type Snapshots struct{ db *DB }

// NewSnapshots returns the snapshots of that database.
func NewSnapshots(db *DB) *Snapshots { return &Snapshots{db: db} }

// Snapshot reads, in one round trip, the accounts of a pool group's lanes, every pool (a leaf's cap
// groups may lie outside the group), and the counters of the tenants and users named. Whoever has no
// counters yet is missing from the maps and uses nothing. The parts are read one after the other and may
// differ by a claim in between: a claim decides again, under locks.
func (s *Snapshots) Snapshot(ctx context.Context, group string, tenants []uuid.UUID, users []plan.TenantUser) (plan.Snapshot, error) {
	out := plan.Snapshot{
		Lanes: map[plan.LaneGroup]plan.LaneUse{}, Common: map[string]int64{}, Pools: map[string]plan.PoolUse{},
		Tenants: make(map[uuid.UUID]plan.TenantUse, len(tenants)), InLane: make(map[plan.TenantLane]plan.Use, len(tenants)),
		Users: make(map[plan.TenantUser]plan.UserUse, len(users)),
	}
	b := &pgx.Batch{}
	b.Queue(pointPlans).Exec(ignoreTag)
	databaseNow(b, &out.At)
	snapshotCapacity(b, group, &out)
	snapshotWork(b, tenants, users, &out)
	if err := s.db.pipeline(ctx, b); err != nil {
		return plan.Snapshot{}, fmt.Errorf("snapshot: %w", err)
	}
	return out, nil
}

func snapshotCapacity(b *pgx.Batch, group string, out *plan.Snapshot) {
	b.Queue(`SELECT lane, own_used, common_used, borrowed_used, lent_units FROM lane_account WHERE pool_group = $1`, group).
		Query(scanAll(func(r pgx.Rows) error {
			key := plan.LaneGroup{Group: group}
			var u plan.LaneUse
			err := r.Scan(&key.Lane, &u.Own, &u.Common, &u.Borrowed, &u.Lent)
			out.Lanes[key] = u
			return err
		}))
	b.Queue(`SELECT pool_group, common_used FROM pool_group_account WHERE pool_group = $1`, group).
		Query(scanAll(func(r pgx.Rows) error {
			var key string
			var used int64
			err := r.Scan(&key, &used)
			out.Common[key] = used
			return err
		}))
	b.Queue(`
		SELECT p.resource_key, coalesce(p.adaptive_limit, -1),
		       coalesce((SELECT sum(s.used_units) FROM resource_pool_shard s WHERE s.resource_key = p.resource_key), 0)::bigint
		FROM resource_pool p`).
		Query(scanAll(func(r pgx.Rows) error {
			var key string
			var u plan.PoolUse
			err := r.Scan(&key, &u.Limit, &u.Used)
			out.Pools[key] = u
			return err
		}))
}

func snapshotWork(b *pgx.Batch, tenants []uuid.UUID, users []plan.TenantUser, out *plan.Snapshot) {
	b.Queue(`SELECT tenant_id, running_tasks, running_units FROM tenant_runtime WHERE tenant_id = ANY($1)`, tenants).
		Query(scanAll(func(r pgx.Rows) error {
			var id uuid.UUID
			var u plan.TenantUse
			err := r.Scan(&id, &u.Tasks, &u.Units)
			out.Tenants[id] = u
			return err
		}))
	b.Queue(`SELECT tenant_id, lane, running_tasks, running_units FROM tenant_lane_runtime WHERE tenant_id = ANY($1)`, tenants).
		Query(scanAll(func(r pgx.Rows) error {
			var key plan.TenantLane
			var u plan.Use
			err := r.Scan(&key.Tenant, &key.Lane, &u.Tasks, &u.Units)
			out.InLane[key] = u
			return err
		}))
	ids, names := make([]uuid.UUID, len(users)), make([]uuid.UUID, len(users))
	for i, u := range users {
		ids[i], names[i] = u.Tenant, u.User
	}
	b.Queue(`
		SELECT r.tenant_id, r.user_id, r.running_tasks, r.running_image, r.running_video
		FROM unnest($1::uuid[], $2::uuid[]) k(tenant_id, user_id)
		JOIN user_runtime r ON r.tenant_id = k.tenant_id AND r.user_id = k.user_id`, ids, names).
		Query(scanAll(func(r pgx.Rows) error {
			var key plan.TenantUser
			var u plan.UserUse
			err := r.Scan(&key.Tenant, &key.User, &u.Tasks, &u.Image, &u.Video)
			out.Users[key] = u
			return err
		}))
}
