package facts_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"fairlane/control"
	"fairlane/policy"
	"fairlane/store/facts"
)

func TestOnboardIsIdempotentByCode(t *testing.T) {
	t.Parallel()
	c := newTown(t, 4)
	before := c.everything(t)
	again := c.onboard(t, 4)
	if after := c.everything(t); after != before {
		t.Errorf("onboarding twice changed something:\n%s\n%s", before, after)
	}
	for i := range again {
		if again[i] != c.list[i] {
			t.Errorf("%+v, was %+v", again[i], c.list[i])
		}
	}
	out, err := c.tenants.Onboard(c.ctx, []facts.NewTenant{{Code: "t-0000", Name: "other", Plan: "free", Users: []facts.NewUser{{ExternalID: "u1"}, {ExternalID: "u2"}}}}, ann, "")
	c.must(err)
	if out[0] != c.list[0] {
		t.Errorf("an account that exists was changed: %+v", out[0])
	}
	if n := c.number(t, `SELECT count(*) FROM tenant_user u JOIN user_runtime r USING (tenant_id, user_id) WHERE tenant_id = $1`, c.list[0].ID); n != 2 {
		t.Errorf("%d users", n)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := c.tenants.Onboard(c.ctx, []facts.NewTenant{{Code: "race", Name: "Race", Plan: "pro"}}, ann, "race"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := c.number(t, `SELECT (SELECT count(*) FROM tenant WHERE code = 'race') + (SELECT count(*) FROM audit_event WHERE object_id = 'race')`); n != 2 {
		t.Errorf("account and record: %d", n)
	}
	c.verified(t)
}

func TestOnboardRefuses(t *testing.T) {
	t.Parallel()
	c := newTown(t, 2)
	c.publish(t, policy.SetLaneReserved(control.LanePaid, "default", "20"), policy.SetTenant(c.list[1], "reserved_units", "10"))
	head, err := c.policies.Head(c.ctx)
	c.must(err)
	doc := head.Document.Clone()
	p, _ := doc.Plan("pro")
	p.Settings.ReservedUnits = 5
	_, err = c.publisher.Publish(c.ctx, policy.Publication{Base: head.Number, Document: doc, Reason: "reserves", Actor: ann})
	c.must(err)
	before := c.everything(t)
	for _, x := range []struct {
		name   string
		list   []facts.NewTenant
		fields []string
	}{
		{"names", []facts.NewTenant{{Code: "a b", Name: "", Plan: "pro"}, {Code: "x", Name: "bad\x00", Plan: "pro"}, {Code: "x", Name: "ok", Plan: "pro", Users: []facts.NewUser{{}}}},
			[]string{"tenants[0].code", "tenants[0].name", "tenants[1].name", "tenants[2].code", "tenants[2].users[0].external_id"}},
		{"plan", []facts.NewTenant{{Code: "x", Name: "客户 <b>", Plan: "gold"}}, []string{"plans[gold]"}},
		{"reserves", []facts.NewTenant{{Code: "x", Name: "X", Plan: "pro"}, {Code: "y", Name: "Y", Plan: "pro"}}, []string{"lanes[PAID_SHARED].reserved_units"}}, // 10 + 5 + 5 > 20 - 2
	} {
		_, err := c.tenants.Onboard(c.ctx, x.list, ann, "r")
		var e *control.Error
		if !errors.As(err, &e) || e.Code != control.CodeInvalid {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		var fields []string
		for _, f := range e.Fields {
			fields = append(fields, f.Field)
		}
		if fmt.Sprint(fields) != fmt.Sprint(x.fields) {
			t.Errorf("%s: %v", x.name, fields)
		}
	}
	if after := c.everything(t); after != before {
		t.Error("something is left")
	}
	if _, err := c.tenants.Onboard(c.ctx, []facts.NewTenant{{Code: "x", Name: "X", Plan: "pro"}}, ann, "r"); err != nil {
		t.Errorf("one more fits: %v", err)
	}
}

func TestOnboardNeedsAPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := facts.NewTenants(w.db).Onboard(w.ctx, []facts.NewTenant{{Code: "x", Name: "X", Plan: "pro"}}, ann, "r"); control.CodeOf(err) != control.CodeConflict {
		t.Errorf("got %v", err)
	}
	if _, err := facts.NewPolicies(w.db).Head(w.ctx); control.CodeOf(err) != control.CodeNotFound {
		t.Errorf("got %v", err)
	}
}

func TestPublishWithThousandsOfTenants(t *testing.T) {
	t.Parallel()
	c := newTown(t, 0)
	const n = 3_000
	began := time.Now()
	list := c.onboard(t, n)
	onboarded := time.Since(began)
	began = time.Now()
	c.publish(t, policy.SetTenant(list[1], "weight", "7"))
	one := time.Since(began)
	head, err := c.policies.Head(c.ctx)
	c.must(err)
	doc := head.Document.Clone()
	for i := range doc.Plans {
		doc.Plans[i].Settings.MaxRunningUnits = 333
	}
	began = time.Now()
	_, err = c.publisher.Publish(c.ctx, policy.Publication{Base: head.Number, Document: doc, Reason: "all", Actor: ann})
	c.must(err)
	figure(t, "policy_publish", map[string]any{"tenants": n, "onboard_ms": onboarded.Milliseconds(), "one_tenant_ms": one.Milliseconds(), "all_tenants_ms": time.Since(began).Milliseconds()})
	if got := c.number(t, `SELECT count(*) FROM tenant_scheduling_policy WHERE max_running_units = 333 AND policy_version = 3`); got != n {
		t.Errorf("%d rows", got)
	}
}
