package facts

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"fairlane/control"
	"fairlane/control/admit"
)

// meet reads the users that have no counters yet, and how many more each of their tenants may have.
// It costs a round trip only when there are such users.
func (b *admission) meet(ctx context.Context) error {
	var gone noRuntime
	var tenants []uuid.UUID
	var names []string
	for i := range b.tasks {
		n := &b.tasks[i]
		if b.out[i].Stored != nil || b.out[i].Err != nil {
			continue
		}
		if b.tenants[n.TenantID] == nil {
			gone.tenants = append(gone.tenants, n.TenantID)
		}
		if b.users[userName{n.TenantID, n.User}] == nil {
			tenants, names = append(tenants, n.TenantID), append(names, n.User)
		}
	}
	if len(gone.tenants) > 0 {
		return &gone
	}
	if len(names) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	batch.Queue(`
		SELECT tenant_id, external_id, user_id, status = 'BLOCKED' FROM tenant_user
		WHERE (tenant_id, external_id) IN (SELECT * FROM unnest($1::uuid[], $2::text[]))`, tenants, names).
		Query(func(rows pgx.Rows) error {
			var k userName
			var r userRoom
			_, err := pgx.ForEachRow(rows, []any{&k.tenant, &k.name, &r.id, &r.blocked}, func() error {
				room := r
				b.users[k] = &room
				return nil
			})
			return err
		})
	batch.Queue(`
		SELECT t.id, $2 - (SELECT count(*) FROM (SELECT FROM tenant_user u WHERE u.tenant_id = t.id LIMIT $2) u)
		FROM (SELECT DISTINCT unnest($1::uuid[]) AS id) t`, tenants, int64(admit.MaxUsersPerTenant)).
		Query(func(rows pgx.Rows) error {
			var id uuid.UUID
			var left int64
			_, err := pgx.ForEachRow(rows, []any{&id, &left}, func() error {
				b.tenants[id].newUsers = left
				return nil
			})
			return err
		})
	return b.tx.SendBatch(ctx, batch).Close()
}

// decide goes through the batch in order and raises the counters in memory by what it keeps.
func (b *admission) decide() {
	for i := range b.tasks {
		if b.out[i].Stored != nil || b.out[i].Err != nil {
			continue
		}
		if err := b.room(&b.tasks[i]); err != nil {
			b.out[i].Err = err
			continue
		}
		b.keep = append(b.keep, i)
	}
}

// room takes room for the task in the counters of its user and its tenant, or says which has none.
func (b *admission) room(n *admit.NewTask) error {
	tenant, name := b.tenants[n.TenantID], userName{n.TenantID, n.User}
	user, known := b.users[name]
	if !known {
		if tenant.newUsers < 1 {
			return admit.TooManyUsers()
		}
		user = &userRoom{fresh: true}
	}
	maxMilli := admit.Milli(tenant.maxUnits)
	switch {
	case tenant.suspended:
		return admit.TenantIsSuspended()
	case user.blocked:
		return admit.UserIsBlocked()
	case user.tasks+1 > tenant.userMaxTasks:
		return admit.QueueFull(admit.UserQueueFull, "user", "", admit.UnitTasks, tenant.userMaxTasks, user.tasks, 1)
	case tenant.tasks+1 > tenant.maxTasks:
		return admit.QueueFull(admit.TenantQueueFull, "tenant", "", admit.UnitTasks, tenant.maxTasks, tenant.tasks, 1)
	case tenant.milli+n.FairnessMilli > maxMilli:
		return admit.QueueFull(admit.TenantQueueFull, "tenant", "", admit.UnitFairness, maxMilli, tenant.milli, n.FairnessMilli)
	case n.Crowded != nil && tenant.tasks >= n.Guaranteed:
		return n.Crowded
	}
	if !known {
		user.id = uuid.Must(uuid.NewV7())
		b.users[name] = user
		tenant.newUsers--
	}
	user.tasks++
	tenant.tasks++
	tenant.milli += n.FairnessMilli
	return nil
}

// write raises the counters in the lock order and inserts what was kept, in one round trip.
func (b *admission) write(ctx context.Context) error {
	if len(b.keep) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	b.bump(batch)
	b.insert(batch)
	return b.tx.SendBatch(ctx, batch).Close()
}

type bump struct {
	tenant       uuid.UUID
	lane         string
	user         uuid.UUID
	tasks, milli int64
}

