-- +goose Up
-- What tasks were expected to take and what they took: the estimate's bases are frozen with the task,
-- what came of it is kept with the attempt, and the history of each kind of work is learnt from samples.
ALTER TABLE generation_task
    ADD COLUMN base_units           bigint CHECK (base_units >= 1000),
    ADD COLUMN expected_gpu_seconds double precision NOT NULL DEFAULT 0 CHECK (expected_gpu_seconds >= 0),
    ADD COLUMN second_base          bigint NOT NULL DEFAULT 30 CHECK (second_base >= 1),
    ADD COLUMN cost_base_micro      bigint NOT NULL DEFAULT 100000 CHECK (cost_base_micro >= 1),
    ADD COLUMN gpu_second_base      bigint NOT NULL DEFAULT 30 CHECK (gpu_second_base >= 1);
COMMENT ON COLUMN generation_task.base_units IS 'fairness milli-units before the tenant''s factor; NULL: the same as fairness_units';
COMMENT ON COLUMN generation_task.second_base IS 'provider seconds that cost one fairness unit when the task was admitted; likewise the two below';

ALTER TABLE task_attempt
    ADD COLUMN used_seconds  double precision CHECK (used_seconds >= 0),
    ADD COLUMN held_seconds  double precision CHECK (held_seconds >= 0),
    ADD COLUMN used_units    bigint CHECK (used_units >= 0),
    ADD COLUMN settled_units bigint;
COMMENT ON COLUMN task_attempt.used_seconds IS 'of the provider''s work: as told, else from acceptance to end; 0: it never ran';
COMMENT ON COLUMN task_attempt.held_seconds IS 'from claim to release';
COMMENT ON COLUMN task_attempt.used_units IS 'fairness milli-units that it used; NULL: not ended, or nobody knows and the estimate stands';
COMMENT ON COLUMN task_attempt.settled_units IS 'fairness milli-units by which its end corrected its charge, within the limit for a task; NULL: not ended';
-- What ended before was charged by its estimate and stays so.
UPDATE task_attempt SET settled_units = 0 WHERE state IN ('REJECTED', 'SUCCEEDED', 'FAILED', 'CANCELED', 'ABANDONED');

ALTER TABLE tenant_runtime
    ADD COLUMN cost_factor double precision NOT NULL DEFAULT 1 CHECK (cost_factor BETWEEN 0.1 AND 10),
    ADD COLUMN cost_tasks  bigint NOT NULL DEFAULT 0 CHECK (cost_tasks >= 0);
COMMENT ON COLUMN tenant_runtime.cost_factor IS 'what the tenant''s tasks use over what is estimated for such tasks, smoothed';

-- What the policy in force says of debts, copied here by a publish; both are 0 in a lane that keeps none.
CREATE TABLE lane_debt_limit (
    lane           text PRIMARY KEY,
    task_milli     bigint NOT NULL CHECK (task_milli BETWEEN 0 AND 100000000),
    total_milli    bigint NOT NULL CHECK (total_milli BETWEEN 0 AND 100000000),
    policy_version bigint NOT NULL
);
INSERT INTO lane_debt_limit (lane, task_milli, total_milli, policy_version)
SELECT l ->> 'code',
       CASE WHEN l ->> 'strategy' = 'WRR' THEN 0 ELSE coalesce((d -> 'scheduling' ->> 'debt_task_units')::bigint, 0) * 1000 END,
       CASE WHEN l ->> 'strategy' = 'WRR' THEN 0 ELSE coalesce((d -> 'scheduling' ->> 'debt_total_units')::bigint, 0) * 1000 END,
       version
FROM (SELECT v.version, v.document::jsonb d FROM policy_head h JOIN policy_version v USING (version)) p,
     jsonb_array_elements(d -> 'lanes') l;

-- Samples wait here until they are learnt, in the order of their numbers.
CREATE TABLE estimate_sample (
    sample_id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    attempt_id           uuid NOT NULL UNIQUE,
    model_code           text NOT NULL,
    resolution           text NOT NULL,
    clip_seconds         bigint NOT NULL,
    provider             text NOT NULL,
    used_seconds         double precision NOT NULL,
    held_seconds         double precision NOT NULL,
    cost_micro           bigint,
    expected_seconds     double precision NOT NULL,
    expected_p95_seconds double precision NOT NULL,
    charged_units        bigint NOT NULL,
    used_units           bigint NOT NULL,
    at                   timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What has been learnt of each kind of work. provider '' stands for all of them together.
CREATE TABLE estimate_cell (
    model_code   text NOT NULL,
    resolution   text NOT NULL,
    clip_seconds bigint NOT NULL,
    provider     text NOT NULL,
    state        jsonb NOT NULL,
    updated_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (model_code, resolution, clip_seconds, provider)
) WITH (fillfactor = 70);

CREATE TABLE estimate_calibration (
    model_code text PRIMARY KEY,
    state      jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 70);

-- Numbered and never changed: a version is what it changed and everything before it. 1 is the priors of
-- the policy's catalogue alone.
CREATE TABLE estimate_version (
    version    bigint PRIMARY KEY CHECK (version >= 1),
    samples    bigint NOT NULL CHECK (samples >= 0),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON COLUMN estimate_version.samples IS 'learnt so far';
INSERT INTO estimate_version (version, samples) VALUES (1, 0);

CREATE TABLE estimate (
    version      bigint NOT NULL REFERENCES estimate_version,
    model_code   text NOT NULL,
    resolution   text NOT NULL,
    clip_seconds bigint NOT NULL,
    provider     text NOT NULL,
    tasks        double precision NOT NULL CHECK (tasks >= 0),
    mean_seconds double precision NOT NULL CHECK (mean_seconds >= 0),
    p95_seconds  double precision NOT NULL CHECK (p95_seconds >= 0),
    costs        double precision NOT NULL CHECK (costs >= 0),
    cost_micro   double precision NOT NULL CHECK (cost_micro >= 0),
    PRIMARY KEY (model_code, resolution, clip_seconds, provider, version)
);
COMMENT ON COLUMN estimate.tasks IS 'weight of the observations behind mean and p95; likewise costs';
CREATE TRIGGER estimate_version_is_history BEFORE UPDATE OR DELETE ON estimate_version FOR EACH ROW EXECUTE FUNCTION refuse_rewrite();
CREATE TRIGGER estimate_version_is_kept BEFORE TRUNCATE ON estimate_version FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewrite();
CREATE TRIGGER estimate_is_history BEFORE UPDATE OR DELETE ON estimate FOR EACH ROW EXECUTE FUNCTION refuse_rewrite();
CREATE TRIGGER estimate_is_kept BEFORE TRUNCATE ON estimate FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewrite();

CREATE TABLE estimate_head (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    version bigint NOT NULL DEFAULT 1,
    samples bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
INSERT INTO estimate_head DEFAULT VALUES;

-- +goose Down
DROP TABLE estimate_head, estimate, estimate_version, estimate_calibration, estimate_cell, estimate_sample, lane_debt_limit;
ALTER TABLE tenant_runtime DROP COLUMN cost_factor, DROP COLUMN cost_tasks;
ALTER TABLE task_attempt DROP COLUMN used_seconds, DROP COLUMN held_seconds, DROP COLUMN used_units, DROP COLUMN settled_units;
ALTER TABLE generation_task DROP COLUMN base_units, DROP COLUMN expected_gpu_seconds, DROP COLUMN second_base, DROP COLUMN cost_base_micro, DROP COLUMN gpu_second_base;
