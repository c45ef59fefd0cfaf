package facts_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/plan"
	waiting "fairlane/control/queue"
	"fairlane/store/facts"
)

func TestBacklogPagesThroughAllThatWaitsInAGroup(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	w.group(t, "h", 10, 10)
	var want []uuid.UUID
	for range 25 {
		want = append(want, w.queue(t, job{tenant: tenant, user: user, slots: 2, kind: control.KindImage, delay: time.Minute})...)
		w.queue(t, job{tenant: tenant, user: user, group: "h"})
	}
	w.cancel(t, tenant, want[7])
	want = slices.Delete(want, 7, 8)
	var got []uuid.UUID
	var after uuid.UUID
	var last waiting.Item
	for {
		page, err := facts.NewBacklogs(w.db).Backlog(w.ctx, "g", after, 10)
		w.must(err)
		for _, it := range page {
			got = append(got, it.TaskID)
			after, last = it.TaskID, it
		}
		if len(page) < 10 {
			break
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if last.Check() != nil || last.P95 != 2*time.Minute || last.CostMilli != 2000 || last.SlotUnits != 2 || last.Route != "route" || last.Lane != "PAID_SHARED" ||
		last.Band != 2 || last.Kind != control.KindImage || last.TenantID != tenant || last.UserID != user || last.EligibleAt.Sub(last.QueuedSince).Round(time.Second) != time.Minute {
		t.Errorf("item: %+v", last)
	}
	for _, limit := range []int{0, -1, facts.MaxBacklogPage + 1} {
		if _, err := facts.NewBacklogs(w.db).Backlog(w.ctx, "g", uuid.Nil, limit); control.CodeOf(err) != control.CodeInvalid {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

func TestQueueEventsTellThePresentStateUntilAcknowledged(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	back, gone := w.ran(t, tenant, user, 1)[0], w.queue(t, job{tenant: tenant, user: user})[0]
	retry := ending(back, control.AttemptFailed)
	retry.Retry = true
	w.end(t, retry)
	w.cancel(t, tenant, gone)
	w.exec(t, `INSERT INTO outbox_event (event_id, topic, group_key, event_type, aggregate_id)
		SELECT gen_random_uuid(), 'queue', g, 'TaskQueued', $1 FROM unnest(ARRAY['g', 'h']) g`, back.TaskID) // a second one for the same task, and one of another group
	leases := facts.NewLeases(w.db)
	term, held, err := leases.Acquire(w.ctx, "scheduler:g", "me", time.Minute)
	w.must(err)
	if !held {
		t.Fatal("the lease is free and was not given")
	}
	b := facts.NewBacklogs(w.db)
	for name, take := range map[string]func() error{
		"older term": func() error { _, err := b.QueueEvents(w.ctx, "g", "scheduler:g", term-1, nil, 10); return err },
		"later term": func() error { _, err := b.QueueEvents(w.ctx, "g", "scheduler:g", term+1, nil, 10); return err },
		"no lease":   func() error { _, err := b.QueueEvents(w.ctx, "g", "scheduler:h", term, nil, 10); return err },
	} {
		if err := take(); control.CodeOf(err) != control.CodeFenced {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 2 { // told again until it is acknowledged
		got, err := b.QueueEvents(w.ctx, "g", "scheduler:g", term, nil, 10)
		w.must(err)
		if len(got.Waits) != 1 || got.Waits[0].TaskID != back.TaskID || got.Waits[0].Version != w.number(t, `SELECT version FROM generation_task WHERE task_id = $1`, back.TaskID) {
			t.Errorf("waits: %+v", got.Waits)
		}
		if d := cmp.Diff([]waiting.Gone{{TaskID: gone, Version: 1, Lane: "PAID_SHARED", TenantID: tenant}}, got.Gone); d != "" {
			t.Error(d)
		}
	}
	got, err := b.QueueEvents(w.ctx, "g", "scheduler:g", term, nil, 10)
	w.must(err)
	if _, err := b.QueueEvents(w.ctx, "g", "scheduler:g", term-1, got.IDs, 10); control.CodeOf(err) != control.CodeFenced {
		t.Errorf("an old term acknowledges: %v", err)
	}
	left, err := b.QueueEvents(w.ctx, "g", "scheduler:g", term, got.IDs, 10)
	w.must(err)
	if len(got.IDs) < 4 || len(left.IDs)+len(left.Waits)+len(left.Gone) != 0 {
		t.Errorf("%d events, then %+v", len(got.IDs), left)
	}
	if n := w.number(t, `SELECT count(*) FROM outbox_event WHERE topic = 'queue'`); n != 1 {
		t.Errorf("%d events left, want that of the other group", n)
	}
	w.must(leases.Release(w.ctx, "scheduler:g", "me", term))
	if _, err := b.QueueEvents(w.ctx, "g", "scheduler:g", term, nil, 10); control.CodeOf(err) != control.CodeFenced {
		t.Errorf("after the release: %v", err)
	}
}

// An event whose task is not there names nothing and can be acknowledged all the same.
func TestQueueEventOfAnUnknownTaskHoldsNothingUp(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	task := w.queue(t, job{tenant: tenant, user: user})[0]
	w.exec(t, `INSERT INTO outbox_event (event_id, topic, group_key, event_type, aggregate_id) SELECT gen_random_uuid(), 'queue', 'g', 'TaskQueued', gen_random_uuid()`)
	leases := facts.NewLeases(w.db)
	term, _, err := leases.Acquire(w.ctx, "scheduler:g", "me", time.Minute)
	w.must(err)
	got, err := facts.NewBacklogs(w.db).QueueEvents(w.ctx, "g", "scheduler:g", term, nil, 10)
	w.must(err)
	if len(got.IDs) != 1 || len(got.Waits)+len(got.Gone) != 0 {
		t.Errorf("%+v", got)
	}
	looked, err := facts.NewBacklogs(w.db).Look(w.ctx, "g", []uuid.UUID{task, uuid.New()})
	w.must(err)
	if len(looked) != 1 || looked[0].TaskID != task || looked[0].Check() != nil {
		t.Errorf("looked at %+v", looked)
	}
	if other, err := facts.NewBacklogs(w.db).Look(w.ctx, "h", []uuid.UUID{task}); err != nil || len(other) != 0 {
		t.Errorf("in another group: %+v, %v", other, err)
	}
}

func TestSnapshotReadsTheCountersThatClaimsMove(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	w.exec(t, `UPDATE resource_pool SET adaptive_limit = 40 WHERE resource_key = 'acct'`)
	ids := w.queue(t, job{tenant: tenant, user: user, slots: 3}, job{tenant: tenant, user: user, kind: control.KindImage})
	starts := w.starts(t, ids, "leaf", inGroups, control.AccountCommon)
	starts[1].Account = control.AccountOwn
	w.claim(t, starts...)
	idle := w.tenant(t, "PAID_SHARED", caps{})
	got, err := facts.NewSnapshots(w.db).Snapshot(w.ctx, "g", []uuid.UUID{tenant, idle, uuid.New()}, []plan.TenantUser{{Tenant: tenant, User: user}, {Tenant: tenant, User: uuid.New()}})
	w.must(err)
	if d := time.Since(got.At); d < -time.Minute || d > time.Minute {
		t.Errorf("read at %v", got.At)
	}
	got.At = time.Time{}
	want := plan.Snapshot{
		Lanes:   map[plan.LaneGroup]plan.LaneUse{{Lane: "PAID_SHARED", Group: "g"}: {Own: 1, Common: 3}},
		Common:  map[string]int64{"g": 3},
		Pools:   map[string]plan.PoolUse{"leaf": {Used: 4, Limit: -1}, "acct": {Used: 4, Limit: 40}, "all": {Used: 4, Limit: -1}},
		Tenants: map[uuid.UUID]plan.TenantUse{tenant: {Use: plan.Use{Tasks: 2, Units: 4}}, idle: {}},
		InLane:  map[plan.TenantLane]plan.Use{{Tenant: tenant, Lane: "PAID_SHARED"}: {Tasks: 2, Units: 4}},
		Users:   map[plan.TenantUser]plan.UserUse{{Tenant: tenant, User: user}: {Tasks: 2, Image: 1, Video: 1}},
		Debts:   map[plan.TenantLane]int64{{Tenant: tenant, Lane: "PAID_SHARED"}: 0},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
