package facts

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/estimate"
	"fairlane/control/plan"
)

// lockSet names the rows that a transaction is going to change. queue takes all of them in the lock
// order, one statement for a table, whatever the number of rows; what they hold comes back in heldRows.
// Fields that are empty cost nothing.
type lockSet struct {
	policies     bool // lock the tenants' policy rows for share: a publish waits for whoever decides by them
	tenants      set[uuid.UUID]
	tenantLanes  set[plan.TenantLane]
	repaid       map[plan.TenantLane]int64 // debt in milli-units that the rows lose, once they are locked
	users        set[plan.TenantUser]
	groups       set[string]
	accounts     set[plan.LaneGroup]
	pools        set[string]   // all shards of these pools …
	shards       set[shardKey] // … or just these; never both
	tasks        set[uuid.UUID]
	attempts     set[uuid.UUID]
	reservations set[uuid.UUID] // attempts whose ACTIVE reservations are meant
}

type set[K comparable] map[K]struct{}

func (s *set[K]) add(k K) {
	if *s == nil {
		*s = set[K]{}
	}
	(*s)[k] = struct{}{}
}

func (s set[K]) has(k K) bool { _, ok := s[k]; return ok }

func (s set[K]) list() []K {
	out := make([]K, 0, len(s))
	for k := range s {
		out = append(out, k)
	}
	return out
}

type shardKey struct {
	pool string
	no   int32
}

// addTask names the rows that any move of a queued or running task touches, but for its units.
func (l *lockSet) addTask(task, tenant, user uuid.UUID, lane string) {
	l.tenants.add(tenant)
	l.tenantLanes.add(plan.TenantLane{Tenant: tenant, Lane: lane})
	l.users.add(plan.TenantUser{Tenant: tenant, User: user})
	l.tasks.add(task)
}

// heldRows is what the locked rows hold. Nobody else changes them until the transaction ends.
type heldRows struct {
	policies     map[uuid.UUID]policyRow
	tenants      map[uuid.UUID]*tenantRow
	tenantLanes  map[plan.TenantLane]*tenantLaneRow
	users        map[plan.TenantUser]*userRow
	groups       map[string]*groupRow
	accounts     map[plan.LaneGroup]*accountRow
	shards       map[string][]*shardRow // by pool, in order of shard_no
	tasks        map[uuid.UUID]*taskRow
	attempts     map[uuid.UUID]*attemptRow
	reservations map[uuid.UUID][]reservationRow // by attempt
}

type policyRow struct {
	active               bool
	maxTasks, maxUnits   int64
	userTasks            int64
	userImage, userVideo int64
}

type tenantRow struct {
	runningTasks, runningUnits int64
	factor                     estimate.Factor
}

type tenantLaneRow struct{ debt int64 }

type userRow struct{ tasks, image, video int64 }

type groupRow struct{ common, commonUsed int64 }

type accountRow struct {
	reserved, own, common, borrowed, lent int64
	headroom, lendable, limit             int64
	lendsTo                               []string
	timeout                               time.Duration // within which a lent unit is to be back
	paused, stopped                       bool
}

type shardRow struct {
	no             int32
	capacity, used int64
}

type taskRow struct {
	id, tenant, user uuid.UUID
	kind             control.Kind
	lane, group      string
	state            control.TaskState
	version          int64
	costMilli, slots int64
	made, max        int
	attempt          uuid.UUID // current one; zero: none
	eligible         bool      // next_eligible_at has come
	overdue          bool      // deadline_at has passed
	cancelAsked      bool
	model, class     string
	trace            string
	charge           estimate.Charge
	p95              float64 // seconds from claim to release that were expected
}

type attemptRow struct {
	id, task uuid.UUID
	state    control.AttemptState
	token    int64
	held     float64 // seconds since the claim
	accepted float64 // seconds since the provider's answer to the submit; -1: there was none
	free     bool    // its start was not charged
}

type reservationRow struct {
	id, attempt, tenant, user uuid.UUID
	kind                      control.Kind
	lane, group, pool         string
	shard                     int32
	units                     int64
	account                   control.Account
	lender                    string
	groupKeys                 []string
	groupShards               []int32
	groupUnits                []int64
}

