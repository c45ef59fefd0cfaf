-- name: AuditHead :one
SELECT sequence, hash FROM audit_head;

-- name: AuditPage :many
SELECT sequence, at, actor_id, actor_name, source_address, request_id, action, object_kind, object_id,
       policy_version, reason, result, terms, record, hash
FROM audit_event WHERE sequence > sqlc.arg(after) ORDER BY sequence LIMIT sqlc.arg(most);

-- name: AuditRecord :one
SELECT record, hash FROM audit_event WHERE sequence = $1;
