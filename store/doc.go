// Package store is a map and no code: PostgreSQL (store/facts) holds facts, Redis (store/speed) gives
// speed, store/embedded starts private ones, store/storetest makes fresh databases for tests.
//
// Tables by file of migrations/: tenant (tenant, tenant_user, tenant_scheduling_policy and the runtime
// counters), pool (resource_pool, resource_pool_shard, pool_group_account, lane_account), task
// (generation_task, task_attempt, resource_reservation, task_event, idempotency_key), delivery
// (outbox_event, provider_callback, lease), policy (policy_version, policy_head), audit (audit_event,
// audit_head), access (operator, access_grant, session, api_token),
// history (account_sample, lane_sample, tenant_sample, loan_sample and their history_mark; scheduler_status;
// starvation, starvation_lane).
package store
