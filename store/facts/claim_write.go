package facts

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"fairlane/control"
	"fairlane/control/schedule"
)

// writeClaim writes everything that was decided, in one round trip.
func writeClaim(ctx context.Context, tx pgx.Tx, req schedule.Claim, grants []grant, lent lendingDecision, l *ledger, now time.Time) error {
	b := &pgx.Batch{}
	l.queue(b)
	lent.queue(b, req.PoolGroup)
	if len(grants) == 0 {
		return tx.SendBatch(ctx, b).Close()
	}
	if err := queueClaimedWork(b, req, grants, now); err != nil {
		return err
	}
	if err := queueReservations(b, req, grants, now); err != nil {
		return err
	}
	if err := claimJournal(req, grants, now).queue(b); err != nil {
		return err
	}
	return tx.SendBatch(ctx, b).Close()
}

func queueClaimedWork(b *pgx.Batch, req schedule.Claim, grants []grant, now time.Time) error {
	n := len(grants)
	tokens, err := callbackTokens(n)
	if err != nil {
		return err
	}
	tasks, attempts := make([]uuid.UUID, n), make([]uuid.UUID, n)
	versions, fences, numbers := make([]int64, n), make([]int64, n), make([]int32, n)
	providers, accounts, pools, lanes := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	keys, deadlines, free := make([]string, n), make([]time.Time, n), make([]bool, n)
	for i, g := range grants {
		tasks[i], attempts[i], versions[i], fences[i], numbers[i] = g.task.id, g.attempt, g.task.version, g.token, int32(g.task.made+1)
		providers[i], accounts[i], pools[i], lanes[i] = g.start.Provider, g.start.ProviderAccount, g.start.Pool, g.start.Lane
		keys[i], deadlines[i], free[i] = g.attempt.String(), now.Add(g.start.AttemptTimeout), g.start.Free
	}
	b.Queue(claimTaskSQL, tasks, versions, attempts, numbers, providers, accounts, now).Exec(mustAffect(n, "tasks claimed"))
	b.Queue(insertAttemptSQL, attempts, tasks, numbers, providers, accounts, pools, keys, tokens, fences, lanes, deadlines, free,
		req.PolicyVersion, now).Exec(mustAffect(n, "attempts created"))
	return nil
}

func queueReservations(b *pgx.Batch, req schedule.Claim, grants []grant, now time.Time) error {
	var ids, tasks, attempts, tenants, users []uuid.UUID
	var pools, kinds, lanes, accounts, lenders []string
	var shards []int32
	var units, fences []int64
	var groupKeys, groupShards, groupUnits []string
	var promises []float64
	for _, g := range grants {
		for _, p := range g.parts {
			id, err := uuid.NewV7()
			if err != nil {
				return err
			}
			ids, tasks, attempts = append(ids, id), append(tasks, g.task.id), append(attempts, g.attempt)
			tenants, users = append(tenants, g.task.tenant), append(users, g.task.user)
			pools, shards, units = append(pools, g.start.Pool), append(shards, p.shard), append(units, p.units)
			kinds, lanes = append(kinds, string(g.task.kind)), append(lanes, g.task.lane)
			accounts, lenders = append(accounts, string(g.start.Account)), append(lenders, g.start.Lender)
			fences, promises = append(fences, g.token), append(promises, g.promise.Seconds())
			groupKeys = append(groupKeys, arrayLiteral(p.groups, quoteElement))
			groupShards = append(groupShards, arrayLiteral(p.groupShards, decimal))
			groupUnits = append(groupUnits, arrayLiteral(p.groupUnits, decimal))
		}
	}
	b.Queue(insertReservationSQL, ids, tasks, attempts, pools, shards, units, tenants, users, kinds, lanes, accounts, lenders, fences,
		groupKeys, groupShards, groupUnits, req.PoolGroup, req.PolicyVersion, now.Add(firstLease), now, promises).
		Exec(mustAffect(len(ids), "reservations made"))
	return nil
}

// arrayLiteral writes a list as PostgreSQL's text of an array: unnest takes no lists of lists.
func arrayLiteral[T any](list []T, element func(T) string) string {
	out := make([]byte, 1, 2+8*len(list))
	out[0] = '{'
	for i, v := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, element(v)...)
	}
	return string(append(out, '}'))
}

