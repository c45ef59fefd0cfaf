package facts_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/audit"
	"fairlane/control"
	"fairlane/policy"
	"fairlane/store/facts"
)

var ann = control.Actor{ID: uuid.NameSpaceURL, Name: "ann", SourceAddress: "10.0.0.9", RequestID: "req-9"}

// town is a world with a published policy and accounts on its plans.
type town struct {
	*world
	policies  *facts.Policies
	tenants   *facts.Tenants
	audits    *facts.Audits
	publisher *policy.Publisher
	list      []policy.Tenant
}

func newTown(t *testing.T, accounts int) *town {
	t.Helper()
	w := newWorld(t)
	c := &town{world: w, policies: facts.NewPolicies(w.db), tenants: facts.NewTenants(w.db), audits: facts.NewAudits(w.db)}
	c.publisher = policy.NewPublisher(c.policies, c.tenants)
	if _, err := c.publisher.Publish(w.ctx, policy.Publication{Document: townDocument(), Reason: "as shipped", Actor: control.System}); err != nil {
		t.Fatal(err)
	}
	c.list = c.onboard(t, accounts)
	return c
}

func townDocument() *policy.Document {
	d := policy.Default()
	d.Models = []policy.Model{{Code: "m", Kind: "VIDEO", ResourceClass: "STANDARD", Resolutions: []string{"720p"}, Seconds: []int64{5}, SlotUnits: 2,
		MeanSeconds: 30, P95Seconds: 60, Enabled: true}}
	leaf := func(key string, capacity int64) policy.Pool {
		return policy.Pool{Key: key, Kind: policy.PoolProvider, Group: "default", Parents: []string{"acct"}, Provider: "p", Account: "a", Region: "us", Model: "m", CapacityUnits: capacity}
	}
	d.Pools = []policy.Pool{
		{Key: "platform", Kind: policy.PoolCapGroup, CapacityUnits: 100, Parents: []string{}},
		{Key: "acct", Kind: policy.PoolCapGroup, Group: "default", CapacityUnits: 60, Parents: []string{"platform"}},
		leaf("leaf-1", 40), leaf("leaf-2", 10),
	}
	l, _ := d.Lane(control.LanePaid)
	l.Accounts[0].ReservedUnits = 6
	return d
}

