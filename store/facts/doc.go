// Package facts is PostgreSQL: one file per noun, one command one transaction, with its outbox and
// audit rows. It implements ports that control, policy and audit declare, speaks in their words, and is
// called by nobody but control/run. A method either commits everything that it names or nothing.
//
// Lock order, the only one: policy head → tenant_scheduling_policy → tenant runtime (tenant_runtime,
// then tenant_lane_runtime) → user runtime → lane accounts (pool_group_account, then lane_account) →
// pool shards (by key, shard) → cost windows → task → attempt → reservation → audit head. What a policy says
// of debts (lane_debt_limit) is written under the policy head and the tenants' rows in the lane, and read
// under the latter. The estimate head is locked first and alone by whoever learns. Within a
// table, rows are locked in the order of their primary key. A claim that borrows locks the accounts of
// both lanes, one that relabels those of both lanes, the attempts and their reservations.
package facts
