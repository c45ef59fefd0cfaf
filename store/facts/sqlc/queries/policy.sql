-- name: PolicyHead :one
SELECT version FROM policy_head;

-- name: PolicyDocument :one
SELECT version, schema, document, digest FROM policy_version WHERE version = $1;

-- name: PolicyReplicas :many
SELECT replica, version, error, seen_at FROM policy_replica ORDER BY replica;