func (c *town) onboard(t *testing.T, n int) []policy.Tenant {
	t.Helper()
	plans := []string{"enterprise", "pro", "standard", "free"}
	list := make([]facts.NewTenant, n)
	for i := range list {
		list[i] = facts.NewTenant{Code: fmt.Sprintf("t-%04d", i), Name: fmt.Sprintf("租户 %d", i), Plan: plans[i%4], Users: []facts.NewUser{{ExternalID: "u1"}}}
	}
	out, err := c.tenants.Onboard(c.ctx, list, ann, "first customers")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// publish makes the edits the next version.
func (c *town) publish(t *testing.T, edits ...policy.Edit) policy.Version {
	t.Helper()
	v, err := c.try(c.ctx, edits...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (c *town) try(ctx context.Context, edits ...policy.Edit) (policy.Version, error) {
	head, err := c.policies.Head(ctx)
	if err != nil {
		return policy.Version{}, err
	}
	doc, wrong := policy.Apply(head.Document, edits)
	if err := control.Invalid(wrong); err != nil {
		return policy.Version{}, err
	}
	return c.publisher.Publish(ctx, policy.Publication{Base: head.Number, Document: doc, Reason: "test", Actor: ann})
}

func (c *town) verified(t *testing.T) audit.Report {
	t.Helper()
	r, err := audit.Verify(c.ctx, c.audits)
	if err != nil || !r.OK() {
		t.Fatalf("%+v %v", r, err)
	}
	return r
}

func TestPublishWritesWhatClaimsDecideBy(t *testing.T) {
	t.Parallel()
	c := newTown(t, 8)
	for _, q := range []struct{ sql, want string }{
		{`SELECT string_agg(resource_key || ':' || kind || ':' || pool_group || ':' || array_to_string(parents, '+') || ':' || capacity_units || ':' || status, ' ' ORDER BY resource_key) FROM resource_pool`,
			"acct:CAP_GROUP:default:platform:60:ACTIVE leaf-1:PROVIDER:default:acct+platform:40:ACTIVE leaf-2:PROVIDER:default:acct+platform:10:ACTIVE platform:CAP_GROUP:::100:ACTIVE"},
		{`SELECT string_agg(k || '=' || n || '/' || s, ' ' ORDER BY k) FROM (SELECT resource_key k, count(*) n, sum(capacity_units) s FROM resource_pool_shard GROUP BY 1) x`,
			"acct=16/60 leaf-1=16/40 leaf-2=5/10 platform=16/100"},
		{`SELECT string_agg(pool_group || ':' || capacity_units || ':' || common_units, ' ') FROM pool_group_account`, "default:50:44"},
		{`SELECT string_agg(lane || ':' || reserved_units || ':' || paused, ' ' ORDER BY lane) FROM lane_account`,
			"BEST_EFFORT:0:false ENTERPRISE_RESERVED:0:false EXPENSIVE:0:false PAID_SHARED:6:false RECOVERY:0:false STANDARD:0:false"},
		{`SELECT string_agg(code || ':' || service_class || ':' || weight || ':' || max_running_units || ':' || user_max_running_video || ':' || policy_version, ' ' ORDER BY code)
			FROM tenant_scheduling_policy JOIN tenant USING (tenant_id) WHERE code < 't-0004'`,
			"t-0000:ENTERPRISE_RESERVED:4:240:1:1 t-0001:PAID_SHARED:2:240:1:1 t-0002:STANDARD:1:240:1:1 t-0003:BEST_EFFORT:1:240:1:1"},
		{`SELECT (SELECT count(*) FROM tenant_lane_runtime) || ' ' || (SELECT count(*) FROM tenant_runtime) || ' ' || (SELECT count(*) FROM user_runtime)`, "48 8 8"},
	} {
		if got := c.text(t, q.sql); got != q.want {
			t.Errorf("%s:\ngot  %s\nwant %s", q.sql, got, q.want)
		}
	}
	c.publish(t, policy.SetTenant(c.list[1], "weight", "8"), policy.SetTenant(c.list[2], "lane", control.LanePaid), policy.SetLane(control.LaneStandard, "paused", "true"),
		policy.SetPool("leaf-2", "paused", "true"), policy.SetLaneReserved(control.LanePaid, "default", "10"))
	for _, q := range []struct{ sql, want string }{
		{`SELECT string_agg(code || ':' || service_class || ':' || weight, ' ' ORDER BY code) FROM tenant_scheduling_policy JOIN tenant USING (tenant_id) WHERE policy_version = 2`,
			"t-0001:PAID_SHARED:8 t-0002:PAID_SHARED:1"}, // and no other row was touched
		{`SELECT string_agg(lane || ':' || reserved_units || ':' || paused, ' ' ORDER BY lane) FROM lane_account WHERE policy_version = 2`, "PAID_SHARED:10:false STANDARD:0:true"},
		{`SELECT string_agg(resource_key || ':' || status, ' ') FROM resource_pool WHERE policy_version = 2`, "leaf-2:PAUSED"},
		{`SELECT string_agg(pool_group || ':' || common_units, ' ') FROM pool_group_account WHERE policy_version = 2`, "default:40"},
		{`SELECT count(*)::text FROM resource_pool_shard WHERE version > 0`, "0"},
	} {
		if got := c.text(t, q.sql); got != q.want {
			t.Errorf("%s:\ngot  %s\nwant %s", q.sql, got, q.want)
		}
	}
	c.publish(t, policy.SetSwitch("scheduling_running", "off"))
	if n := c.number(t, `SELECT count(*) FROM lane_account WHERE paused`); n != 6 {
		t.Errorf("%d lanes stopped by the switch", n)
	}
	c.verified(t)
}

func TestI08_OfFiftyPublishesFromOneBaseOneWins(t *testing.T) {
	t.Parallel()
	c := newTown(t, 8)
	for round := range int64(3) {
		head, err := c.policies.Head(c.ctx)
		c.must(err)
		var won, lost atomic.Int64
		var wg sync.WaitGroup
		for i := range 50 {
			doc, wrong := policy.Apply(head.Document, []policy.Edit{policy.SetTenant(c.list[1], "weight", strconv.FormatInt(100*round+int64(i)+10, 10))})
			if len(wrong) > 0 {
				t.Fatal(wrong)
			}
			wg.Go(func() {
				_, err := c.publisher.Publish(c.ctx, policy.Publication{Base: head.Number, Document: doc, Reason: "race", Actor: ann})
				if current, moved := policy.Moved(err); moved && current == head.Number+1 {
					lost.Add(1)
				} else if err == nil {
					won.Add(1)
				} else {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || lost.Load() != 49 {
			t.Fatalf("%d won, %d lost", won.Load(), lost.Load())
		}
	}
	if got := c.text(t, `SELECT string_agg(version || '<' || base_version, ' ' ORDER BY version) FROM policy_version`); got != "1<0 2<1 3<2 4<3" {
		t.Errorf("versions %s", got)
	}
	c.verified(t)
}

func TestI07_EveryVersionHasItsRecord(t *testing.T) {
	t.Parallel()
	c := newTown(t, 4)
	v := c.publish(t, policy.SetTenant(c.list[0], "weight", "9"), policy.SetLane(control.LanePaid, "weight", "5"))
	if n := c.number(t, `SELECT count(*) FROM policy_version v FULL JOIN (SELECT * FROM audit_event WHERE action = 'policy.publish') a ON a.policy_version = v.version
		WHERE v.version IS NULL OR a.sequence IS NULL`); n != 0 {
		t.Errorf("%d versions and records without each other", n)
	}
	rows, err := c.audits.List(c.ctx, audit.Filter{Version: v.Number}, 0, 10)
	c.must(err)
	if len(rows) != 1 {
		t.Fatalf("%d records", len(rows))
	}
	e := rows[0]
	if e.Actor != ann || e.Reason != "test" || e.Result != audit.OK || e.ObjectID != "2" || e.PolicyVersion != 2 {
		t.Errorf("%+v", e)
	}
	want := `"new":{"lanes[PAID_SHARED].weight":5,"tenants[t-0000].weight":9},`
	if !strings.Contains(e.Record, want) || !strings.Contains(e.Record, `"old":{"lanes[PAID_SHARED].weight":4,"tenants[t-0000].weight":4}`) {
		t.Errorf("record %s", e.Record)
	}
}

func TestTrap_D60_NoChangeWithoutItsRecord(t *testing.T) {
	t.Parallel()
	c := newTown(t, 4)
	before := c.everything(t)
	c.exec(t, `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'disk full' USING ERRCODE = 'disk_full'; END $$`)
	c.exec(t, `CREATE TRIGGER full_disk BEFORE INSERT ON audit_event FOR EACH ROW EXECUTE FUNCTION full_disk()`)
	if _, err := c.try(c.ctx, policy.SetTenant(c.list[0], "weight", "9"), policy.SetPool("leaf-1", "capacity_units", "20"), policy.SetLane(control.LanePaid, "paused", "on")); err == nil {
		t.Error("published")
	}
	if _, err := c.tenants.Onboard(c.ctx, []facts.NewTenant{{Code: "late", Name: "Late", Plan: "pro", Users: []facts.NewUser{{ExternalID: "x"}}}}, ann, ""); err == nil {
		t.Error("onboarded")
	}
	if after := c.everything(t); after != before {
		t.Errorf("something is left:\n%s\n%s", before, after)
	}
	c.exec(t, `DROP TRIGGER full_disk ON audit_event`)
	c.publish(t, policy.SetTenant(c.list[0], "weight", "9"))
	c.verified(t)
}

// everything is a digest of all rows that publishing and onboarding write.
func (c *town) everything(t *testing.T) string {
	t.Helper()
	out := ""
	for _, table := range []string{"policy_head", "policy_version", "tenant", "tenant_user", "tenant_scheduling_policy", "tenant_runtime", "tenant_lane_runtime",
		"user_runtime", "resource_pool", "resource_pool_shard", "pool_group_account", "lane_account", "audit_head", "audit_event"} {
		out += table + " " + c.text(t, `SELECT count(*) || ' ' || coalesce(md5(string_agg(x::text, '' ORDER BY x::text)), '') FROM `+table+` x`) + "\n"
	}
	return out
}

func TestHistoryCannotBeRewritten(t *testing.T) {
	t.Parallel()
	c := newTown(t, 1)
	for _, sql := range []string{
		`UPDATE policy_version SET reason = 'other'`, `DELETE FROM policy_version`, `TRUNCATE policy_version CASCADE`,
		`UPDATE audit_event SET reason = 'other'`, `DELETE FROM audit_event WHERE sequence = 1`, `TRUNCATE audit_event`,
		`INSERT INTO policy_version SELECT 9, 7, schema, document, digest, reason, actor_id, actor_name, restored_from, created_at FROM policy_version LIMIT 1`,
		`INSERT INTO policy_version SELECT 2, 1, schema, '{}', digest, reason, actor_id, actor_name, restored_from, created_at FROM policy_version LIMIT 1`,
	} {
		if _, err := c.sql.Exec(c.ctx, sql); err == nil {
			t.Errorf("%s: done", sql)
		}
	}
	c.verified(t)
}

func TestTrap_D63_TheSecondOfTwoOperatorsGetsAConflict(t *testing.T) {
	t.Parallel()
	c := newTown(t, 4)
	base, err := c.policies.Head(c.ctx)
	c.must(err)
	mine, _ := policy.Apply(base.Document, []policy.Edit{policy.SetTenant(c.list[0], "weight", "9"), policy.SetTenant(c.list[1], "weight", "3")})
	theirs := c.publish(t, policy.SetTenant(c.list[0], "weight", "7"))
	_, err = c.publisher.Publish(c.ctx, policy.Publication{Base: base.Number, Document: mine, Reason: "mine", Actor: ann})
	current, moved := policy.Moved(err)
	if !moved || current != theirs.Number {
		t.Fatalf("got %v", err)
	}
	head, err := c.policies.Version(c.ctx, current)
	c.must(err)
	conflicts, merged, err := policy.Rebase(base.Document, mine, head.Document)
	c.must(err)
	if len(conflicts) != 1 || conflicts[0].Path != "tenants[t-0000].weight" {
		t.Errorf("conflicts %+v", conflicts)
	}
	v, err := c.publisher.Publish(c.ctx, policy.Publication{Base: current, Document: merged, Reason: "again", Actor: ann})
	c.must(err)
	if s, _ := v.Document.Effective("pro", c.list[1].ID); s.Weight != 3 || v.Number != 3 {
		t.Errorf("version %d, weight %d", v.Number, s.Weight)
	}
}

func TestTrap_D45_CapacityIsLoweredBelowUse(t *testing.T) {
	t.Parallel()
	c := newTown(t, 4)
	tenant := c.list[1]
	user := uuid.UUID{}
	c.must(c.sql.QueryRow(c.ctx, `SELECT user_id FROM tenant_user WHERE tenant_id = $1`, tenant.ID).Scan(&user))
	c.publish(t, policy.SetTenant(tenant, "user_max_running_video", "50"), policy.SetTenant(tenant, "user_max_running_tasks", "50"))
	jobs := make([]job, 8)
	for i := range jobs {
		jobs[i] = job{tenant: tenant.ID, user: user, lane: control.LanePaid, group: "default"}
	}
	ids := c.queue(t, jobs...)
	groups := []string{"acct", "platform"}
	claimed := c.claim(t, c.starts(t, ids[:6], "leaf-2", groups, control.AccountOwn)...)
	claimed = append(claimed, c.claim(t, c.starts(t, ids[6:], "leaf-2", groups, control.AccountCommon)...)...)
	for _, x := range claimed {
		if x.Refused != "" {
			t.Fatalf("%+v", x)
		}
	}
	c.accept(t, claimed...)
	// Pool 10 with 8 running -> 5; reserve 6 with 6 running -> 2.
	c.publish(t, policy.SetPool("leaf-2", "capacity_units", "5"), policy.SetLaneReserved(control.LanePaid, "default", "2"))
	pool := func() string {
		return c.text(t, `SELECT sum(capacity_units) || ' ' || sum(used_units) || ' ' || count(*) FILTER (WHERE capacity_units > used_units) FROM resource_pool_shard WHERE resource_key = 'leaf-2'`)
	}
	if got := pool(); got != "5 8 0" {
		t.Errorf("capacity, use, shards with room: %s", got)
	}
	if got := c.text(t, `SELECT reserved_units || ' ' || own_used || ' ' || common_used FROM lane_account WHERE lane = 'PAID_SHARED'`); got != "2 6 2" {
		t.Errorf("reserve, own, common: %s", got)
	}
	more := c.queue(t, jobs[:4]...)
	refusals := func(account control.Account) string {
		out := ""
		for _, x := range c.claim(t, c.starts(t, more[:1], "leaf-2", groups, account)...) {
			out += string(x.Refused)
		}
		return out
	}
	// One after the other ends; nothing enters before use is below the limit.
	for i, want := range []string{"POOL", "POOL", "POOL", "POOL", ""} {
		if got := refusals(control.AccountCommon); got != want {
			t.Fatalf("with %d of 5 in use: %q", 8-i, got)
		}
		c.end(t, ending(claimed[i], control.AttemptSucceeded))
	}
	if got := pool(); got[:3] != "5 4" {
		t.Errorf("capacity and use: %s", got)
	}
	// Raised again while in use: no unit that is taken is there a second time.
	c.publish(t, policy.SetPool("leaf-2", "capacity_units", "32"), policy.SetLaneReserved(control.LanePaid, "default", "6"))
	if got := c.text(t, `SELECT sum(capacity_units) || ' ' || bool_and(capacity_units >= used_units) || ' ' || count(*) FROM resource_pool_shard WHERE resource_key = 'leaf-2'`); got != "32 true 16" {
		t.Errorf("after raising: %s", got)
	}
	c.clean(t)
}

func TestWhatIsRemovedCountsUntilItHasDrained(t *testing.T) {
	t.Parallel()
	c := newTown(t, 4)
	tenant := c.list[1]
	var user uuid.UUID
	c.must(c.sql.QueryRow(c.ctx, `SELECT user_id FROM tenant_user WHERE tenant_id = $1`, tenant.ID).Scan(&user))
	ids := c.queue(t, job{tenant: tenant.ID, user: user, lane: control.LanePaid, group: "default", slots: 2}, job{tenant: tenant.ID, user: user, lane: "RECOVERY", group: "default"})
	claimed := c.claim(t, c.starts(t, ids[:1], "leaf-2", []string{"acct", "platform"}, control.AccountOwn)...)
	c.accept(t, claimed...)
	head, err := c.policies.Head(c.ctx)
	c.must(err)
	doc := head.Document.Clone()
	doc.Pools = doc.Pools[:3]
	doc.Lanes = doc.Lanes[:5]
	doc.Routing = doc.Routing[1:]
	_, err = c.publisher.Publish(c.ctx, policy.Publication{Base: head.Number, Document: doc, Reason: "smaller", Actor: ann})
	var e *control.Error
	if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Field != "lanes[RECOVERY]" || e.Fields[0].Key != policy.KeyLaneInUse {
		t.Fatalf("a lane in which a task waits was removed: %v", err)
	}
	c.exec(t, `UPDATE generation_task SET queue_class = 'STANDARD' WHERE task_id = $1`, ids[1])
	c.exec(t, `UPDATE tenant_lane_runtime SET queued_tasks = 0, queued_units = 0 WHERE lane = 'RECOVERY'`)
	c.exec(t, `UPDATE tenant_lane_runtime SET queued_tasks = 1, queued_units = 1000 WHERE lane = 'STANDARD' AND tenant_id = $1`, tenant.ID)
	_, err = c.publisher.Publish(c.ctx, policy.Publication{Base: head.Number, Document: doc, Reason: "smaller", Actor: ann})
	c.must(err)
	if got := c.text(t, `SELECT status || ' ' || p.capacity_units || ' ' || sum(s.capacity_units) || ' ' || sum(used_units) FROM resource_pool p JOIN resource_pool_shard s USING (resource_key)
		WHERE resource_key = 'leaf-2' GROUP BY status, p.capacity_units`); got != "REMOVED 0 0 2" {
		t.Errorf("removed pool: %s", got)
	}
	if got := c.text(t, `SELECT reserved_units || ' ' || paused FROM lane_account WHERE lane = 'RECOVERY'`); got != "0 true" {
		t.Errorf("removed lane: %s", got)
	}
	c.end(t, ending(claimed[0], control.AttemptSucceeded))
	c.clean(t)
	if n := c.number(t, `SELECT sum(used_units)::bigint FROM resource_pool_shard`); n != 0 {
		t.Errorf("%d units are never given back", n)
	}
	// What comes back begins anew.
	back := doc.Clone()
	back.Pools = append(back.Pools, head.Document.Pools[3])
	_, err = c.publisher.Publish(c.ctx, policy.Publication{Base: 2, Document: back, Reason: "back", Actor: ann})
	c.must(err)
	if got := c.text(t, `SELECT status || ' ' || sum(s.capacity_units) FROM resource_pool p JOIN resource_pool_shard s USING (resource_key) WHERE resource_key = 'leaf-2' GROUP BY status`); got != "ACTIVE 10" {
		t.Errorf("pool that came back: %s", got)
	}
}

func TestPublishedWithinASecondOnEveryReplica(t *testing.T) {
	t.Parallel()
	c := newTown(t, 4)
	ctx, stop := context.WithCancel(c.ctx)
	listener := facts.NewListener(c.url, slog.New(slog.DiscardHandler), control.NotifyPolicy)
	// The second hears of no notification: only its own polls tell.
	replicas := []*policy.Active{
		policy.NewActive(c.policies, policy.ActiveConfig{Replica: "a", Hints: listener.Subscribe(control.NotifyPolicy)}),
		policy.NewActive(facts.NewPolicies(c.db), policy.ActiveConfig{Replica: "b"}),
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := listener.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	for _, r := range replicas {
		wg.Go(func() {
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	defer wg.Wait()
	defer stop()
	for _, r := range replicas {
		c.must(r.Await(ctx, 1))
	}
	var took []time.Duration
	for i := range 5 {
		v := c.publish(t, policy.SetTenant(c.list[0], "weight", strconv.Itoa(20+i)))
		began := time.Now()
		for _, r := range replicas {
			c.must(r.Await(ctx, v.Number))
			if got := r.Current(); got.Number < v.Number || r.Wanted() < v.Number {
				t.Errorf("in force %d, wanted %d", got.Number, r.Wanted())
			}
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	if took[3] > time.Second { // one of five may have met a machine that was busy with something else
		t.Errorf("in force everywhere after %v", took)
	}
	figure(t, "policy_in_force", map[string]any{"replicas": 2, "publishes": 5, "worst_ms": took[4].Milliseconds()})
	// Each replica says what it has.
	deadline := time.After(waitLimit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := c.policies.Replicas(ctx)
		c.must(err)
		if len(list) == 2 && list[0].Version == 6 && list[1].Version == 6 && list[0].Problem == "" {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("replicas %+v", list)
		case <-tick.C:
		}
	}
}

func TestVersionsAreListedAndFound(t *testing.T) {
	t.Parallel()
	c := newTown(t, 1)
	for i := range 6 {
		c.publish(t, policy.SetTenant(c.list[0], "weight", strconv.Itoa(20+i)))
	}
	var seen []int64
	for before := int64(0); ; {
		page, err := c.policies.List(c.ctx, before, 3)
		c.must(err)
		if len(page) == 0 {
			break
		}
		for _, v := range page {
			seen = append(seen, v.Number)
			before = v.Number
		}
	}
	if fmt.Sprint(seen) != "[7 6 5 4 3 2 1]" {
		t.Errorf("listed %v", seen)
	}
	fresh := facts.NewPolicies(c.db) // nothing kept in memory
	for _, n := range seen {
		v, err := fresh.Version(c.ctx, n)
		c.must(err)
		if v.Number != n || v.Base != n-1 || n > 1 && v.ActorName != "ann" {
			t.Errorf("%+v", v)
		}
	}
	for _, n := range []int64{0, 8, -1} {
		if _, err := fresh.Version(c.ctx, n); control.CodeOf(err) != control.CodeNotFound {
			t.Errorf("version %d: %v", n, err)
		}
	}
}

func TestAPolicyThatBreaksRulesIsRefusedWhole(t *testing.T) {
	t.Parallel()
	c := newTown(t, 4)
	before := c.everything(t)
	head, err := c.policies.Head(c.ctx)
	c.must(err)
	doc := head.Document.Clone()
	doc.Lanes[0].Weight = -1
	doc.Scheduling.AgingCap = 9
	doc.Plans = doc.Plans[1:]
	// Straight to the store: the transaction itself validates.
	_, err = c.policies.Publish(c.ctx, policy.Publication{Base: head.Number, Document: doc, Reason: "r", Actor: ann})
	var e *control.Error
	if !errors.As(err, &e) || e.Code != control.CodeInvalid || len(e.Fields) != 3 {
		t.Fatalf("got %v", err)
	}
	if _, err := c.policies.Publish(c.ctx, policy.Publication{Base: head.Number, Document: head.Document, Reason: " ", Actor: ann}); control.CodeOf(err) != control.CodeInvalid {
		t.Errorf("without a reason: %v", err)
	}
	if after := c.everything(t); after != before {
		t.Error("something is left")
	}
}
