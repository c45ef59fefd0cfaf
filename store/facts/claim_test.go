package facts_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/dispatch"
	"fairlane/control/schedule"
	"fairlane/store/facts"
)

// small is a world with one tenant, one user, one lane with 20 own and 80 common units, and one leaf of
// 100 units inside two cap groups.
func small(t *testing.T, c caps) (*world, uuid.UUID, uuid.UUID) {
	t.Helper()
	w := newWorld(t)
	w.group(t, "g", 100, 80)
	w.lane(t, "PAID_SHARED", "g", 20)
	w.pool(t, "all", "", nil, 100)
	w.pool(t, "acct", "", []string{"all"}, 50, 50)
	w.pool(t, "leaf", "g", []string{"acct"}, 50, 50)
	tenant := w.tenant(t, "PAID_SHARED", c)
	return w, tenant, w.user(t, tenant)
}

var inGroups = []string{"acct", "all"}

func TestClaimWritesAllThatAnAttemptNeeds(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	ids := w.queue(t, job{tenant: tenant, user: user, slots: 3}, job{tenant: tenant, user: user, kind: control.KindImage})
	starts := w.starts(t, ids, "leaf", inGroups, control.AccountCommon)
	starts[1].Account = control.AccountOwn
	before := time.Now()
	got := w.claim(t, starts...)
	for i, c := range got {
		if c.Refused != "" || c.TaskID != ids[i] || c.AttemptID == uuid.Nil {
			t.Fatalf("start %d: %+v", i, c)
		}
	}
	rows, err := w.sql.Query(w.ctx, `
		SELECT a.attempt_no, a.state, a.fencing_token, a.provider_request_key, length(a.callback_token), a.resource_key, a.lane, t.state, t.version,
		       t.current_attempt_id, t.selected_provider, r.account, r.reserved_units, r.group_keys, r.group_units, extract(epoch FROM r.lease_until - r.created_at)::int
		FROM task_attempt a JOIN generation_task t USING (task_id) JOIN resource_reservation r USING (attempt_id) ORDER BY r.reserved_units DESC`)
	w.must(err)
	type row struct {
		No       int
		State    string
		Token    int64
		Key      string
		Callback int
		Pool     string
		Lane     string
		Task     string
		Version  int64
		Current  uuid.UUID
		Provider string
		Account  string
		Units    int64
		Groups   []string
		Parts    []int64
		Lease    int
	}
	wrote, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	w.must(err)
	want := []row{
		{1, "CREATED", got[0].FencingToken, got[0].AttemptID.String(), 32, "leaf", "PAID_SHARED", "DISPATCHING", 1, got[0].AttemptID, "prov", "COMMON", 3, inGroups, []int64{3, 3}, 60},
		{1, "CREATED", got[1].FencingToken, got[1].AttemptID.String(), 32, "leaf", "PAID_SHARED", "DISPATCHING", 1, got[1].AttemptID, "prov", "OWN", 1, inGroups, []int64{1, 1}, 60},
	}
	if d := cmp.Diff(want, wrote); d != "" {
		t.Error(d)
	}
	if n := w.number(t, `SELECT count(*) FROM task_attempt WHERE deadline_at BETWEEN $1::timestamptz + interval '9 minutes' AND $1::timestamptz + interval '11 minutes'`, before); n != 2 {
		t.Errorf("%d attempts have their deadline about 10 minutes away", n)
	}
	if got := w.text(t, `SELECT concat_ws(' ', queued_tasks, queued_units, running_tasks, running_units, served_milli) FROM tenant_lane_runtime`); got != "0 0 2 4 4000" {
		t.Errorf("tenant in lane: %s", got)
	}
	if got := w.text(t, `SELECT concat_ws(' ', queued_tasks, running_tasks, running_image, running_video) FROM user_runtime`); got != "0 2 1 1" {
		t.Errorf("user: %s", got)
	}
	if got := w.text(t, `SELECT concat_ws(' ', own_used, a.common_used, g.common_used) FROM lane_account a JOIN pool_group_account g USING (pool_group)`); got != "1 3 3" {
		t.Errorf("accounts: %s", got)
	}
	var message control.DispatchMessage
	raw := w.text(t, `SELECT payload::text FROM outbox_event WHERE topic = $1 AND group_key = 'PAID_SHARED' AND aggregate_id = $2`, control.TopicDispatch, ids[0])
	w.must(json.Unmarshal([]byte(raw), &message))
	if message.AttemptID != got[0].AttemptID || message.FencingToken != got[0].FencingToken || message.AggregateVersion != 1 || message.TenantID != tenant {
		t.Errorf("message: %+v", message)
	}
	if n := w.number(t, `SELECT count(*) FROM task_event WHERE type = $1 AND from_state = 'QUEUED' AND to_state = 'DISPATCHING'`, control.EventTaskClaimed); n != 2 {
		t.Errorf("%d events", n)
	}
	w.clean(t)
}