// pointPlans makes the planner reach every row by its key. Batches are small beside their tables, and
// statistics may be missing or as old as an empty table, where a cached plan would read all of it.
const pointPlans = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
	set_config('enable_mergejoin', 'off', true)`

// take locks everything in one round trip and returns what the rows hold. more may queue further
// statements that run while all locks are held.
func (l *lockSet) take(ctx context.Context, tx pgx.Tx, more func(*pgx.Batch)) (*heldRows, error) {
	b, held := &pgx.Batch{}, &heldRows{}
	b.Queue(pointPlans).Exec(ignoreTag)
	l.queue(b, held)
	if more != nil {
		more(b)
	}
	return held, tx.SendBatch(ctx, b).Close()
}

// queue is the lock order of doc.go, and the only place that takes it.
func (l *lockSet) queue(b *pgx.Batch, held *heldRows) {
	tenants := l.tenants.list()
	if l.policies && len(tenants) > 0 {
		held.policies = map[uuid.UUID]policyRow{}
		b.Queue(lockPolicySQL, tenants).Query(scanAll(func(r pgx.Rows) error {
			var id uuid.UUID
			var p policyRow
			err := r.Scan(&id, &p.active, &p.maxTasks, &p.maxUnits, &p.userTasks, &p.userImage, &p.userVideo)
			held.policies[id] = p
			return err
		}))
	}
	if len(tenants) > 0 {
		held.tenants = map[uuid.UUID]*tenantRow{}
		b.Queue(lockTenantSQL, tenants).Query(scanAll(func(r pgx.Rows) error {
			var id uuid.UUID
			var t tenantRow
			err := r.Scan(&id, &t.runningTasks, &t.runningUnits, &t.factor.Value, &t.factor.Tasks)
			held.tenants[id] = &t
			return err
		}))
	}
	if len(l.tenantLanes) > 0 {
		ids, lanes := make([]uuid.UUID, 0, len(l.tenantLanes)), make([]string, 0, len(l.tenantLanes))
		for k := range l.tenantLanes {
			ids, lanes = append(ids, k.Tenant), append(lanes, k.Lane)
		}
		held.tenantLanes = make(map[plan.TenantLane]*tenantLaneRow, len(ids))
		b.Queue(lockTenantLaneSQL, ids, lanes).Query(scanAll(func(r pgx.Rows) error {
			var k plan.TenantLane
			var l tenantLaneRow
			err := r.Scan(&k.Tenant, &k.Lane, &l.debt)
			held.tenantLanes[k] = &l
			return err
		}))
	}
	if n := len(l.repaid); n > 0 {
		ids, lanes, milli := make([]uuid.UUID, 0, n), make([]string, 0, n), make([]int64, 0, n)
		for k, m := range l.repaid {
			ids, lanes, milli = append(ids, k.Tenant), append(lanes, k.Lane), append(milli, m)
		}
		b.Queue(repaySQL, ids, lanes, milli).Exec(ignoreTag)
	}
	if len(l.users) > 0 {
		ids, users := make([]uuid.UUID, 0, len(l.users)), make([]uuid.UUID, 0, len(l.users))
		for k := range l.users {
			ids, users = append(ids, k.Tenant), append(users, k.User)
		}
		held.users = map[plan.TenantUser]*userRow{}
		b.Queue(lockUserSQL, ids, users).Query(scanAll(func(r pgx.Rows) error {
			var k plan.TenantUser
			var u userRow
			err := r.Scan(&k.Tenant, &k.User, &u.tasks, &u.image, &u.video)
			held.users[k] = &u
			return err
		}))
	}
	l.queueCapacity(b, held)
	l.queueWork(b, held)
}

func (l *lockSet) queueCapacity(b *pgx.Batch, held *heldRows) {
	if len(l.groups) > 0 {
		held.groups = map[string]*groupRow{}
		b.Queue(lockGroupSQL, l.groups.list()).Query(scanAll(func(r pgx.Rows) error {
			var k string
			var g groupRow
			err := r.Scan(&k, &g.common, &g.commonUsed)
			held.groups[k] = &g
			return err
		}))
	}
	if len(l.accounts) > 0 {
		lanes, groups := make([]string, 0, len(l.accounts)), make([]string, 0, len(l.accounts))
		for k := range l.accounts {
			lanes, groups = append(lanes, k.Lane), append(groups, k.Group)
		}
		held.accounts = map[plan.LaneGroup]*accountRow{}
		b.Queue(lockAccountSQL, lanes, groups).Query(scanAll(func(r pgx.Rows) error {
			var k plan.LaneGroup
			var a accountRow
			var seconds int64
			err := r.Scan(&k.Lane, &k.Group, &a.reserved, &a.own, &a.common, &a.borrowed, &a.lent, &a.headroom, &a.lendable, &a.limit,
				&a.lendsTo, &seconds, &a.paused, &a.stopped)
			a.timeout = time.Duration(seconds) * time.Second
			held.accounts[k] = &a
			return err
		}))
	}
	held.shards = map[string][]*shardRow{}
	shard := scanAll(func(r pgx.Rows) error {
		var k string
		var s shardRow
		err := r.Scan(&k, &s.no, &s.capacity, &s.used)
		held.shards[k] = append(held.shards[k], &s)
		return err
	})
	if len(l.pools) > 0 {
		b.Queue(lockPoolShardsSQL, l.pools.list()).Query(shard)
	} else if len(l.shards) > 0 {
		keys, nos := make([]string, 0, len(l.shards)), make([]int32, 0, len(l.shards))
		for k := range l.shards {
			keys, nos = append(keys, k.pool), append(nos, k.no)
		}
		b.Queue(lockShardSQL, keys, nos).Query(shard)
	}
}

func (l *lockSet) queueWork(b *pgx.Batch, held *heldRows) {
	if len(l.tasks) > 0 {
		held.tasks = make(map[uuid.UUID]*taskRow, len(l.tasks))
		b.Queue(lockTaskSQL, l.tasks.list()).Query(scanAll(func(r pgx.Rows) error {
			t := &taskRow{}
			err := r.Scan(&t.id, &t.tenant, &t.user, &t.kind, &t.lane, &t.group, &t.state, &t.version, &t.costMilli,
				&t.slots, &t.made, &t.max, &t.attempt, &t.eligible, &t.overdue, &t.cancelAsked, &t.model, &t.class, &t.trace,
				&t.charge.Base, &t.charge.Seconds, &t.p95, &t.charge.GPUSeconds, &t.charge.CostMicro,
				&t.charge.Bases.Seconds, &t.charge.Bases.CostMicro, &t.charge.Bases.GPUSeconds)
			t.charge.Milli, t.charge.SlotUnits = t.costMilli, t.slots
			held.tasks[t.id] = t
			return err
		}))
	}
	if len(l.attempts) > 0 {
		held.attempts = make(map[uuid.UUID]*attemptRow, len(l.attempts))
		b.Queue(lockAttemptSQL, l.attempts.list()).Query(scanAll(func(r pgx.Rows) error {
			a := &attemptRow{}
			err := r.Scan(&a.id, &a.task, &a.state, &a.token, &a.held, &a.accepted, &a.free)
			held.attempts[a.id] = a
			return err
		}))
	}
	if len(l.reservations) > 0 {
		held.reservations = make(map[uuid.UUID][]reservationRow, len(l.reservations))
		b.Queue(lockReservationSQL, l.reservations.list()).Query(scanAll(func(r pgx.Rows) error {
			row, err := scanReservation(r)
			held.reservations[row.attempt] = append(held.reservations[row.attempt], row)
			return err
		}))
	}
}

func scanReservation(r pgx.Rows) (v reservationRow, err error) {
	err = r.Scan(&v.id, &v.attempt, &v.tenant, &v.user, &v.kind, &v.lane, &v.group, &v.pool, &v.shard, &v.units,
		&v.account, &v.lender, &v.groupKeys, &v.groupShards, &v.groupUnits)
	return v, err
}

func scanAll(row func(pgx.Rows) error) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			if err := row(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	}
}

// databaseNow reads the database's clock into t.
func databaseNow(b *pgx.Batch, t *time.Time) {
	b.Queue(`SELECT clock_timestamp()`).QueryRow(func(r pgx.Row) error { return r.Scan(t) })
}
