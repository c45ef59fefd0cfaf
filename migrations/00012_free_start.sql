-- +goose Up
-- A start by a tenant's reserve, or of what nobody else wants, is not charged to its turn: then what it used
-- more or less than its estimate is no debt and no credit either.
ALTER TABLE task_attempt ADD COLUMN free boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN task_attempt.free IS 'its start was not charged to the tenant''s deficit, so that its end settles nothing';

-- +goose Down
ALTER TABLE task_attempt DROP COLUMN free;