func TestClaimRefusesOnlyWhomItConcerns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits caps
		job    job
		setup  func(*testing.T, *world, uuid.UUID)                       // before the claim
		start  func(*testing.T, *world, *schedule.ClaimStart, uuid.UUID) // bends the middle start
		want   schedule.Refusal
		pool   string
		others schedule.Refusal // of the starts around it
	}{
		"stale version":        {start: func(_ *testing.T, _ *world, s *schedule.ClaimStart, _ uuid.UUID) { s.TaskVersion-- }, want: schedule.RefusedTask},
		"no such task":         {start: func(_ *testing.T, _ *world, s *schedule.ClaimStart, _ uuid.UUID) { s.TaskID = uuid.New() }, want: schedule.RefusedTask},
		"other size":           {start: func(_ *testing.T, _ *world, s *schedule.ClaimStart, _ uuid.UUID) { s.SlotUnits = 2 }, want: schedule.RefusedTask},
		"other lane":           {start: func(_ *testing.T, _ *world, s *schedule.ClaimStart, _ uuid.UUID) { s.Lane = "STANDARD" }, want: schedule.RefusedTask},
		"not eligible":         {job: job{delay: time.Hour}, want: schedule.RefusedTask},
		"deadline passed":      {job: job{deadline: -time.Second}, want: schedule.RefusedTask},
		"tries used up":        {setup: sqlSetup(`UPDATE generation_task SET attempts_made = max_attempts WHERE queue_class = 'OTHER'`), job: job{lane: "OTHER"}, want: schedule.RefusedTask},
		"tenant tasks":         {limits: caps{tasks: 2}, job: job{}, start: otherTenant(caps{tasks: 1, units: 9}, 1), want: schedule.RefusedTenant},
		"tenant units":         {job: job{slots: 5}, start: otherTenant(caps{units: 4}, 0), want: schedule.RefusedTenant},
		"tenant suspended":     {start: otherTenantSQL(`UPDATE tenant SET status = 'SUSPENDED' WHERE tenant_id = $1`), want: schedule.RefusedTenant},
		"user tasks":           {start: otherTenant(caps{userTasks: 1}, 1), want: schedule.RefusedUser},
		"user videos":          {start: otherTenant(caps{userVideo: 1, userImage: 9}, 1), want: schedule.RefusedUser},
		"user images":          {job: job{kind: control.KindImage}, start: otherTenant(caps{userImage: 1, userVideo: 9}, 1), want: schedule.RefusedUser},
		"lane paused":          {setup: sqlSetup(`UPDATE lane_account SET paused = true WHERE lane = 'OTHER'`), job: job{lane: "OTHER"}, want: schedule.RefusedLane},
		"lane unknown":         {setup: sqlSetup(`DELETE FROM lane_account WHERE lane = 'OTHER'`), job: job{lane: "OTHER"}, want: schedule.RefusedLane},
		"own units":            {job: job{lane: "OTHER", slots: 6}, start: inAccount(control.AccountOwn), want: schedule.RefusedAccount},
		"own units lent":       {setup: sqlSetup(`UPDATE lane_account SET lendable_units = 5, lent_units = 5 WHERE lane = 'OTHER'`), job: job{lane: "OTHER"}, start: inAccount(control.AccountOwn), want: schedule.RefusedAccount},
		"common units":         {job: job{slots: 80}, want: schedule.RefusedAccount},
		"borrowed, nobody":     {job: job{lane: "OTHER"}, start: borrowing("NOBODY"), want: schedule.RefusedAccount},
		"borrowed, no limit":   {setup: sqlSetup(lendAll), job: job{lane: "OTHER"}, start: borrowing("PAID_SHARED"), want: schedule.RefusedAccount},
		"borrowed at limit":    {setup: sqlSetup(lendAll + `; UPDATE lane_account SET borrow_limit = 1 WHERE lane = 'OTHER'`), job: job{lane: "OTHER", slots: 2}, start: borrowing("PAID_SHARED"), want: schedule.RefusedAccount},
		"borrowed, others may": {setup: sqlSetup(lendAll + `; UPDATE lane_account SET borrow_limit = 9; UPDATE lane_account SET lends_to = '{STANDARD}'`), job: job{lane: "OTHER"}, start: borrowing("PAID_SHARED"), want: schedule.RefusedAccount},
		"borrowed, stopped":    {setup: sqlSetup(lendAll + `; UPDATE lane_account SET borrow_limit = 9, lending_stopped = true`), job: job{lane: "OTHER"}, start: borrowing("PAID_SHARED"), want: schedule.RefusedAccount},
		"borrowed, lendable":   {setup: sqlSetup(lendAll + `; UPDATE lane_account SET borrow_limit = 9; UPDATE lane_account SET lendable_units = 1`), job: job{lane: "OTHER", slots: 2}, start: borrowing("PAID_SHARED"), want: schedule.RefusedAccount},
		"borrowed headroom":    {setup: sqlSetup(lendAll + `; UPDATE lane_account SET borrow_limit = 9; UPDATE lane_account SET headroom_units = 19`), job: job{lane: "OTHER", slots: 2}, start: borrowing("PAID_SHARED"), want: schedule.RefusedAccount},
		"borrowed elsewhere":   {setup: sqlSetup(lendAll + `; UPDATE lane_account SET borrow_limit = 9; INSERT INTO pool_group_account (pool_group, capacity_units, common_units, policy_version) VALUES ('h', 20, 0, 1); UPDATE lane_account SET pool_group = 'h' WHERE lane = 'PAID_SHARED'`), job: job{lane: "OTHER"}, start: borrowing("PAID_SHARED"), want: schedule.RefusedAccount, others: schedule.RefusedLane},
		"breaker open":         {setup: sqlSetup(`UPDATE resource_pool SET breaker_until = clock_timestamp() + interval '1 hour' WHERE resource_key = 'tiny'`), start: inPool("tiny", nil), want: schedule.RefusedPool, pool: "tiny"},
		"breaker above open":   {setup: sqlSetup(`UPDATE resource_pool SET breaker_until = 'infinity' WHERE resource_key = 'narrow'`), start: inPool("capped", []string{"narrow"}), want: schedule.RefusedPool, pool: "narrow"},
		"breaker was open":     {setup: sqlSetup(`UPDATE resource_pool SET breaker_until = clock_timestamp() - interval '1 second' WHERE resource_key = 'tiny'`), start: inPool("tiny", nil)},
		"leaf full":            {start: inPool("tiny", nil), job: job{slots: 2}, want: schedule.RefusedPool, pool: "tiny"},
		"leaf unknown":         {start: inPool("nowhere", nil), want: schedule.RefusedPool, pool: "nowhere"},
		"leaf paused":          {setup: sqlSetup(`UPDATE resource_pool SET status = 'PAUSED' WHERE resource_key = 'tiny'`), start: inPool("tiny", nil), want: schedule.RefusedPool, pool: "tiny"},
		"adaptive limit":       {setup: sqlSetup(`UPDATE resource_pool SET adaptive_limit = 0 WHERE resource_key = 'tiny'`), start: inPool("tiny", nil), want: schedule.RefusedPool, pool: "tiny"},
		"cap group full":       {start: inPool("capped", []string{"narrow"}), job: job{slots: 2}, want: schedule.RefusedPool, pool: "narrow"},
		"cap group hidden":     {start: inPool("capped", nil), want: schedule.RefusedPool, pool: "narrow"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, tenant, user := small(t, c.limits)
			w.lane(t, "OTHER", "g", 5)
			w.pool(t, "tiny", "g", nil, 1)
			w.pool(t, "narrow", "", nil, 1)
			w.pool(t, "capped", "g", []string{"narrow"}, 50)
			middle := c.job
			middle.tenant, middle.user = tenant, user
			ids := w.queue(t, job{tenant: tenant, user: user}, middle, job{tenant: tenant, user: user})
			if c.setup != nil {
				c.setup(t, w, tenant)
			}
			starts := w.starts(t, ids, "leaf", inGroups, control.AccountCommon)
			if c.start != nil {
				c.start(t, w, &starts[1], tenant)
			}
			got := w.claim(t, starts...)
			if got[1].Refused != c.want || got[1].Pool != c.pool || (got[1].AttemptID == uuid.Nil) != (c.want != "") {
				t.Errorf("the middle one: %+v, want %s %s", got[1], c.want, c.pool)
			}
			for _, i := range []int{0, 2} {
				if got[i].Refused != c.others {
					t.Errorf("start %d: %+v, want %q", i, got[i], c.others)
				}
			}
			if s := w.state(t, ids[1]); (s == "QUEUED") != (c.want != "") {
				t.Errorf("the task is %s", s)
			}
			if c.setup == nil || c.pool != "" {
				w.clean(t)
			}
		})
	}
}