func quoteElement(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func decimal[N int32 | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

func claimJournal(req schedule.Claim, grants []grant, now time.Time) *journal {
	j := &journal{}
	for _, g := range grants {
		j.event(g.task.id, g.attempt, control.EventTaskClaimed, control.TaskQueued, control.TaskDispatching, control.System.Name, map[string]any{
			"attempt_no": g.task.made + 1, "pool": g.start.Pool, "account": g.start.Account, "units": g.start.SlotUnits,
			"fencing_token": g.token, "policy_version": req.PolicyVersion,
		})
		id := j.newID()
		j.send(id, control.TopicDispatch, g.task.lane, control.EventDispatchRequest, g.task.id, control.DispatchMessage{
			EventID: id, EventType: control.EventDispatchRequest, TaskID: g.task.id, AttemptID: g.attempt, TenantID: g.task.tenant,
			QueueClass: g.task.lane, Provider: g.start.Provider, ProviderAccount: g.start.ProviderAccount, ModelCode: g.task.model,
			ResourceClass: g.task.class, FencingToken: g.token, PolicyVersion: req.PolicyVersion,
			AggregateVersion: g.task.version + 1, TraceID: g.task.trace, CreatedAt: now.UTC(),
		})
		j.hint(control.NotifyDispatch, g.task.lane)
		// The scheduler that claimed knows it; this is for the index, should it die before it has said so.
		j.send(j.newID(), control.TopicQueue, req.PoolGroup, control.EventTaskClaimed, g.task.id, map[string]int64{"version": g.task.version + 1})
	}
	return j
}

// mustAffect fails the transaction when a statement over locked rows did not change as many as it must.
func mustAffect(n int, what string) func(pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		if int(tag.RowsAffected()) != n {
			return fmt.Errorf("%d of %d %s", tag.RowsAffected(), n, what)
		}
		return nil
	}
}

const (
	claimTaskSQL = `
		UPDATE generation_task t
		SET state = 'DISPATCHING', version = t.version + 1, current_attempt_id = k.attempt_id, attempts_made = k.attempt_no,
		    selected_provider = k.provider, selected_account = k.account, started_at = coalesce(t.started_at, $7), updated_at = $7
		FROM unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::int[], $5::text[], $6::text[])
		     k(task_id, version, attempt_id, attempt_no, provider, account)
		WHERE t.task_id = k.task_id AND t.state = 'QUEUED' AND t.version = k.version AND t.next_eligible_at <= clock_timestamp()`

	insertAttemptSQL = `
		INSERT INTO task_attempt (attempt_id, task_id, attempt_no, provider, provider_account, resource_key, provider_request_key,
		    callback_token, fencing_token, lane, deadline_at, free, state, policy_version, created_at, updated_at)
		SELECT k.*, 'CREATED', $13, $14, $14
		FROM unnest($1::uuid[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[],
		     $10::text[], $11::timestamptz[], $12::boolean[]) k`

	insertReservationSQL = `
		INSERT INTO resource_reservation (reservation_id, task_id, attempt_id, resource_key, shard_no, reserved_units, tenant_id, user_id,
		    kind, lane, account, lender_lane, fencing_token, group_keys, group_shards, group_units,
		    pool_group, policy_version, lease_until, created_at, state, borrowed_at, borrowed_from, borrow_due_at)
		SELECT k.id, k.task, k.attempt, k.pool, k.shard, k.units, k.tenant, k.usr, k.kind, k.lane, k.account, nullif(k.lender, ''), k.fence,
		    k.groups::text[], k.shards::int[], k.parts::bigint[], $17, $18, $19, $20, 'ACTIVE',
		    CASE WHEN k.lender <> '' THEN $20::timestamptz END, nullif(k.lender, ''),
		    CASE WHEN k.lender <> '' THEN $20::timestamptz + make_interval(secs => k.promise) END
		FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::int[], $6::bigint[], $7::uuid[], $8::uuid[], $9::text[],
		     $10::text[], $11::text[], $12::text[], $13::bigint[], $14::text[], $15::text[], $16::text[], $21::float8[])
		     k(id, task, attempt, pool, shard, units, tenant, usr, kind, lane, account, lender, fence, groups, shards, parts, promise)`
)