// bump adds the sums of the batch to tenant, tenant lane and user, each in the order of its key.
func (b *admission) bump(batch *pgx.Batch) {
	add := func(list []bump, x bump) []bump {
		at, found := slices.BinarySearchFunc(list, x, func(e, t bump) int {
			return cmp.Or(slices.Compare(e.tenant[:], t.tenant[:]), cmp.Compare(e.lane, t.lane), slices.Compare(e.user[:], t.user[:]))
		})
		if found {
			list[at].tasks += x.tasks
			list[at].milli += x.milli
			return list
		}
		return slices.Insert(list, at, x)
	}
	var tenants, lanes, users []bump
	var fresh struct {
		tenants, ids []uuid.UUID
		names        []string
	}
	for _, i := range b.keep {
		n := &b.tasks[i]
		u := b.users[userName{n.TenantID, n.User}]
		tenants = add(tenants, bump{tenant: n.TenantID, tasks: 1, milli: n.FairnessMilli})
		lanes = add(lanes, bump{tenant: n.TenantID, lane: n.Lane, tasks: 1, milli: n.FairnessMilli})
		users = add(users, bump{tenant: n.TenantID, user: u.id, tasks: 1})
		if u.fresh && !slices.Contains(fresh.ids, u.id) {
			fresh.tenants, fresh.ids, fresh.names = append(fresh.tenants, n.TenantID), append(fresh.ids, u.id), append(fresh.names, n.User)
		}
	}
	id := func(x bump) uuid.UUID { return x.tenant }
	batch.Queue(`
		UPDATE tenant_runtime r SET queued_tasks = r.queued_tasks + d.tasks, queued_units = r.queued_units + d.milli, updated_at = clock_timestamp()
		FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) AS d (tenant_id, tasks, milli) WHERE r.tenant_id = d.tenant_id`,
		each(tenants, id), each(tenants, tasksOf), each(tenants, milliOf))
	batch.Queue(`
		INSERT INTO tenant_lane_runtime AS r (tenant_id, lane, queued_tasks, queued_units)
		SELECT * FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::bigint[])
		ON CONFLICT (tenant_id, lane) DO UPDATE SET queued_tasks = r.queued_tasks + EXCLUDED.queued_tasks,
			queued_units = r.queued_units + EXCLUDED.queued_units, updated_at = clock_timestamp()`,
		each(lanes, id), each(lanes, func(x bump) string { return x.lane }), each(lanes, tasksOf), each(lanes, milliOf))
	if len(fresh.ids) > 0 {
		batch.Queue(`INSERT INTO tenant_user (tenant_id, user_id, external_id) SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[])`,
			fresh.tenants, fresh.ids, fresh.names)
	}
	batch.Queue(`
		INSERT INTO user_runtime AS r (tenant_id, user_id, queued_tasks) SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[])
		ON CONFLICT (tenant_id, user_id) DO UPDATE SET queued_tasks = r.queued_tasks + EXCLUDED.queued_tasks, updated_at = clock_timestamp()`,
		each(users, id), each(users, func(x bump) uuid.UUID { return x.user }), each(users, tasksOf))
}

func tasksOf(x bump) int64 { return x.tasks }
func milliOf(x bump) int64 { return x.milli }

// each maps a list to a column of it.
func each[T, C any](list []T, column func(T) C) []C {
	out := make([]C, len(list))
	for i, x := range list {
		out[i] = column(x)
	}
	return out
}