func sqlSetup(sql string) func(*testing.T, *world, uuid.UUID) {
	return func(t *testing.T, w *world, _ uuid.UUID) { w.exec(t, sql) }
}

// lendAll lets every lane lend all that it holds to OTHER; nobody may borrow anything yet.
const lendAll = `UPDATE lane_account SET lendable_units = 20, lends_to = '{OTHER}', borrow_timeout = 60`

func borrowing(lender string) func(*testing.T, *world, *schedule.ClaimStart, uuid.UUID) {
	return func(_ *testing.T, _ *world, s *schedule.ClaimStart, _ uuid.UUID) {
		s.Account, s.Lender = control.AccountBorrowed, lender
	}
}

func inAccount(a control.Account) func(*testing.T, *world, *schedule.ClaimStart, uuid.UUID) {
	return func(_ *testing.T, _ *world, s *schedule.ClaimStart, _ uuid.UUID) { s.Account = a }
}

func inPool(pool string, groups []string) func(*testing.T, *world, *schedule.ClaimStart, uuid.UUID) {
	return func(_ *testing.T, _ *world, s *schedule.ClaimStart, _ uuid.UUID) { s.Pool, s.CapGroups = pool, groups }
}

// otherTenant puts the middle start into a tenant of its own with these limits, of which some tasks run already.
func otherTenant(c caps, running int) func(*testing.T, *world, *schedule.ClaimStart, uuid.UUID) {
	return func(t *testing.T, w *world, s *schedule.ClaimStart, _ uuid.UUID) {
		tenant := w.tenant(t, s.Lane, c)
		user := w.user(t, tenant)
		for range running {
			id := w.queue(t, job{tenant: tenant, user: user, kind: s.Kind})
			w.claim(t, w.starts(t, id, "leaf", inGroups, control.AccountCommon)...)
		}
		moveTo(t, w, s, tenant, user)
	}
}

