package facts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/admit"
	"fairlane/control/crashpoint"
)

// Admissions writes accepted tasks with everything that belongs to them. It implements admit.Store.
type Admissions struct {
	db *DB
}

// NewAdmissions works on the connections of db.
func NewAdmissions(db *DB) *Admissions { return &Admissions{db: db} }

// StoredAnswer returns what a tenant's key was answered with; control.CodeNotFound when there is none.
func (a *Admissions) StoredAnswer(ctx context.Context, tenant uuid.UUID, key string) (admit.StoredAnswer, error) {
	var s admit.StoredAnswer
	err := a.db.pool.QueryRow(ctx, `SELECT request_hash, answer FROM idempotency_key WHERE tenant_id = $1 AND key = $2`, tenant, key).
		Scan(&s.RequestHash, &s.Answer)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, control.Errorf(control.CodeNotFound, "no answer is stored for this key")
	}
	return s, away(err)
}

// Standing tells whether the tenant's user is known and blocked, and the tenant's factor.
func (a *Admissions) Standing(ctx context.Context, tenant uuid.UUID, user string) (admit.Standing, error) {
	var s admit.Standing
	err := a.db.pool.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM tenant_user WHERE tenant_id = $1 AND external_id = $2 AND status = 'BLOCKED'),
		       coalesce(r.cost_factor, 1), coalesce(r.cost_tasks, 0)
		FROM (SELECT) one LEFT JOIN tenant_runtime r ON r.tenant_id = $1`,
		tenant, user).Scan(&s.Blocked, &s.Factor.Value, &s.Factor.Tasks)
	return s, away(err)
}

// PurgeKeys removes at most most answers that are older than age, and tells how many it removed.
func (a *Admissions) PurgeKeys(ctx context.Context, age time.Duration, most int) (int64, error) {
	tag, err := a.db.pool.Exec(ctx, `
		DELETE FROM idempotency_key WHERE (tenant_id, key) IN (
			SELECT tenant_id, key FROM idempotency_key
			WHERE created_at < clock_timestamp() - $1::interval ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)`,
		age, most)
	return tag.RowsAffected(), away(err)
}

// InsertTasks admits what it can of a batch in one transaction of two round trips, whatever its size:
// the first locks (in the order of the package) and reads all counters, the second writes. One task's
// refusal does not touch the others. Counters are decided on in the order of the batch.
func (a *Admissions) InsertTasks(ctx context.Context, tasks []admit.NewTask) ([]admit.Inserted, error) {
	if len(tasks) == 0 {
		return nil, nil
	}
	for i := range tasks {
		if err := plausible(&tasks[i]); err != nil {
			return nil, err
		}
	}
	// Two things are put right outside and tried again: a tenant whose counters do not exist yet, and
	// a user whom somebody else made in this moment.
	for try := 1; ; try++ {
		out, err := a.insert(ctx, tasks)
		var missing *noRuntime
		switch {
		case err == nil:
			crashpoint.Hit("admit.committed")
			return out, nil
		case try < 3 && errors.As(err, &missing):
			if _, err := a.db.pool.Exec(ctx, `
				INSERT INTO tenant_runtime (tenant_id) SELECT tenant_id FROM tenant WHERE tenant_id = ANY ($1)
				ORDER BY tenant_id ON CONFLICT DO NOTHING`, missing.tenants); err != nil {
				return nil, away(err)
			}
		case try < 3 && violates(err, "tenant_user_tenant_id_external_id_key"):
		default:
			return nil, away(err)
		}
	}
}

func (a *Admissions) insert(ctx context.Context, tasks []admit.NewTask) ([]admit.Inserted, error) {
	var b *admission
	err := a.db.Tx(ctx, func(tx pgx.Tx) error {
		b = &admission{tx: tx, tasks: tasks, out: make([]admit.Inserted, len(tasks))}
		if err := b.lock(ctx); err != nil {
			return err
		}
		if err := b.meet(ctx); err != nil {
			return err
		}
		b.decide()
		if err := b.write(ctx); err != nil {
			return err
		}
		crashpoint.Hit("admit.written")
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b.out, nil
}

// noRuntime names tenants that have a policy but no counters yet.
type noRuntime struct{ tenants []uuid.UUID }

func (e *noRuntime) Error() string {
	return fmt.Sprintf("%d tenants have no counters yet", len(e.tenants))
}

// plausible guards the counters against amounts that the gate should never have let through.
func plausible(n *admit.NewTask) error {
	if n.FairnessMilli < control.Milli || n.SlotUnits < 1 || n.CostMicro < 0 || n.PriceMicro < 0 || !(n.MeanSeconds > 0) || !(n.P95Seconds > 0) ||
		n.BaseMilli < 0 || n.GPUSeconds < 0 || n.Bases.Seconds < 0 || n.Bases.CostMicro < 0 || n.Bases.GPUSeconds < 0 {
		return fmt.Errorf("task %s: fairness %d milli, %d slots, cost %d, price %d, %g s, p95 %g s: not amounts of a task",
			n.TaskID, n.FairnessMilli, n.SlotUnits, n.CostMicro, n.PriceMicro, n.MeanSeconds, n.P95Seconds)
	}
	return nil
}

// admission is one batch inside its transaction.
type admission struct {
	tx      pgx.Tx
	tasks   []admit.NewTask
	out     []admit.Inserted
	tenants map[uuid.UUID]*tenantRoom
	users   map[userName]*userRoom
	keep    []int // indexes of the tasks that are inserted
}

type userName struct {
	tenant uuid.UUID
	name   string
}

type tenantRoom struct {
	tasks, milli       int64
	maxTasks, maxUnits int64
	userMaxTasks       int64
	suspended          bool
	newUsers           int64 // how many may still be made
}

type userRoom struct {
	id      uuid.UUID
	tasks   int64
	blocked bool
	fresh   bool // made by this batch
}

// lock takes the keys, then the rows of tenants, their lanes and users, and reads them.
func (b *admission) lock(ctx context.Context) error {
	var tenants []uuid.UUID
	var keyTenants, userTenants, laneTenants []uuid.UUID
	var keys, names, lanes []string
	for i := range b.tasks {
		n := &b.tasks[i]
		tenants = append(tenants, n.TenantID)
		keyTenants, keys = append(keyTenants, n.TenantID), append(keys, n.Key)
		userTenants, names = append(userTenants, n.TenantID), append(names, n.User)
		laneTenants, lanes = append(laneTenants, n.TenantID), append(lanes, n.Lane)
	}
	b.tenants = make(map[uuid.UUID]*tenantRoom)
	b.users = make(map[userName]*userRoom)
	held := make(map[userName]bool, len(keys)) // key locks that are ours
	batch := &pgx.Batch{}
	// Trying, not waiting: whoever holds the key is still deciding on the same request.
	batch.Queue(`
		SELECT k.tenant_id, k.key, pg_try_advisory_xact_lock(hashtextextended(k.tenant_id::text || ':' || k.key, 7206))
		FROM (SELECT DISTINCT * FROM unnest($1::uuid[], $2::text[]) AS k (tenant_id, key)) k`, keyTenants, keys).
		Query(func(rows pgx.Rows) error {
			var k userName
			var ours bool
			_, err := pgx.ForEachRow(rows, []any{&k.tenant, &k.name, &ours}, func() error {
				held[k] = ours
				return nil
			})
			return err
		})
	stored := make(map[userName]admit.StoredAnswer)
	batch.Queue(`
		SELECT i.tenant_id, i.key, i.request_hash, i.answer FROM idempotency_key i
		JOIN (SELECT DISTINCT * FROM unnest($1::uuid[], $2::text[]) AS k (tenant_id, key)) k USING (tenant_id, key)`, keyTenants, keys).
		Query(func(rows pgx.Rows) error {
			var k userName
			var hash []byte
			var answer json.RawMessage
			_, err := pgx.ForEachRow(rows, []any{&k.tenant, &k.name, &hash, &answer}, func() error {
				stored[k] = admit.StoredAnswer{RequestHash: bytes.Clone(hash), Answer: bytes.Clone(answer)}
				return nil
			})
			return err
		})
	batch.Queue(`
		SELECT r.tenant_id, r.queued_tasks, r.queued_units, p.max_queued_tasks, p.max_queued_units, p.user_max_queued_tasks, t.status = 'SUSPENDED'
		FROM tenant_runtime r JOIN tenant_scheduling_policy p USING (tenant_id) JOIN tenant t USING (tenant_id)
		WHERE r.tenant_id = ANY ($1) ORDER BY r.tenant_id FOR UPDATE OF r`, tenants).
		Query(func(rows pgx.Rows) error {
			var id uuid.UUID
			var r tenantRoom
			_, err := pgx.ForEachRow(rows, []any{&id, &r.tasks, &r.milli, &r.maxTasks, &r.maxUnits, &r.userMaxTasks, &r.suspended}, func() error {
				room := r
				b.tenants[id] = &room
				return nil
			})
			return err
		})
	batch.Queue(`
		SELECT FROM tenant_lane_runtime WHERE (tenant_id, lane) IN (SELECT * FROM unnest($1::uuid[], $2::text[]))
		ORDER BY tenant_id, lane FOR UPDATE`, laneTenants, lanes)
	batch.Queue(`
		SELECT u.tenant_id, u.external_id, u.user_id, u.status = 'BLOCKED', r.queued_tasks
		FROM tenant_user u JOIN user_runtime r USING (tenant_id, user_id)
		WHERE (u.tenant_id, u.external_id) IN (SELECT * FROM unnest($1::uuid[], $2::text[]))
		ORDER BY u.tenant_id, u.user_id FOR UPDATE OF r`, userTenants, names).
		Query(func(rows pgx.Rows) error {
			var k userName
			var r userRoom
			_, err := pgx.ForEachRow(rows, []any{&k.tenant, &k.name, &r.id, &r.blocked, &r.tasks}, func() error {
				room := r
				b.users[k] = &room
				return nil
			})
			return err
		})
	if err := b.tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	seen := make(map[userName]bool, len(keys))
	for i := range b.tasks {
		k := userName{b.tasks[i].TenantID, b.tasks[i].Key}
		if s, ok := stored[k]; ok {
			b.out[i].Stored = &s
		} else if !held[k] || seen[k] {
			b.out[i].Err = control.Errorf(control.CodeIdemBusy, "a request with this Idempotency-Key is still in progress")
		}
		seen[k] = true
	}
	return nil
}
