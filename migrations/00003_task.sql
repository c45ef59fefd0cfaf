-- +goose Up
-- One row per task, one per attempt, one per pool, shard and attempt for what it holds.
-- fairness units are milli-units; cost and price are micro-units of the platform's currency.
CREATE SEQUENCE fencing_token_seq;

CREATE TABLE generation_task (
    task_id              uuid PRIMARY KEY,
    tenant_id            uuid NOT NULL REFERENCES tenant,
    user_id              uuid NOT NULL,
    project              text NOT NULL DEFAULT '',
    kind                 text NOT NULL CHECK (kind IN ('IMAGE', 'VIDEO')),
    queue_class          text NOT NULL,
    pool_group           text NOT NULL,
    priority_band        smallint NOT NULL CHECK (priority_band BETWEEN 0 AND 4),
    resource_class       text NOT NULL,
    state                text NOT NULL CHECK (state IN ('QUEUED', 'DISPATCHING', 'SUBMIT_UNKNOWN', 'RUNNING',
                             'PROVIDER_SUCCEEDED', 'POST_PROCESSING', 'SUCCEEDED', 'FAILED', 'CANCELED')),
    version              bigint NOT NULL DEFAULT 0,
    model_code           text NOT NULL,
    route                text NOT NULL,
    selected_provider    text,
    selected_account     text,
    fairness_units       bigint NOT NULL CHECK (fairness_units >= 1000),
    provider_slot_units  bigint NOT NULL CHECK (provider_slot_units >= 1),
    estimated_cost_units bigint NOT NULL CHECK (estimated_cost_units >= 0),
    actual_cost_units    bigint CHECK (actual_cost_units >= 0),
    price_units          bigint NOT NULL DEFAULT 0 CHECK (price_units >= 0),
    expected_seconds     double precision NOT NULL CHECK (expected_seconds > 0),
    expected_p95_seconds double precision NOT NULL CHECK (expected_p95_seconds > 0),
    enqueue_at           timestamptz NOT NULL,
    queued_since         timestamptz NOT NULL,
    next_eligible_at     timestamptz NOT NULL,
    deadline_at          timestamptz,
    started_at           timestamptz,
    finished_at          timestamptz,
    cancel_requested_at  timestamptz,
    current_attempt_id   uuid,
    attempts_made        integer NOT NULL DEFAULT 0,
    max_attempts         integer NOT NULL DEFAULT 3 CHECK (max_attempts BETWEEN 1 AND 20),
    policy_version       bigint NOT NULL,
    estimate_version     bigint NOT NULL,
    idempotency_key      text NOT NULL,
    parameters           jsonb NOT NULL DEFAULT '{}',
    result               jsonb,
    error_code           text,
    error_message        text,
    trace_context        text,
    callback_url         text,
    created_at           timestamptz NOT NULL DEFAULT now(),
    updated_at           timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (tenant_id, user_id) REFERENCES tenant_user
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
COMMENT ON COLUMN generation_task.route IS 'what the task requires of a pool; pools follow from the policy in force';
COMMENT ON COLUMN generation_task.queued_since IS 'sort key and base of the wait; a retry keeps it, a delayed task has its eligible time';

CREATE INDEX idx_task_schedulable ON generation_task
    (queue_class, tenant_id, priority_band, next_eligible_at, enqueue_at) WHERE state = 'QUEUED';
CREATE INDEX idx_task_backlog ON generation_task (pool_group, task_id) WHERE state = 'QUEUED';
CREATE INDEX idx_task_oldest ON generation_task (queue_class, queued_since) WHERE state = 'QUEUED';
CREATE INDEX idx_task_tenant_oldest ON generation_task (tenant_id, queued_since) WHERE state = 'QUEUED';
CREATE INDEX idx_task_deadline ON generation_task (deadline_at) WHERE state = 'QUEUED' AND deadline_at IS NOT NULL;
CREATE INDEX idx_task_live ON generation_task (state, updated_at) WHERE state IN ('DISPATCHING', 'SUBMIT_UNKNOWN', 'RUNNING', 'PROVIDER_SUCCEEDED', 'POST_PROCESSING');
CREATE INDEX idx_task_tenant ON generation_task (tenant_id, task_id DESC);
CREATE INDEX idx_task_state ON generation_task (state, task_id DESC);

CREATE TABLE task_attempt (
    attempt_id           uuid PRIMARY KEY,
    task_id              uuid NOT NULL REFERENCES generation_task,
    attempt_no           integer NOT NULL CHECK (attempt_no >= 1),
    stage                text NOT NULL DEFAULT 'GENERATION' CHECK (stage IN ('GENERATION', 'POST_PROCESSING')),
    provider             text NOT NULL,
    provider_account     text NOT NULL,
    resource_key         text NOT NULL,
    provider_request_key text NOT NULL,
    provider_job_id      text,
    callback_token       text NOT NULL,
    state                text NOT NULL CHECK (state IN ('CREATED', 'SUBMITTING', 'ACCEPTED', 'REJECTED', 'UNKNOWN',
                             'SUCCEEDED', 'FAILED', 'CANCELED', 'LOST', 'ABANDONED')),
    fencing_token        bigint NOT NULL,
    lane                 text NOT NULL,
    policy_version       bigint NOT NULL,
    submit_started_at    timestamptz,
    submit_finished_at   timestamptz,
    next_check_at        timestamptz,
    check_count          integer NOT NULL DEFAULT 0,
    cancel_sent_at       timestamptz,
    deadline_at          timestamptz NOT NULL,
    progress             double precision,
    actual_seconds       double precision,
    actual_cost_units    bigint CHECK (actual_cost_units >= 0),
    raw_answer           text,
    error_class          text,
    error_code           text,
    created_at           timestamptz NOT NULL DEFAULT now(),
    updated_at           timestamptz NOT NULL DEFAULT now(),
    UNIQUE (task_id, attempt_no),
    UNIQUE (provider, provider_request_key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE UNIQUE INDEX task_attempt_one_live_idx ON task_attempt (task_id, stage)
    WHERE state IN ('CREATED', 'SUBMITTING', 'ACCEPTED', 'UNKNOWN', 'LOST');
CREATE UNIQUE INDEX task_attempt_job_idx ON task_attempt (provider, provider_job_id, provider_account) WHERE provider_job_id IS NOT NULL;
CREATE INDEX task_attempt_check_idx ON task_attempt (next_check_at)
    WHERE state IN ('SUBMITTING', 'ACCEPTED', 'UNKNOWN', 'LOST');
CREATE INDEX task_attempt_created_idx ON task_attempt (created_at) WHERE state = 'CREATED';
COMMENT ON COLUMN task_attempt.check_count IS 'checks since the provider last gave an answer that could be read';

CREATE INDEX task_attempt_unknown_idx ON task_attempt (resource_key) WHERE state IN ('UNKNOWN', 'LOST');

CREATE TABLE resource_reservation (
    reservation_id uuid PRIMARY KEY,
    task_id        uuid NOT NULL REFERENCES generation_task,
    attempt_id     uuid NOT NULL REFERENCES task_attempt,
    resource_key   text NOT NULL,
    shard_no       integer NOT NULL,
    reserved_units bigint NOT NULL CHECK (reserved_units > 0),
    state          text NOT NULL CHECK (state IN ('ACTIVE', 'RELEASED')),
    tenant_id      uuid NOT NULL,
    user_id        uuid NOT NULL,
    kind           text NOT NULL CHECK (kind IN ('IMAGE', 'VIDEO')),
    lane           text NOT NULL,
    pool_group     text NOT NULL,
    account        text NOT NULL CHECK (account IN ('OWN', 'COMMON', 'BORROWED')),
    lender_lane    text,
    group_keys     text[] NOT NULL DEFAULT '{}',
    group_shards   integer[] NOT NULL DEFAULT '{}',
    group_units    bigint[] NOT NULL DEFAULT '{}',
    policy_version bigint NOT NULL,
    lease_until    timestamptz NOT NULL,
    fencing_token  bigint NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    released_at    timestamptz,
    UNIQUE (attempt_id, resource_key, shard_no),
    CHECK ((account = 'BORROWED') = (lender_lane IS NOT NULL)),
    CHECK (cardinality(group_keys) = cardinality(group_shards)),
    CHECK (cardinality(group_keys) = cardinality(group_units)),
    CHECK ((state = 'RELEASED') = (released_at IS NOT NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX resource_reservation_active_idx ON resource_reservation (resource_key, shard_no) WHERE state = 'ACTIVE';
CREATE INDEX resource_reservation_lease_idx ON resource_reservation (lease_until) WHERE state = 'ACTIVE';
COMMENT ON COLUMN resource_reservation.group_keys IS 'cap groups that this row was counted in, each with its shard in group_shards and its part of the units in group_units; a group that spans shards is named once for each';

CREATE TABLE task_event (
    event_id   uuid PRIMARY KEY,
    task_id    uuid NOT NULL,
    attempt_id uuid,
    type       text NOT NULL,
    from_state text,
    to_state   text,
    actor      text NOT NULL DEFAULT 'system',
    detail     jsonb NOT NULL DEFAULT '{}',
    at         timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX task_event_task_idx ON task_event (task_id, event_id);

CREATE TABLE idempotency_key (
    tenant_id    uuid NOT NULL,
    key          text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    request_hash bytea NOT NULL,
    task_id      uuid NOT NULL,
    answer       jsonb NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, key)
);
CREATE INDEX idempotency_key_age_idx ON idempotency_key (created_at);

-- +goose Down
DROP TABLE idempotency_key, task_event, resource_reservation, task_attempt, generation_task;
DROP SEQUENCE fencing_token_seq;