// insert adds the tasks with their events, outbox rows, keys, and a hint per pool group.
func (b *admission) insert(batch *pgx.Batch) {
	kept := make([]*admit.NewTask, len(b.keep))
	for at, i := range b.keep {
		kept[at] = &b.tasks[i]
	}
	str := func(get func(*admit.NewTask) string) []string { return each(kept, get) }
	num := func(get func(*admit.NewTask) int64) []int64 { return each(kept, get) }
	flo := func(get func(*admit.NewTask) float64) []float64 { return each(kept, get) }
	ids := each(kept, func(n *admit.NewTask) uuid.UUID { return n.TaskID })
	tenants := each(kept, func(n *admit.NewTask) uuid.UUID { return n.TenantID })
	keys := str(func(n *admit.NewTask) string { return n.Key })
	groups := str(func(n *admit.NewTask) string { return n.Group })
	batch.Queue(`
		INSERT INTO generation_task (task_id, tenant_id, user_id, project, kind, queue_class, pool_group, priority_band,
			resource_class, state, model_code, route, fairness_units, provider_slot_units, estimated_cost_units, price_units,
			expected_seconds, expected_p95_seconds, enqueue_at, queued_since, next_eligible_at, deadline_at, max_attempts,
			policy_version, estimate_version, idempotency_key, parameters, trace_context, created_at, updated_at,
			base_units, expected_gpu_seconds, second_base, cost_base_micro, gpu_second_base)
		SELECT n.task_id, n.tenant_id, n.user_id, n.project, n.kind, n.lane, n.pool_group, n.band,
			n.resource_class, 'QUEUED', n.model, n.route, n.milli, n.slots, n.cost, n.price,
			n.mean, n.p95, c.at, c.at, c.at, c.at + nullif(n.deadline, 0) * interval '1 second', n.max_attempts,
			n.policy_version, n.estimate_version, n.key, n.parameters, nullif(n.trace, ''), c.at, c.at,
			nullif(n.base, 0), n.gpu, coalesce(nullif(n.base_s, 0), 30), coalesce(nullif(n.base_cost, 0), 100000), coalesce(nullif(n.base_gpu, 0), 30)
		FROM (SELECT clock_timestamp() AS at) c, unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[],
			$7::text[], $8::smallint[], $9::text[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[],
			$15::bigint[], $16::float8[], $17::float8[], $18::bigint[], $19::integer[], $20::bigint[], $21::bigint[],
			$22::text[], $23::jsonb[], $24::text[], $25::bigint[], $26::float8[], $27::bigint[], $28::bigint[], $29::bigint[])
			AS n (task_id, tenant_id, user_id, project, kind, lane, pool_group, band, resource_class, model, route, milli,
				slots, cost, price, mean, p95, deadline, max_attempts, policy_version, estimate_version, key, parameters, trace,
				base, gpu, base_s, base_cost, base_gpu)`,
		ids, tenants,
		each(kept, func(n *admit.NewTask) uuid.UUID { return b.users[userName{n.TenantID, n.User}].id }),
		str(func(n *admit.NewTask) string { return n.Project }),
		str(func(n *admit.NewTask) string { return string(n.Kind) }),
		str(func(n *admit.NewTask) string { return n.Lane }),
		groups,
		each(kept, func(n *admit.NewTask) int16 { return int16(n.Band) }),
		str(func(n *admit.NewTask) string { return n.ResourceClass }),
		str(func(n *admit.NewTask) string { return n.Model }),
		str(func(n *admit.NewTask) string { return n.Route }),
		num(func(n *admit.NewTask) int64 { return n.FairnessMilli }),
		num(func(n *admit.NewTask) int64 { return n.SlotUnits }),
		num(func(n *admit.NewTask) int64 { return n.CostMicro }),
		num(func(n *admit.NewTask) int64 { return n.PriceMicro }),
		flo(func(n *admit.NewTask) float64 { return n.MeanSeconds }),
		flo(func(n *admit.NewTask) float64 { return n.P95Seconds }),
		num(func(n *admit.NewTask) int64 { return n.DeadlineSeconds }),
		each(kept, func(n *admit.NewTask) int32 { return int32(min(max(n.MaxAttempts, 1), 20)) }),
		num(func(n *admit.NewTask) int64 { return n.PolicyVersion }),
		num(func(n *admit.NewTask) int64 { return n.EstimateVersion }),
		keys,
		each(kept, func(n *admit.NewTask) []byte { return orEmpty(n.Parameters) }),
		str(func(n *admit.NewTask) string { return n.TraceParent }),
		num(func(n *admit.NewTask) int64 { return n.BaseMilli }),
		flo(func(n *admit.NewTask) float64 { return n.GPUSeconds }),
		num(func(n *admit.NewTask) int64 { return n.Bases.Seconds }),
		num(func(n *admit.NewTask) int64 { return n.Bases.CostMicro }),
		num(func(n *admit.NewTask) int64 { return n.Bases.GPUSeconds }),
	)
	events := each(kept, func(*admit.NewTask) uuid.UUID { return uuid.Must(uuid.NewV7()) })
	batch.Queue(`
		INSERT INTO task_event (event_id, task_id, type, to_state, actor, detail)
		SELECT n.event_id, n.task_id, $3, 'QUEUED', n.actor, jsonb_build_object('queue_class', n.lane, 'policy_version', n.version)
		FROM unnest($1::uuid[], $2::uuid[], $4::text[], $5::text[], $6::bigint[]) AS n (event_id, task_id, actor, lane, version)`,
		events, ids, control.EventTaskQueued,
		str(func(n *admit.NewTask) string { return n.Actor }),
		str(func(n *admit.NewTask) string { return n.Lane }),
		num(func(n *admit.NewTask) int64 { return n.PolicyVersion }))
	batch.Queue(`
		INSERT INTO outbox_event (event_id, topic, group_key, event_type, aggregate_id, payload)
		SELECT n.event_id, $3, n.pool_group, $4, n.task_id, '{"version": 0}'
		FROM unnest($1::uuid[], $2::uuid[], $5::text[]) AS n (event_id, task_id, pool_group)`,
		each(kept, func(*admit.NewTask) uuid.UUID { return uuid.Must(uuid.NewV7()) }), ids, control.TopicQueue, control.EventTaskQueued, groups)
	batch.Queue(`
		INSERT INTO idempotency_key (tenant_id, key, request_hash, task_id, answer)
		SELECT * FROM unnest($1::uuid[], $2::text[], $3::bytea[], $4::uuid[], $5::jsonb[])`,
		tenants, keys,
		each(kept, func(n *admit.NewTask) []byte { return n.RequestHash }), ids,
		each(kept, func(n *admit.NewTask) []byte { return orEmpty(n.Answer) }))
	batch.Queue(`SELECT pg_notify($1, g) FROM (SELECT DISTINCT unnest($2::text[]) AS g) groups`, control.NotifyQueue, groups)
}

func orEmpty(text []byte) []byte {
	if len(text) == 0 {
		return []byte("{}")
	}
	return text
}

// violates tells whether err is the violation of that unique constraint.
func violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" && pg.ConstraintName == constraint
}
