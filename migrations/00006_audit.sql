-- +goose Up
-- One append-only hash chain: hash = SHA-256(previous hash || bytes of record). The columns beside
-- the record repeat it for search; the record alone is what is proved.
CREATE TABLE audit_event (
    sequence       bigint PRIMARY KEY CHECK (sequence >= 1),
    at             timestamptz NOT NULL,
    actor_id       uuid,
    actor_name     text NOT NULL,
    source_address text NOT NULL DEFAULT '',
    request_id     text NOT NULL DEFAULT '',
    action         text NOT NULL,
    object_kind    text NOT NULL,
    object_id      text NOT NULL,
    policy_version bigint,
    reason         text NOT NULL DEFAULT '',
    result         text NOT NULL CHECK (result IN ('OK', 'DENIED', 'REFUSED', 'FAILED')),
    terms          text[] NOT NULL DEFAULT '{}',
    record         text NOT NULL,
    hash           bytea NOT NULL CHECK (length(hash) = 32)
);
CREATE INDEX audit_event_at_idx ON audit_event (at, sequence);
CREATE INDEX audit_event_actor_idx ON audit_event (actor_name, sequence);
CREATE INDEX audit_event_action_idx ON audit_event (action, sequence);
CREATE INDEX audit_event_object_idx ON audit_event (object_kind, object_id, sequence);
CREATE INDEX audit_event_result_idx ON audit_event (result, sequence) WHERE result <> 'OK';
CREATE INDEX audit_event_terms_idx ON audit_event USING gin (terms) WITH (fastupdate = off);
COMMENT ON COLUMN audit_event.terms IS 'words and Han bigrams of the reason, and every object and field that the event touched';
CREATE INDEX audit_event_request_idx ON audit_event (request_id, sequence) WHERE request_id <> '';
CREATE UNIQUE INDEX audit_event_policy_version_idx ON audit_event (policy_version) WHERE policy_version IS NOT NULL AND action = 'policy.publish';
CREATE TRIGGER audit_event_is_history BEFORE UPDATE OR DELETE ON audit_event FOR EACH ROW EXECUTE FUNCTION refuse_rewrite();
CREATE TRIGGER audit_event_is_kept BEFORE TRUNCATE ON audit_event FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewrite();

CREATE TABLE audit_head (
    one_row  boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    sequence bigint NOT NULL DEFAULT 0,
    hash     bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
    at       timestamptz NOT NULL DEFAULT '-infinity'
);
COMMENT ON COLUMN audit_head.at IS 'time of the last event: the next one is never earlier, so that times rise with sequences';
INSERT INTO audit_head DEFAULT VALUES;

-- +goose Down
DROP TABLE audit_head, audit_event;