func otherTenantSQL(sql string) func(*testing.T, *world, *schedule.ClaimStart, uuid.UUID) {
	return func(t *testing.T, w *world, s *schedule.ClaimStart, _ uuid.UUID) {
		tenant := w.tenant(t, s.Lane, caps{})
		w.exec(t, sql, tenant)
		moveTo(t, w, s, tenant, w.user(t, tenant))
	}
}

// moveTo takes the start's task out of the queue and asks for one of the other tenant instead.
func moveTo(t *testing.T, w *world, s *schedule.ClaimStart, tenant, user uuid.UUID) {
	t.Helper()
	id := w.queue(t, job{tenant: tenant, user: user, kind: s.Kind, slots: s.SlotUnits})
	*s = w.starts(t, id, s.Pool, s.CapGroups, s.Account)[0]
}

func TestClaimGivesTheLastUnitToTheEarlierStart(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	w.pool(t, "two", "g", nil, 2)
	ids := w.queue(t, job{tenant: tenant, user: user}, job{tenant: tenant, user: user, slots: 2}, job{tenant: tenant, user: user}, job{tenant: tenant, user: user})
	got := w.claim(t, w.starts(t, ids, "two", nil, control.AccountCommon)...)
	want := []schedule.Refusal{"", schedule.RefusedPool, "", schedule.RefusedPool}
	for i := range got {
		if got[i].Refused != want[i] {
			t.Errorf("start %d: %q, want %q", i, got[i].Refused, want[i])
		}
	}
	w.clean(t)
}

