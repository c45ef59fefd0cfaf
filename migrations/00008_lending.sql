-- +goose Up
-- What a claim compares when a lane borrows from another, and what keeps starts out of a pool.
ALTER TABLE lane_account
    ADD COLUMN lends_to              text[] NOT NULL DEFAULT '{}',
    ADD COLUMN borrow_timeout        bigint NOT NULL DEFAULT 0 CHECK (borrow_timeout >= 0),
    ADD COLUMN lending_stopped_since timestamptz;
COMMENT ON COLUMN lane_account.lends_to IS 'lanes that may borrow, as in the policy in force';
COMMENT ON COLUMN lane_account.borrow_timeout IS 'seconds within which a lent unit is to be back, as in the policy in force';
COMMENT ON COLUMN lane_account.lending_stopped IS 'the lane needs its units itself: it lends nothing new; set by the scheduler with its claims';
COMMENT ON COLUMN lane_account.lending_stopped_since IS 'NULL while the lane lends';

ALTER TABLE resource_pool
    ADD COLUMN breaker_until timestamptz,
    ADD COLUMN keeps_lanes   boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN resource_pool.breaker_until IS 'nothing starts in the pool before this time';
COMMENT ON COLUMN resource_pool.keeps_lanes IS 'the policy in force keeps units of the pool for lanes';

-- Units that run on other lanes' reserves, by age.
CREATE INDEX resource_reservation_borrowed_idx ON resource_reservation (pool_group, lane, created_at)
    WHERE state = 'ACTIVE' AND account = 'BORROWED';

-- +goose Down
DROP INDEX resource_reservation_borrowed_idx;
COMMENT ON COLUMN lane_account.lending_stopped IS NULL;
ALTER TABLE resource_pool DROP COLUMN keeps_lanes, DROP COLUMN breaker_until;
ALTER TABLE lane_account DROP COLUMN lending_stopped_since, DROP COLUMN borrow_timeout, DROP COLUMN lends_to;
