-- +goose Up
-- Capacity: pools (leaves and cap groups), their counters by shard, and what each lane holds in a pool group.
CREATE TABLE resource_pool (
    resource_key     text PRIMARY KEY CHECK (length(resource_key) BETWEEN 1 AND 200),
    kind             text NOT NULL CHECK (kind IN ('PROVIDER', 'WORKER', 'CAP_GROUP')),
    pool_group       text NOT NULL,
    parents          text[] NOT NULL DEFAULT '{}',
    provider         text NOT NULL DEFAULT '',
    provider_account text NOT NULL DEFAULT '',
    region           text NOT NULL DEFAULT '',
    model_code       text NOT NULL DEFAULT '',
    capacity_units   bigint NOT NULL CHECK (capacity_units >= 0),
    adaptive_limit   bigint CHECK (adaptive_limit >= 0),
    status           text NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'PAUSED', 'REMOVED')),
    policy_version   bigint NOT NULL,
    updated_at       timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN resource_pool.parents IS 'cap groups that contain this pool; a claim counts in each';

CREATE TABLE resource_pool_shard (
    resource_key   text NOT NULL REFERENCES resource_pool,
    shard_no       integer NOT NULL CHECK (shard_no >= 0),
    capacity_units bigint NOT NULL CHECK (capacity_units >= 0),
    used_units     bigint NOT NULL DEFAULT 0 CHECK (used_units >= 0),
    version        bigint NOT NULL DEFAULT 0,
    updated_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (resource_key, shard_no)
) WITH (fillfactor = 50);

CREATE TABLE pool_group_account (
    pool_group     text PRIMARY KEY,
    capacity_units bigint NOT NULL CHECK (capacity_units >= 0),
    common_units   bigint NOT NULL CHECK (common_units >= 0),
    common_used    bigint NOT NULL DEFAULT 0 CHECK (common_used >= 0),
    policy_version bigint NOT NULL,
    updated_at     timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
COMMENT ON COLUMN pool_group_account.common_units IS 'capacity of the group minus the sum of the lanes'' reserves, never below 0';

CREATE TABLE lane_account (
    lane             text NOT NULL,
    pool_group       text NOT NULL REFERENCES pool_group_account,
    reserved_units   bigint NOT NULL CHECK (reserved_units >= 0),
    headroom_units   bigint NOT NULL DEFAULT 0 CHECK (headroom_units >= 0),
    lendable_units   bigint NOT NULL DEFAULT 0 CHECK (lendable_units >= 0),
    borrow_limit     bigint NOT NULL DEFAULT 0 CHECK (borrow_limit >= 0),
    lending_stopped  boolean NOT NULL DEFAULT false,
    paused           boolean NOT NULL DEFAULT false,
    own_used         bigint NOT NULL DEFAULT 0 CHECK (own_used >= 0),
    common_used      bigint NOT NULL DEFAULT 0 CHECK (common_used >= 0),
    borrowed_used    bigint NOT NULL DEFAULT 0 CHECK (borrowed_used >= 0),
    lent_units       bigint NOT NULL DEFAULT 0 CHECK (lent_units >= 0),
    policy_version   bigint NOT NULL,
    updated_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (lane, pool_group)
) WITH (fillfactor = 50);

-- +goose Down
DROP TABLE lane_account, pool_group_account, resource_pool_shard, resource_pool;
