-- name: PolicyHead :one
SELECT version FROM policy_head;

-- name: PolicyVersion :one
SELECT version, base_version, document, digest, reason, actor_id, actor_name, restored_from, created_at
FROM policy_version WHERE version = $1;

-- name: PolicyVersions :many
SELECT version, digest, reason, actor_id, actor_name, restored_from, created_at
FROM policy_version WHERE version < sqlc.arg(before) ORDER BY version DESC LIMIT sqlc.arg(most);

-- name: PolicyReplicas :many
SELECT replica, version, error, seen_at FROM policy_replica ORDER BY replica;

-- name: PlanList :many
SELECT tenant_id, code, name, plan_code, status FROM tenant ORDER BY tenant_id;
