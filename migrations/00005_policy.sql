-- +goose Up
-- +goose StatementBegin
CREATE FUNCTION refuse_rewrite() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: its rows are history', TG_OP, TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
-- +goose StatementEnd

CREATE TABLE policy_version (
    version       bigint PRIMARY KEY CHECK (version >= 1),
    base_version  bigint NOT NULL CHECK (base_version = version - 1),
    schema        integer NOT NULL,
    document      text NOT NULL CHECK (document::jsonb IS NOT NULL),
    digest        bytea NOT NULL CHECK (digest = sha256(convert_to(document, 'UTF8'))),
    reason        text NOT NULL CHECK (length(btrim(reason)) > 0),
    actor_id      uuid,
    actor_name    text NOT NULL,
    restored_from bigint REFERENCES policy_version,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON COLUMN policy_version.document IS 'the canonical JSON text byte for byte, since its digest is of these bytes; jsonb would rewrite it';
CREATE TRIGGER policy_version_is_history BEFORE UPDATE OR DELETE ON policy_version FOR EACH ROW EXECUTE FUNCTION refuse_rewrite();
CREATE TRIGGER policy_version_is_kept BEFORE TRUNCATE ON policy_version FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewrite();

CREATE TABLE policy_head (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    version bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO policy_head DEFAULT VALUES;

-- Which version each replica has in force, so that wanted and active can be shown apart.
CREATE TABLE policy_replica (
    replica    text PRIMARY KEY,
    version    bigint NOT NULL,
    error      text,
    seen_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- +goose Down
DROP TABLE policy_replica, policy_head, policy_version;
DROP FUNCTION refuse_rewrite();
