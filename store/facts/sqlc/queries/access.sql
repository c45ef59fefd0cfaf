-- name: AccessVersion :one
SELECT version FROM access_head;

-- name: Operators :many
SELECT operator_id, login, name, status, language, theme, created_at, updated_at FROM operator ORDER BY login;

-- name: OperatorByLogin :one
SELECT operator_id, login, name, password_hash, status, language, theme FROM operator WHERE login = $1;

-- name: TenantTokens :many
SELECT token_id, tenant_id, name, created_at, expires_at, revoked_at FROM api_token WHERE tenant_id = $1 ORDER BY created_at, token_id;
