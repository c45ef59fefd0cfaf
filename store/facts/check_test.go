package facts_test

import (
	"slices"
	"strings"
	"testing"

	"fairlane/control"
	"fairlane/store/facts"
)

// Each planted fault must be found, under its number and at its object.
func TestCheckFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	const planted = `INSERT INTO lane_account (lane, pool_group, reserved_units, policy_version) VALUES ('LENDER', 'g', 9, 1); UPDATE resource_reservation SET account = 'BORROWED', lender_lane = 'LENDER'; UPDATE lane_account SET lent_units = 3 WHERE lane = 'LENDER'; UPDATE lane_account SET common_used = 0, borrowed_used = 3 WHERE lane = 'PAID_SHARED'; UPDATE pool_group_account SET common_used = 0; `
	const noTriggers = `SET session_replication_role = replica; `
	for name, c := range map[string]struct {
		sql, invariant, object string
	}{
		"shard too high":      {`UPDATE resource_pool_shard SET used_units = used_units + 3 WHERE resource_key = 'acct' AND shard_no = 0`, "I01", "resource_pool_shard acct / 0"},
		"shard too low":       {`UPDATE resource_pool_shard SET used_units = 0 WHERE resource_key = 'leaf' AND shard_no = 0`, "I01", "resource_pool_shard leaf / 0"},
		"shard missing":       {`DELETE FROM resource_pool_shard WHERE resource_key = 'leaf' AND shard_no = 0`, "I01", "resource_pool_shard leaf / 0"},
		"pool over":           {`UPDATE resource_pool_shard SET capacity_units = 0 WHERE resource_key = 'all'`, "I01", "pool all"},
		"tenant queue":        {`UPDATE tenant_runtime SET queued_units = queued_units + 1`, "I02", "tenant_runtime"},
		"tenant row missing":  {`DELETE FROM tenant_runtime`, "I02", "tenant_runtime"},
		"tenant in lane":      {`UPDATE tenant_lane_runtime SET running_units = 0`, "I02", "tenant_lane_runtime"},
		"user":                {`UPDATE user_runtime SET running_video = running_video + 1`, "I02", "user_runtime"},
		"common account":      {`UPDATE pool_group_account SET common_used = 0`, "I02", "pool_group_account g"},
		"lane account":        {`UPDATE lane_account SET own_used = 7`, "I02", "lane_account PAID_SHARED / g"},
		"tenant over":         {`UPDATE tenant_scheduling_policy SET max_running_tasks = 1`, "I02", "tenant "},
		"user over":           {`UPDATE tenant_scheduling_policy SET user_max_running_video = 1`, "I02", "user "},
		"lane over":           {`UPDATE resource_reservation SET account = 'OWN'; UPDATE lane_account SET own_used = 3, common_used = 0, reserved_units = 2; UPDATE pool_group_account SET common_used = 0`, "I02", "lane PAID_SHARED in g"},
		"common over":         {`UPDATE pool_group_account SET common_units = 2`, "I02", "pool group g"},
		"two live attempts":   {`DROP INDEX task_attempt_one_live_idx; INSERT INTO task_attempt (attempt_id, task_id, attempt_no, provider, provider_account, resource_key, provider_request_key, callback_token, state, fencing_token, lane, policy_version, deadline_at) SELECT gen_random_uuid(), task_id, 2, provider, '', resource_key, 'k', '', 'CREATED', fencing_token + 100, lane, 1, now() FROM task_attempt LIMIT 1`, "I03", "task "},
		"token not rising":    {`INSERT INTO task_attempt (attempt_id, task_id, attempt_no, provider, provider_account, resource_key, provider_request_key, callback_token, state, fencing_token, lane, policy_version, deadline_at) SELECT gen_random_uuid(), task_id, 2, provider, '', resource_key, 'k', '', 'FAILED', fencing_token, lane, 1, now() FROM task_attempt LIMIT 1`, "I03", "task "},
		"ended and holding":   {`UPDATE task_attempt SET state = 'FAILED' WHERE state = 'ACCEPTED'`, "I05", "attempt "},
		"live without units":  {`UPDATE resource_reservation SET state = 'RELEASED', released_at = now()`, "I05", "attempt "},
		"part of the units":   {`UPDATE generation_task SET provider_slot_units = 9 WHERE state = 'RUNNING'`, "I05", "attempt "},
		"group counts less":   {`UPDATE resource_reservation SET group_units = ARRAY[1, 0]`, "I05", "reservation "},
		"other token":         {`UPDATE resource_reservation SET fencing_token = 1000000`, "I05", "reservation "},
		"lent too much":       {`INSERT INTO lane_account (lane, pool_group, reserved_units, policy_version) VALUES ('LENDER', 'g', 9, 1); UPDATE resource_reservation SET account = 'BORROWED', lender_lane = 'LENDER'; UPDATE lane_account SET lent_units = 3 WHERE lane = 'LENDER'; UPDATE lane_account SET common_used = 0, borrowed_used = 3 WHERE lane = 'PAID_SHARED'; UPDATE pool_group_account SET common_used = 0`, "I06", "lane LENDER in g"},
		"borrowed too much":   {planted + `UPDATE lane_account SET lendable_units = 9 WHERE lane = 'LENDER'`, "I02", "lane PAID_SHARED in g"},
		"headroom lent":       {planted + `UPDATE lane_account SET lendable_units = 9, headroom_units = 7 WHERE lane = 'LENDER'; UPDATE lane_account SET borrow_limit = 9`, "I06", "lane LENDER in g"},
		"borrowed miscounted": {planted + `UPDATE lane_account SET borrowed_used = 2, borrow_limit = 9 WHERE lane = 'PAID_SHARED'`, "I02", "lane_account PAID_SHARED / g"},
		"lent miscounted":     {planted + `UPDATE lane_account SET lent_units = 4, lendable_units = 9 WHERE lane = 'LENDER'; UPDATE lane_account SET borrow_limit = 9`, "I02", "lane_account LENDER / g"},
		"two accounts":        {`ALTER TABLE resource_reservation DROP CONSTRAINT resource_reservation_attempt_id_resource_key_shard_no_key; INSERT INTO resource_reservation SELECT (jsonb_populate_record(r, jsonb_build_object('reservation_id', gen_random_uuid(), 'account', 'OWN'))).* FROM resource_reservation r LIMIT 1`, "I05", "attempt "},
		"unaudited version":   {`INSERT INTO policy_version (version, base_version, schema, document, digest, reason, actor_name) VALUES (1, 0, 1, '{}', sha256('{}'), 'why', 'x'); UPDATE policy_head SET version = 1`, "I07", "policy version 1"},
		"audit record rewritten": {`INSERT INTO audit_event (sequence, at, actor_name, action, object_kind, object_id, result, record, hash)
			VALUES (1, now(), 'x', 'a', 'k', 'o', 'OK', '{"n":1}', sha256(decode(repeat('00', 32), 'hex') || '{"n":1}'::bytea)); UPDATE audit_head SET sequence = 1, hash = (SELECT hash FROM audit_event); ` +
			noTriggers + `UPDATE audit_event SET record = '{"n":2}'`, "I07", "audit record 1"},
		"audit head behind": {`INSERT INTO audit_event (sequence, at, actor_name, action, object_kind, object_id, result, record, hash)
			VALUES (1, now(), 'x', 'a', 'k', 'o', 'OK', '{}', sha256(decode(repeat('00', 32), 'hex') || '{}'::bytea))`, "I07", "audit head"},
		"version gap":       {`INSERT INTO policy_version (version, base_version, schema, document, digest, reason, actor_name) VALUES (2, 1, 1, '{}', sha256('{}'), 'why', 'x')`, "I08", "policy version 2"},
		"policy head":       {`UPDATE policy_head SET version = 4`, "I08", "policy head"},
		"unknown, released": {`UPDATE task_attempt SET state = 'UNKNOWN'; UPDATE resource_reservation SET state = 'RELEASED', released_at = now()`, "I09", "attempt "},
		"ended with live":   {`UPDATE generation_task SET state = 'FAILED', finished_at = now() WHERE state = 'RUNNING'`, "I10", "task "},
		"ended without end": {`UPDATE generation_task SET state = 'SUCCEEDED' WHERE state = 'RUNNING'`, "I10", "task "},
		"risen from dead":   {`INSERT INTO task_event (event_id, task_id, type, from_state, to_state) SELECT gen_random_uuid(), task_id, 'x', 'FAILED', 'QUEUED' FROM generation_task LIMIT 1`, "I10", "task "},
		"running alone":     {`UPDATE generation_task SET current_attempt_id = NULL WHERE state = 'RUNNING'`, "I11", "task "},
		"queued with live":  {`UPDATE generation_task SET state = 'QUEUED' WHERE state = 'RUNNING'`, "I11", "task "},
		"never settled":     {`INSERT INTO task_attempt (attempt_id, task_id, attempt_no, provider, provider_account, resource_key, provider_request_key, callback_token, state, fencing_token, lane, policy_version, deadline_at) SELECT gen_random_uuid(), task_id, 2, provider, '', resource_key, 'k', '', 'FAILED', fencing_token + 100, lane, 1, now() FROM task_attempt LIMIT 1`, "I05", "attempt "},
		"settled alive":     {`UPDATE task_attempt SET settled_units = 5`, "I09", "attempt "},
		"owes too much":     {`INSERT INTO lane_debt_limit VALUES ('PAID_SHARED', 1000, 1000, 1); UPDATE tenant_lane_runtime SET debt_milli = -2001`, "I02", "tenant "},
		"out of tries":      {`UPDATE generation_task SET attempts_made = max_attempts WHERE state = 'QUEUED'`, "I11", "task "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, tenant, user := small(t, caps{})
			w.ran(t, tenant, user, 3)
			w.queue(t, job{tenant: tenant, user: user})
			w.clean(t)
			w.exec(t, `DO $do$ BEGIN `+strings.ReplaceAll(c.sql, "SET session_replication_role = replica;", "PERFORM set_config('session_replication_role', 'replica', true);")+`; END $do$`)
			found, err := facts.NewCheck(w.db).Run(w.ctx)
			w.must(err)
			if !slices.ContainsFunc(found, func(f facts.Finding) bool {
				return f.Invariant == c.invariant && strings.HasPrefix(f.Object, c.object) && f.Detail != ""
			}) {
				t.Errorf("not found: %+v", found)
			}
		})
	}
}