func TestClaimSpansShardsOfLeafAndCapGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group(t, "g", 100, 100)
	w.lane(t, "PAID_SHARED", "g", 0)
	w.pool(t, "cap", "", nil, 4, 4, 1)
	w.pool(t, "leaf", "g", []string{"cap"}, 3, 3, 3)
	tenant := w.tenant(t, "PAID_SHARED", caps{})
	user := w.user(t, tenant)
	ids := w.queue(t, job{tenant: tenant, user: user, slots: 2}, job{tenant: tenant, user: user, slots: 2}, job{tenant: tenant, user: user, slots: 5}, job{tenant: tenant, user: user})
	got := w.claim(t, w.starts(t, ids, "leaf", []string{"cap"}, control.AccountCommon)...)
	if got[2].Refused != "" || got[3].Refused != schedule.RefusedPool {
		t.Fatalf("%+v", got)
	}
	if n := w.number(t, `SELECT count(*) FROM resource_reservation WHERE attempt_id = $1`, got[2].AttemptID); n < 2 {
		t.Errorf("the wide one has %d rows", n)
	}
	if s := w.text(t, `SELECT string_agg(used_units::text, ' ' ORDER BY resource_key, shard_no) FROM resource_pool_shard`); s != "4 4 1 3 3 3" {
		t.Errorf("shards: %s", s)
	}
	w.clean(t)
	w.accept(t, got...)
	w.end(t, ending(got[2], control.AttemptFailed))
	w.clean(t)
	if n := w.number(t, `SELECT sum(used_units) FROM resource_pool_shard`); n != 8 {
		t.Errorf("%d units are used after the wide one ended", n)
	}
}

