-- +goose Up
-- What pages show of the past, what a scheduler remembers, who waits too long, and how promises of loans are kept.
-- Slot units and seconds unless a name says milli.

-- A loan, from the claim that took units of another lane to their return. Kept on the row that holds the
-- units, and kept after it has been relabelled or released.
ALTER TABLE resource_reservation
    ADD COLUMN borrowed_at   timestamptz,
    ADD COLUMN borrowed_from text,
    ADD COLUMN borrow_due_at timestamptz,
    ADD COLUMN returned_at   timestamptz,
    ADD CONSTRAINT resource_reservation_loan_check CHECK ((borrowed_at IS NULL) = (borrowed_from IS NULL) AND (borrowed_at IS NULL) = (borrow_due_at IS NULL)),
    ADD CONSTRAINT resource_reservation_returned_check CHECK (returned_at IS NULL OR borrowed_at IS NOT NULL);
COMMENT ON COLUMN resource_reservation.borrowed_at IS 'set by the claim that inserts the row with account BORROWED: now(); stays after a relabel';
COMMENT ON COLUMN resource_reservation.borrowed_from IS 'set by the same claim: the lender''s lane; stays after a relabel, when lender_lane becomes null';
COMMENT ON COLUMN resource_reservation.borrow_due_at IS 'set by the same claim: now() + the lender''s borrow_timeout; the promise';
COMMENT ON COLUMN resource_reservation.returned_at IS 'set when the units go back to the lender: at the relabel to OWN, or at the release of a row that is still BORROWED';
-- Who borrows now, and what was not back in time.
CREATE INDEX resource_reservation_loan_idx ON resource_reservation (borrowed_from, borrow_due_at)
    WHERE borrowed_at IS NOT NULL AND returned_at IS NULL;
CREATE INDEX resource_reservation_late_idx ON resource_reservation (borrowed_from, returned_at)
    WHERE returned_at > borrow_due_at;
-- Promises in the order in which they fall due.
CREATE INDEX resource_reservation_due_idx ON resource_reservation (borrow_due_at) WHERE borrow_due_at IS NOT NULL;

-- What the scheduler of a pool group remembers from cycle to cycle, for pages. An older term never overwrites.
CREATE TABLE scheduler_status (
    pool_group text PRIMARY KEY,
    term       bigint NOT NULL,
    at         timestamptz NOT NULL,
    status     jsonb NOT NULL
) WITH (fillfactor = 50);

-- Samples: step is 10, 60 or 3600 seconds, at the start of the interval. Longer steps hold means of the shorter.
CREATE TABLE account_sample (
    lane       text NOT NULL,
    pool_group text NOT NULL,
    step       integer NOT NULL CHECK (step IN (10, 60, 3600)),
    at         timestamptz NOT NULL,
    reserved   double precision NOT NULL,
    headroom   double precision NOT NULL,
    own        double precision NOT NULL,
    common     double precision NOT NULL,
    borrowed   double precision NOT NULL,
    lent       double precision NOT NULL,
    PRIMARY KEY (lane, step, at, pool_group)
);
CREATE INDEX account_sample_age_idx ON account_sample (step, at);

CREATE TABLE lane_sample (
    lane           text NOT NULL,
    step           integer NOT NULL CHECK (step IN (10, 60, 3600)),
    at             timestamptz NOT NULL,
    queued_tasks   double precision NOT NULL,
    running_tasks  double precision NOT NULL,
    oldest_seconds double precision NOT NULL,
    PRIMARY KEY (lane, step, at)
);
CREATE INDEX lane_sample_age_idx ON lane_sample (step, at);
COMMENT ON COLUMN lane_sample.oldest_seconds IS 'longest wait; in longer steps the longest of the interval';