func TestCheckNamesEveryInvariant(t *testing.T) {
	t.Parallel()
	shown := 0
	for i, v := range facts.Invariants {
		if want := []string{"I01", "I02", "I03", "I04", "I05", "I06", "I07", "I08", "I09", "I10", "I11", "I12", "I13"}[i]; v.Number != want || v.Says == "" {
			t.Errorf("%d: %+v", i, v)
		}
		if v.Shown {
			shown++
		}
	}
	if len(facts.Invariants) != 13 || shown != 10 {
		t.Errorf("%d invariants, %d shown", len(facts.Invariants), shown)
	}
}

func TestTrap_D19_DriftIsRecordedAndRepairedBothWays(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	w.ran(t, tenant, user, 5)
	w.queue(t, job{tenant: tenant, user: user}, job{tenant: tenant, user: user})
	truth := w.everything(t)
	w.exec(t, `UPDATE resource_pool_shard SET used_units = used_units + CASE resource_key WHEN 'leaf' THEN 3 ELSE -3 END WHERE resource_key IN ('leaf', 'acct') AND shard_no = 0`)
	w.exec(t, `UPDATE tenant_runtime SET queued_tasks = 9, running_units = 0`)
	w.exec(t, `UPDATE tenant_lane_runtime SET queued_units = 0`)
	w.exec(t, `DELETE FROM user_runtime`)
	w.exec(t, `UPDATE lane_account SET own_used = 4, common_used = 4`)
	w.exec(t, `UPDATE pool_group_account SET common_used = 6`)
	rebuild := facts.NewRebuild(w.db)
	// Without its record there is no repair (D60).
	broken := w.everything(t)
	w.exec(t, `ALTER TABLE audit_event ADD CONSTRAINT full_disk CHECK (sequence < 0)`)
	if _, err := rebuild.RebuildCounters(w.ctx, control.System); err == nil {
		t.Error("no error although nothing could be recorded")
	}
	if w.everything(t) != broken {
		t.Error("repaired without a record")
	}
	w.exec(t, `ALTER TABLE audit_event DROP CONSTRAINT full_disk`)
	found, err := rebuild.RebuildCounters(w.ctx, control.System)
	w.must(err)
	if recorded := w.number(t, `SELECT count(*) FROM audit_event WHERE action = 'counters.rebuilt' AND actor_name = 'system'`); len(found) != int(recorded) || len(found) != 11 {
		t.Errorf("found %d, recorded %d: %v", len(found), recorded, found)
	}
	if n := w.number(t, `SELECT count(*) FROM audit_event WHERE object_id = 'resource_pool_shard leaf / 0' AND record::jsonb ->> 'old' = '8' AND record::jsonb ->> 'new' = '5'`); n != 1 {
		t.Error("no record says that 8 became 5 in the leaf")
	}
	for _, want := range []facts.Drift{
		{Table: "resource_pool_shard", Object: "leaf / 0", Counter: "used_units", From: 8, To: 5},
		{Table: "resource_pool_shard", Object: "acct / 0", Counter: "used_units", From: 2, To: 5},
		{Table: "pool_group_account", Object: "g", Counter: "common_used", From: 6, To: 5},
		{Table: "lane_account", Object: "PAID_SHARED / g", Counter: "own_used", From: 4, To: 0},
		{Table: "tenant_runtime", Object: tenant.String(), Counter: "queued_tasks", From: 9, To: 2},
	} {
		if !slices.Contains(found, want) {
			t.Errorf("not among them: %v", want)
		}
	}
	w.clean(t)
	if n := w.number(t, `SELECT count(*) FROM user_runtime WHERE queued_tasks = 2 AND running_tasks = 5 AND running_video = 5`); n != 1 {
		t.Error("the missing row was not made")
	}
	again, err := rebuild.RebuildCounters(w.ctx, control.System)
	w.must(err)
	if len(again) != 0 {
		t.Errorf("again: %v", again)
	}
	if got, _, _ := strings.Cut(w.everything(t), "user_runtime"); got != truth[:len(got)] {
		t.Error("the repaired counters are not those from before")
	}
}
