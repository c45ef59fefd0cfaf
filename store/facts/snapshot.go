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
		Users: make(map[plan.TenantUser]plan.UserUse, len(users)), Debts: make(map[plan.TenantLane]int64, len(tenants)),
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
	b.Queue(`SELECT lane, own_used, common_used, borrowed_used, lent_units, lending_stopped FROM lane_account WHERE pool_group = $1`, group).
		Query(scanAll(func(r pgx.Rows) error {
			key := plan.LaneGroup{Group: group}
			var u plan.LaneUse
			err := r.Scan(&key.Lane, &u.Own, &u.Common, &u.Borrowed, &u.Lent, &u.Stopped)
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
		SELECT p.resource_key, coalesce(p.adaptive_limit, -1), coalesce(p.breaker_until > clock_timestamp(), false), p.keeps_lanes,
		       coalesce((SELECT sum(s.used_units) FROM resource_pool_shard s WHERE s.resource_key = p.resource_key), 0)::bigint
		FROM resource_pool p`).
		Query(scanAll(func(r pgx.Rows) error {
			var key string
			var u plan.PoolUse
			var keeps bool
			err := r.Scan(&key, &u.Limit, &u.Open, &keeps, &u.Used)
			if keeps {
				u.Lanes = map[string]int64{}
			}
			out.Pools[key] = u
			return err
		}))
	snapshotLanes(b, out)
	snapshotLoans(b, group, out)
}

// snapshotLanes reads who uses the pools of which parts are kept for lanes.
func snapshotLanes(b *pgx.Batch, out *plan.Snapshot) {
	b.Queue(`
		SELECT u.key, u.lane, sum(u.units)::bigint FROM (
		    SELECT r.resource_key AS key, r.lane, r.reserved_units AS units
		    FROM resource_pool p JOIN resource_reservation r ON r.resource_key = p.resource_key AND r.state = 'ACTIVE'
		    WHERE p.keeps_lanes AND p.kind <> 'CAP_GROUP'
		    UNION ALL
		    SELECT g.key, r.lane, g.units
		    FROM resource_reservation r CROSS JOIN LATERAL unnest(r.group_keys, r.group_units) g(key, units)
		    JOIN resource_pool p ON p.resource_key = g.key AND p.keeps_lanes
		    WHERE r.state = 'ACTIVE' AND (SELECT bool_or(keeps_lanes) FROM resource_pool WHERE kind = 'CAP_GROUP')) u
		GROUP BY u.key, u.lane`).
		Query(scanAll(func(r pgx.Rows) error {
			var key, lane string
			var units int64
			err := r.Scan(&key, &lane, &units)
			if u := out.Pools[key]; u.Lanes != nil {
				u.Lanes[lane] = units
			}
			return err
		}))
}

// snapshotLoans reads the attempts that run on other lanes' units, the oldest first. Where there are more
// than fit, each lane has its oldest among them.
func snapshotLoans(b *pgx.Batch, group string, out *plan.Snapshot) {
	b.Queue(`
		SELECT attempt_id, lane, lender_lane, units FROM (
		    SELECT attempt_id, lane, lender_lane, units, at, row_number() OVER (PARTITION BY lane ORDER BY at, attempt_id) AS place
		    FROM (SELECT attempt_id, lane, lender_lane, sum(reserved_units)::bigint AS units, min(created_at) AS at
		          FROM resource_reservation WHERE pool_group = $1 AND state = 'ACTIVE' AND account = 'BORROWED'
		          GROUP BY attempt_id, lane, lender_lane) a
		    ORDER BY place, lane LIMIT $2) first
		ORDER BY at, attempt_id`, group, plan.MaxLoans).
		Query(scanAll(func(r pgx.Rows) error {
			var l plan.Loan
			err := r.Scan(&l.AttemptID, &l.Lane, &l.Lender, &l.Units)
			out.Loans = append(out.Loans, l)
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
	b.Queue(`SELECT tenant_id, lane, running_tasks, running_units, debt_milli FROM tenant_lane_runtime WHERE tenant_id = ANY($1)`, tenants).
		Query(scanAll(func(r pgx.Rows) error {
			var key plan.TenantLane
			var u plan.Use
			var debt int64
			err := r.Scan(&key.Tenant, &key.Lane, &u.Tasks, &u.Units, &debt)
			out.InLane[key], out.Debts[key] = u, debt
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
