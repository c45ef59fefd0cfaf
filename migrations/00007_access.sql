-- +goose Up
-- People, their roles, sessions and the tokens of platform services. Tokens and session keys are kept hashed.
CREATE TABLE operator (
    operator_id   uuid PRIMARY KEY,
    login         text NOT NULL UNIQUE CHECK (length(login) BETWEEN 1 AND 64),
    name          text NOT NULL,
    password_hash text NOT NULL,
    status        text NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'DISABLED')),
    language      text NOT NULL DEFAULT '' CHECK (language IN ('', 'zh', 'en')),
    theme         text NOT NULL DEFAULT '' CHECK (theme IN ('', 'light', 'dark')),
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE access_grant (
    operator_id uuid NOT NULL REFERENCES operator,
    role        text NOT NULL CHECK (role IN ('viewer', 'operator', 'approver', 'auditor', 'admin', 'wall')),
    lanes       text[] NOT NULL DEFAULT '{}',
    tenants     uuid[] NOT NULL DEFAULT '{}',
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (operator_id, role)
);
COMMENT ON COLUMN access_grant.lanes IS 'empty: not limited to lanes';

CREATE TABLE access_rule (
    role       text NOT NULL,
    permission text NOT NULL,
    effect     text NOT NULL CHECK (effect IN ('allow', 'deny')),
    PRIMARY KEY (role, permission, effect)
);

CREATE TABLE access_head (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    version bigint NOT NULL DEFAULT 0
);
INSERT INTO access_head DEFAULT VALUES;

CREATE TABLE session (
    token_hash  text PRIMARY KEY,
    operator_id uuid REFERENCES operator,
    data        bytea NOT NULL,
    expiry      timestamptz NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX session_expiry_idx ON session (expiry);
CREATE INDEX session_operator_idx ON session (operator_id);

CREATE TABLE api_token (
    token_id   uuid PRIMARY KEY,
    tenant_id  uuid NOT NULL REFERENCES tenant,
    name       text NOT NULL,
    token_hash bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz
);
CREATE INDEX api_token_tenant_idx ON api_token (tenant_id);

-- +goose Down
DROP TABLE api_token, session, access_head, access_rule, access_grant, operator;
