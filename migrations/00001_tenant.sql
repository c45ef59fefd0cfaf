-- +goose Up
-- Customers, their people, what the policy in force grants them (copied here by a publish),
-- and the counters that claims and admissions move. Units are slot units unless a name says milli.
CREATE TABLE tenant (
    tenant_id   uuid PRIMARY KEY,
    code        text NOT NULL UNIQUE CHECK (length(code) BETWEEN 1 AND 64),
    name        text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    plan_code   text NOT NULL,
    status      text NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'SUSPENDED')),
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX tenant_name_idx ON tenant (lower(name), tenant_id);
CREATE INDEX tenant_plan_idx ON tenant (plan_code);

CREATE TABLE tenant_user (
    tenant_id   uuid NOT NULL REFERENCES tenant,
    user_id     uuid NOT NULL,
    external_id text NOT NULL CHECK (length(external_id) BETWEEN 1 AND 128),
    status      text NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'BLOCKED')),
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, user_id),
    UNIQUE (tenant_id, external_id)
);

CREATE TABLE tenant_scheduling_policy (
    tenant_id              uuid PRIMARY KEY REFERENCES tenant,
    service_class          text NOT NULL,
    weight                 integer NOT NULL CHECK (weight BETWEEN 0 AND 1000000),
    max_queued_tasks       integer NOT NULL CHECK (max_queued_tasks >= 0),
    max_queued_units       bigint NOT NULL CHECK (max_queued_units >= 0),
    max_running_tasks      integer NOT NULL CHECK (max_running_tasks >= 0),
    max_running_units      bigint NOT NULL CHECK (max_running_units >= 0),
    max_cost_per_minute    bigint NOT NULL CHECK (max_cost_per_minute >= 0),
    max_cost_per_day       bigint NOT NULL CHECK (max_cost_per_day >= 0),
    reserved_units         bigint NOT NULL CHECK (reserved_units >= 0),
    burst_units            bigint NOT NULL CHECK (burst_units >= 0),
    max_wait_seconds       integer NOT NULL CHECK (max_wait_seconds >= 0),
    user_max_queued_tasks  integer NOT NULL CHECK (user_max_queued_tasks >= 0),
    user_max_running_tasks integer NOT NULL CHECK (user_max_running_tasks >= 0),
    user_max_running_image integer NOT NULL CHECK (user_max_running_image >= 0),
    user_max_running_video integer NOT NULL CHECK (user_max_running_video >= 0),
    policy_version         bigint NOT NULL,
    updated_at             timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 80);
CREATE INDEX tenant_scheduling_policy_class_idx ON tenant_scheduling_policy (service_class);

CREATE TABLE tenant_runtime (
    tenant_id     uuid PRIMARY KEY REFERENCES tenant,
    queued_tasks  bigint NOT NULL DEFAULT 0 CHECK (queued_tasks >= 0),
    queued_units  bigint NOT NULL DEFAULT 0 CHECK (queued_units >= 0),
    running_tasks bigint NOT NULL DEFAULT 0 CHECK (running_tasks >= 0),
    running_units bigint NOT NULL DEFAULT 0 CHECK (running_units >= 0),
    updated_at    timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
COMMENT ON COLUMN tenant_runtime.queued_units IS 'fairness milli-units of queued tasks';

-- A tenant's use inside one lane: its reserve counts here. debt_milli is the fairness debt (positive: owes).
CREATE TABLE tenant_lane_runtime (
    tenant_id     uuid NOT NULL REFERENCES tenant,
    lane          text NOT NULL,
    queued_tasks  bigint NOT NULL DEFAULT 0 CHECK (queued_tasks >= 0),
    queued_units  bigint NOT NULL DEFAULT 0 CHECK (queued_units >= 0),
    running_tasks bigint NOT NULL DEFAULT 0 CHECK (running_tasks >= 0),
    running_units bigint NOT NULL DEFAULT 0 CHECK (running_units >= 0),
    debt_milli    bigint NOT NULL DEFAULT 0,
    served_milli  bigint NOT NULL DEFAULT 0 CHECK (served_milli >= 0),
    updated_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, lane)
) WITH (fillfactor = 50);
CREATE INDEX tenant_lane_runtime_lane_idx ON tenant_lane_runtime (lane);
COMMENT ON COLUMN tenant_lane_runtime.served_milli IS 'fairness milli-units of all claims so far, at their estimate';

CREATE TABLE user_runtime (
    tenant_id     uuid NOT NULL,
    user_id       uuid NOT NULL,
    queued_tasks  bigint NOT NULL DEFAULT 0 CHECK (queued_tasks >= 0),
    running_tasks bigint NOT NULL DEFAULT 0 CHECK (running_tasks >= 0),
    running_image bigint NOT NULL DEFAULT 0 CHECK (running_image >= 0),
    running_video bigint NOT NULL DEFAULT 0 CHECK (running_video >= 0),
    updated_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, user_id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES tenant_user
) WITH (fillfactor = 50);

-- +goose Down
DROP TABLE user_runtime, tenant_lane_runtime, tenant_runtime, tenant_scheduling_policy, tenant_user, tenant;
