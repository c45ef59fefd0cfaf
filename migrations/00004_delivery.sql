-- +goose Up
-- The outbox is written in the transaction of the change that it tells of. The postgres transport
-- delivers straight from it: a row is leased (locked_until), handled, deleted.
CREATE TABLE outbox_event (
    event_id     uuid PRIMARY KEY,
    topic        text NOT NULL,
    group_key    text NOT NULL DEFAULT '',
    event_type   text NOT NULL,
    aggregate_id uuid NOT NULL,
    payload      jsonb NOT NULL DEFAULT '{}',
    available_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    locked_until timestamptz,
    deliveries   integer NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
CREATE INDEX outbox_event_due_idx ON outbox_event (topic, group_key, available_at);

-- Callbacks as they came. One that arrives before its job id is known waits here unhandled.
CREATE TABLE provider_callback (
    callback_id     uuid PRIMARY KEY,
    provider        text NOT NULL,
    attempt_id      uuid,
    provider_job_id text,
    signature       text NOT NULL CHECK (signature IN ('VALID', 'NONE')),
    event           jsonb NOT NULL DEFAULT '{}',
    body            text NOT NULL,
    digest          bytea NOT NULL UNIQUE,
    received_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    next_try_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    handled_at      timestamptz,
    outcome         text
);
COMMENT ON COLUMN provider_callback.event IS 'what the adapter read in the body, while its signature could be checked';
CREATE INDEX provider_callback_open_idx ON provider_callback (next_try_at) WHERE handled_at IS NULL;

-- Single-runner work: the holder renews, a higher term replaces it. Times are the database's.
CREATE TABLE lease (
    name       text PRIMARY KEY,
    holder     text NOT NULL,
    term       bigint NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- +goose Down
DROP TABLE lease, provider_callback, outbox_event;
