package facts_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/google/uuid"

	"fairlane/audit"
	"fairlane/control"
	"fairlane/policy"
	"fairlane/store/facts"
)

// Real publishes, onboarding and records beside claims and endings: no deadlock reaches anybody, every
// invariant holds, versions and records stay whole.
func TestTrap_D37_I01_I02_I07_I08_PublishingBesideClaims(t *testing.T) {
	t.Parallel()
	c := newTown(t, 0)
	doc := townDocument()
	doc.PoolGroups = []policy.PoolGroup{{Code: "g"}}
	for i := range doc.Lanes {
		doc.Lanes[i].Accounts = []policy.LaneAccount{{PoolGroup: "g", ReservedUnits: 5}}
	}
	pool := func(key string, kind policy.PoolKind, capacity int64, parents ...string) policy.Pool {
		p := policy.Pool{Key: key, Kind: kind, Parents: append([]string{}, parents...), CapacityUnits: capacity}
		if kind == policy.PoolProvider {
			p.Group, p.Provider, p.Account, p.Model = "g", "prov", "acct", "m"
		}
		return p
	}
	doc.Pools = []policy.Pool{pool("all", policy.PoolCapGroup, 90), pool("acct", policy.PoolCapGroup, 50, "all"),
		pool("a", policy.PoolProvider, 60, "acct"), pool("b", policy.PoolProvider, 60, "all")}
	_, err := c.publisher.Publish(c.ctx, policy.Publication{Base: 1, Document: doc, Reason: "small platform", Actor: ann})
	c.must(err)
	c.list = c.onboard(t, 8)
	var jobs []job
	for i, tenant := range c.list {
		s, _ := doc.Effective(tenant.PlanCode, tenant.ID)
		var user uuid.UUID
		c.must(c.sql.QueryRow(c.ctx, `SELECT user_id FROM tenant_user WHERE tenant_id = $1`, tenant.ID).Scan(&user))
		jobs = append(jobs, job{tenant: tenant.ID, user: user, lane: s.Lane, kind: []control.Kind{control.KindImage, control.KindVideo}[i%2]})
	}
	// Every user may run as much as the pools can.
	head, err := c.policies.Head(c.ctx)
	c.must(err)
	doc = head.Document.Clone()
	for i := range doc.Plans {
		s := &doc.Plans[i].Settings
		s.UserMaxRunningTasks, s.UserMaxRunningImage, s.UserMaxRunningVideo = 30, 30, 30
	}
	_, err = c.publisher.Publish(c.ctx, policy.Publication{Base: head.Number, Document: doc, Reason: "wide", Actor: ann})
	c.must(err)
	c.queue(t, some(rand.New(rand.NewPCG(1, 1)), jobs, 300)...)

	ctx, stop := context.WithCancel(c.ctx)
	defer stop()
	var workers, beside sync.WaitGroup
	var mu sync.Mutex
	claimed, published := 0, 0
	for worker := range 4 {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(9, uint64(worker)))
			for range 10 {
				req, err := c.waiting(c.ctx, r, 40)
				if err != nil {
					t.Error(err)
					return
				}
				out, err := facts.NewClaims(c.db).Claim(c.ctx, req)
				if err != nil {
					t.Errorf("claim: %v", err)
					return
				}
				if err := c.acceptSome(c.ctx, 10); err != nil {
					t.Errorf("accept: %v", err)
					return
				}
				if _, err := c.finish(c.ctx, r, 15); err != nil {
					t.Errorf("end: %v", err)
					return
				}
				mu.Lock()
				for _, x := range out {
					if x.Refused == "" {
						claimed++
					}
				}
				mu.Unlock()
			}
		})
	}
	for publisher := range 2 {
		beside.Go(func() {
			r := rand.New(rand.NewPCG(5, uint64(publisher)))
			for i := 0; ctx.Err() == nil; i++ {
				tenant := c.list[r.IntN(len(c.list))]
				edits := []policy.Edit{
					policy.SetTenant(tenant, "weight", strconv.Itoa(1+r.IntN(50))), policy.SetTenant(tenant, "max_running_units", strconv.Itoa(10+r.IntN(50))),
					policy.SetPool("a", "capacity_units", strconv.Itoa(20+r.IntN(60))), policy.SetPool("all", "capacity_units", strconv.Itoa(40+r.IntN(60))),
					policy.SetLaneReserved(control.LanePaid, "g", strconv.Itoa(r.IntN(10))), policy.SetLane(control.LaneStandard, "paused", strconv.FormatBool(r.IntN(2) == 0)),
				}
				_, err := c.try(c.ctx, edits[r.IntN(3):]...)
				if _, moved := policy.Moved(err); err != nil && !moved {
					t.Errorf("publish: %v", err)
					return
				}
				if err == nil {
					mu.Lock()
					published++
					mu.Unlock()
				}
				if i%4 == 3 {
					code := fmt.Sprintf("late-%d-%d", publisher, i)
					if _, err := c.tenants.Onboard(c.ctx, []facts.NewTenant{{Code: code, Name: code, Plan: "pro"}}, ann, "late"); err != nil {
						t.Errorf("onboard: %v", err)
						return
					}
				}
			}
		})
	}
	beside.Go(func() {
		for ctx.Err() == nil {
			if _, err := c.audits.Append(c.ctx, note("eve", "x", "")); err != nil {
				t.Errorf("append: %v", err)
				return
			}
			r, err := audit.Verify(c.ctx, c.audits)
			if err != nil || !r.OK() {
				t.Errorf("in the middle: %+v %v", r, err)
				return
			}
		}
	})
	workers.Wait()
	stop()
	beside.Wait()
	c.clean(t)
	c.verified(t)
	if n := c.number(t, `SELECT max(version) - count(*) + (SELECT version FROM policy_head) - max(version) FROM policy_version`); n != 0 {
		t.Errorf("versions have %d gaps", n)
	}
	if n := c.number(t, `SELECT count(*) FROM resource_pool p JOIN (SELECT resource_key, sum(capacity_units) s FROM resource_pool_shard GROUP BY 1) x USING (resource_key) WHERE s <> capacity_units`); n != 0 {
		t.Errorf("the shards of %d pools do not hold its capacity", n)
	}
	if claimed < 100 || published < 5 {
		t.Errorf("too quiet to show anything: %d claimed, %d published", claimed, published)
	}
	figure(t, "policy_contention", map[string]any{"claimed": claimed, "published": published,
		"deadlocks": c.number(t, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`)})
}