-- A tenant's minute or hour in one lane, written only where it had work. Sums, so that any span can be added up.
CREATE TABLE tenant_sample (
    tenant_id         uuid NOT NULL,
    lane              text NOT NULL,
    step              integer NOT NULL CHECK (step IN (60, 3600)),
    at                timestamptz NOT NULL,
    served_milli      bigint NOT NULL,
    lane_served_milli bigint NOT NULL,
    entitled_milli    bigint NOT NULL,
    debt_milli        bigint NOT NULL,
    running_units     double precision NOT NULL,
    queued_tasks      double precision NOT NULL,
    starts            bigint NOT NULL,
    waits             bigint[] NOT NULL,
    PRIMARY KEY (tenant_id, lane, step, at)
);
CREATE INDEX tenant_sample_age_idx ON tenant_sample (step, at);
COMMENT ON COLUMN tenant_sample.entitled_milli IS 'its part by weight of what the lane served, among tenants with work in their home lane; 0 in other lanes';
COMMENT ON COLUMN tenant_sample.waits IS 'starts by wait: the counts of the classes of control/monitor';

-- Promises that fell due in an interval, by lender and borrower.
CREATE TABLE loan_sample (
    lender     text NOT NULL,
    lane       text NOT NULL,
    pool_group text NOT NULL,
    step       integer NOT NULL CHECK (step IN (60, 3600)),
    at         timestamptz NOT NULL,
    loans      bigint NOT NULL,
    units      bigint NOT NULL,
    kept       bigint NOT NULL,
    kept_units bigint NOT NULL,
    PRIMARY KEY (lender, step, at, lane, pool_group)
);
CREATE INDEX loan_sample_age_idx ON loan_sample (step, at);

-- How far each series has been written; moved in the transaction that writes.
CREATE TABLE history_mark (
    series     text PRIMARY KEY,
    done_until timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Who waits longer than its bound, and every lane's longest wait against its own, as last looked for.
CREATE TABLE starvation (
    lane          text NOT NULL,
    tenant_id     uuid NOT NULL,
    task_id       uuid NOT NULL,
    oldest_at     timestamptz NOT NULL,
    bound_seconds bigint NOT NULL CHECK (bound_seconds > 0),
    turns         bigint NOT NULL,
    capped        boolean NOT NULL,
    since         timestamptz NOT NULL,
    PRIMARY KEY (lane, tenant_id)
) WITH (fillfactor = 50);
COMMENT ON COLUMN starvation.since IS 'when the wait passed the bound';
COMMENT ON COLUMN starvation.turns IS 'turns of its ring within which the oldest task is served once nothing else holds it; 0: its weight is 0';
COMMENT ON COLUMN starvation.capped IS 'the tenant is at its own maximum of tasks or units: it waits for itself';

CREATE TABLE starvation_lane (
    lane          text PRIMARY KEY,
    exempt        text NOT NULL CHECK (exempt IN ('', 'WEIGHT_ZERO', 'PAUSED', 'STOPPED', 'NO_BOUND')),
    bound_seconds bigint NOT NULL,
    oldest_at     timestamptz,
    tenants       bigint NOT NULL,
    capped        bigint NOT NULL,
    checked_at    timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON COLUMN starvation_lane.tenants IS 'over their bound and not at their own maximum';

-- The oldest of a tenant is looked for lane by lane.
DROP INDEX idx_task_tenant_oldest;
CREATE INDEX idx_task_tenant_oldest ON generation_task (tenant_id, queue_class, queued_since) WHERE state = 'QUEUED';

-- +goose Down
DROP INDEX idx_task_tenant_oldest;
CREATE INDEX idx_task_tenant_oldest ON generation_task (tenant_id, queued_since) WHERE state = 'QUEUED';
DROP TABLE starvation_lane, starvation, history_mark, loan_sample, tenant_sample, lane_sample, account_sample, scheduler_status;
ALTER TABLE resource_reservation
    DROP CONSTRAINT resource_reservation_returned_check, DROP CONSTRAINT resource_reservation_loan_check,
    DROP COLUMN returned_at, DROP COLUMN borrow_due_at, DROP COLUMN borrowed_from, DROP COLUMN borrowed_at;