func TestTrap_D06_ClaimRefusesSizesThatWouldGiveCredit(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	ids := w.queue(t, job{tenant: tenant, user: user}, job{tenant: tenant, user: user})
	for name, bend := range map[string]func(*schedule.ClaimStart){
		"no slots":         func(s *schedule.ClaimStart) { s.SlotUnits = 0 },
		"negative slots":   func(s *schedule.ClaimStart) { s.SlotUnits = -5 },
		"no cost":          func(s *schedule.ClaimStart) { s.CostMilli = 0 },
		"negative cost":    func(s *schedule.ClaimStart) { s.CostMilli = -5 },
		"no timeout":       func(s *schedule.ClaimStart) { s.AttemptTimeout = 0 },
		"no pool":          func(s *schedule.ClaimStart) { s.Pool = "" },
		"cap group twice":  func(s *schedule.ClaimStart) { s.CapGroups = []string{"acct", "acct"} },
		"leaf as group":    func(s *schedule.ClaimStart) { s.CapGroups = []string{"leaf"} },
		"task twice":       func(s *schedule.ClaimStart) { s.TaskID = ids[0] },
		"other pool group": func(s *schedule.ClaimStart) { s.Group = "h" },
	} {
		starts := w.starts(t, ids, "leaf", inGroups, control.AccountCommon)
		bend(&starts[1])
		_, err := facts.NewClaims(w.db).Claim(w.ctx, schedule.Claim{PoolGroup: "g", Starts: starts})
		if control.CodeOf(err) != control.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := w.number(t, `SELECT count(*) FROM task_attempt`); n != 0 {
		t.Errorf("%d attempts", n)
	}
	w.clean(t)
}

func TestTrap_D45_NothingEntersAPoolThatWasLoweredBelowItsUse(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	w.pool(t, "ten", "g", nil, 5, 5)
	jobs := make([]job, 10)
	for i := range jobs {
		jobs[i] = job{tenant: tenant, user: user}
	}
	ids := w.queue(t, jobs...)
	running := w.claim(t, w.starts(t, ids[:8], "ten", nil, control.AccountCommon)...)
	w.accept(t, running...)
	// To 5, all in the second shard, where there is room for 2 more: the pool as a whole is over by 3.
	w.exec(t, `UPDATE resource_pool SET capacity_units = 5, policy_version = 2 WHERE resource_key = 'ten'`)
	w.exec(t, `UPDATE resource_pool_shard SET capacity_units = CASE shard_no WHEN 0 THEN 0 ELSE 5 END WHERE resource_key = 'ten'`)
	next := func() schedule.Refusal {
		return w.claim(t, w.starts(t, ids[8:9], "ten", nil, control.AccountCommon)...)[0].Refused
	}
	w.clean(t) // over by 3, and no finding: nothing came in since
	for i := range 4 {
		if got := next(); got != schedule.RefusedPool {
			t.Fatalf("with %d running: %q", 8-i, got)
		}
		w.end(t, ending(running[i], control.AttemptSucceeded))
		w.clean(t)
	}
	if got := next(); got != "" {
		t.Errorf("with 4 of 5 running: %q", got)
	}
	w.clean(t)
}

func TestI03_TokensRiseOverTheAttemptsOfATask(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	ids := w.queue(t, job{tenant: tenant, user: user, maxAttempts: 5})
	last := int64(0)
	for i := range 5 {
		got := w.claim(t, w.starts(t, ids, "leaf", inGroups, control.AccountCommon)...)[0]
		if got.Refused != "" || got.FencingToken <= last {
			t.Fatalf("try %d: %+v after token %d", i, got, last)
		}
		last = got.FencingToken
		e := ending(got, control.AttemptRejected)
		e.Retry = true
		done := w.end(t, e)[0]
		if want := control.TaskQueued; i == 4 {
			want = control.TaskFailed
			if done.TaskState != want {
				t.Errorf("last try: %s", done.TaskState)
			}
		} else if done.TaskState != want {
			t.Errorf("try %d: %s", i, done.TaskState)
		}
		w.clean(t)
	}
}

// A publish that has begun is waited for, so that nothing is claimed under a limit that is no more.
func TestClaimWaitsForAPublishAndSeesItsLimit(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	ids := w.queue(t, job{tenant: tenant, user: user}, job{tenant: tenant, user: user})
	starts := w.starts(t, ids, "leaf", inGroups, control.AccountCommon)
	tx, err := w.sql.Begin(w.ctx)
	w.must(err)
	defer tx.Rollback(w.ctx) //nolint:errcheck // after the commit there is nothing to roll back
	_, err = tx.Exec(w.ctx, `UPDATE tenant_scheduling_policy SET max_running_tasks = 1, policy_version = 2 WHERE tenant_id = $1`, tenant)
	w.must(err)
	done := make(chan []schedule.Claimed, 1)
	go func() {
		out, err := facts.NewClaims(w.db).Claim(w.ctx, schedule.Claim{PoolGroup: "g", PolicyVersion: 1, Starts: starts})
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	w.blocked(t, 1)
	w.must(tx.Commit(w.ctx))
	got := <-done
	if len(got) != 2 || got[0].Refused != "" || got[1].Refused != schedule.RefusedTenant {
		t.Errorf("%+v", got)
	}
	w.clean(t)
}

// Two schedulers with one plan, or one whose answer was lost and that asks again: each task gets one attempt.
func TestTrap_D20_TheSamePlanTwiceStartsNothingTwice(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	jobs := make([]job, 20)
	for i := range jobs {
		jobs[i] = job{tenant: tenant, user: user}
	}
	req := schedule.Claim{PoolGroup: "g", PolicyVersion: 1, Starts: w.starts(t, w.queue(t, jobs...), "leaf", inGroups, control.AccountCommon)}
	answers := make(chan []schedule.Claimed, 4)
	for range cap(answers) {
		go func() {
			out, err := facts.NewClaims(w.db).Claim(w.ctx, req)
			if err != nil {
				t.Error(err)
			}
			answers <- out
		}()
	}
	claimed := 0
	for range cap(answers) {
		for _, c := range <-answers {
			if c.Refused == "" {
				claimed++
			} else if c.Refused != schedule.RefusedTask {
				t.Errorf("%+v", c)
			}
		}
	}
	attempts := w.number(t, `SELECT count(*) FROM task_attempt`)
	if messages := w.number(t, `SELECT count(*) FROM outbox_event WHERE topic = 'dispatch'`); claimed != 20 || attempts != 20 || messages != 20 {
		t.Errorf("%d claimed, %d attempts, %d messages for 20 tasks", claimed, attempts, messages)
	}
	w.clean(t)
}

// Plans that were made when tables were empty must not read them whole when they are full and nobody
// has analysed them: every row is reached by its key.
func TestClaimAndEndReadNoTableWhole(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	one, err := facts.Open(w.ctx, w.url, "one", 1) // one connection, so that its plans are the cached ones
	w.must(err)
	t.Cleanup(one.Close)
	for _, table := range []string{"generation_task", "task_attempt", "resource_reservation", "task_event", "outbox_event", "tenant_runtime", "user_runtime"} {
		w.exec(t, `ALTER TABLE `+table+` SET (autovacuum_enabled = false)`)
	}
	round := func() (scanned int64) {
		ids := w.queue(t, job{tenant: tenant, user: user}, job{tenant: tenant, user: user})
		starts := w.starts(t, ids, "leaf", inGroups, control.AccountCommon)
		w.must(one.Tx(w.ctx, func(tx pgx.Tx) error {
			read := func() (n int64, err error) {
				err = tx.QueryRow(w.ctx, `SELECT coalesce(sum(seq_tup_read), 0)::bigint FROM pg_stat_xact_user_tables`).Scan(&n)
				return n, err
			}
			before, err := read()
			if err != nil {
				return err
			}
			got, err := facts.ClaimIn(w.ctx, tx, schedule.Claim{PoolGroup: "g", PolicyVersion: 1, Starts: starts})
			if err != nil {
				return err
			}
			ended, err := facts.EndIn(w.ctx, tx, []dispatch.Ending{ending(got[0], control.AttemptRejected), ending(got[1], control.AttemptCanceled)})
			if err != nil || !ended[0].Applied || !ended[1].Applied {
				return fmt.Errorf("%+v %w", ended, err)
			}
			after, err := read()
			scanned = after - before
			return err
		}))
		return scanned
	}
	for range 8 { // generic plans take the place of custom ones after five
		round()
	}
	many := make([]job, 5000)
	for i := range many {
		many[i] = job{tenant: tenant, user: user}
	}
	w.queue(t, many...)
	w.exec(t, `INSERT INTO tenant (tenant_id, code, name, plan_code) SELECT gen_random_uuid(), 't' || n, 'x', 'pro' FROM generate_series(1, 5000) n`)
	w.exec(t, `INSERT INTO tenant_runtime (tenant_id) SELECT tenant_id FROM tenant WHERE code LIKE 't%' ON CONFLICT DO NOTHING`)
	if n := round(); n > 100 {
		t.Errorf("%d rows were read by reading tables whole", n)
	}
	w.clean(t)
}
