package simulate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/policy"
	"fairlane/store/storetest"
)

// lending is two lanes over ten units, of which one lends four of its six, with users' caps, a lane minimum
// and a tenant whose estimates are far off.
func lending() *policy.Document {
	d := small(10)
	d.Plans[0].Settings.UserMaxRunningTasks, d.Plans[0].Settings.UserMaxRunningVideo = 4, 3
	for _, l := range []struct{ code, lends string }{{control.LaneEnterprise, control.LaneStandard}, {control.LaneStandard, ""}} {
		lane, _ := d.Lane(l.code)
		a := &lane.Accounts[0]
		a.ReservedUnits, a.BorrowTimeout, a.Cooldown = 3, 240, 30
		if l.lends != "" {
			a.ReservedUnits, a.HeadroomUnits, a.LendableUnits, a.LendsTo = 6, 1, 4, []string{l.lends}
		} else {
			a.BorrowLimit = 3
		}
	}
	lane := control.LaneEnterprise
	for _, code := range []string{"rich-1", "rich-2"} {
		give(d, code, func(o *policy.TenantOverride) { o.Lane = &lane })
	}
	give(d, "poor-1", func(o *policy.TenantOverride) { o.Weight, o.MaxRunningTasks = value(2), value(5) })
	for i := range d.Pools {
		if d.Pools[i].Model == "picture" {
			d.Pools[i].LaneMinimums = []policy.LaneMinimum{{Lane: control.LaneEnterprise, Units: 2}}
		}
	}
	return d
}

func randomTrace(seed uint64, tasks int) *Trace {
	chance := rand.New(rand.NewPCG(seed, 1))
	t := &Trace{
		Tenants: []string{"rich-1", "rich-2", "poor-1", "poor-2", "wrong"},
		Models:  []TraceModel{{Code: "clip", Kind: control.KindVideo}, {Code: "picture", Kind: control.KindImage}, {Code: "wide", Kind: control.KindVideo}},
	}
	for tenant := range t.Tenants {
		for user := range 3 {
			t.Users = append(t.Users, TraceUser{int32(tenant), fmt.Sprintf("u%d", user)}) //nolint:gosec // five
		}
	}
	at := int64(0)
	for range tasks {
		if chance.IntN(4) == 0 { // else a burst goes on
			at += int64(chance.ExpFloat64() * 60e6)
		}
		tenant := chance.IntN(len(t.Tenants))
		took := 20e6 + chance.Float64()*60e6
		if tenant == 4 {
			took *= 4
		}
		t.Arrivals = append(t.Arrivals, Arrival{
			At: at, Duration: int64(took), Tenant: int32(tenant), User: int32(tenant*3 + chance.IntN(3)), Model: int32(chance.IntN(3)), //nolint:gosec // small
		})
	}
	return t
}

// Every counter is the sum of what runs, and no limit is passed, at every instant.
func TestI01_I02_I06_CountersHoldAtEveryInstant(t *testing.T) {
	t.Parallel()
	instants, lent, refusals := 0, int64(0), 0
	for seed := range uint64(8) {
		d := lending()
		trace := randomTrace(seed, 800)
		if err := Validate(trace, d, nil); err != nil {
			t.Fatal(err)
		}
		w, err := newWorld(Config{Trace: trace, Document: d, Admission: true})
		if err != nil {
			t.Fatal(err)
		}
		for wake := int64(0); ; instants++ {
			at, ok := w.upcoming(wake)
			if !ok {
				break
			}
			w.advance(at)
			if err := w.happen(t.Context()); err != nil {
				t.Fatal(err)
			}
			if wake, err = w.decider.decide(); err != nil {
				t.Fatal(err)
			}
			if wake > 0 {
				wake = max(wake, w.now+1000)
			}
			w.observe()
			w.publish()
			if t.Failed() {
				return
			}
			w.check(t)
		}
		r := w.report()
		if r.NeverStart > 0 || r.Started+r.Rejected+r.Expired != r.Tasks {
			t.Errorf("seed %d: of %d tasks %d started, %d were rejected, %d expired, %d never started", seed, r.Tasks, r.Started, r.Rejected, r.Expired, r.NeverStart)
		}
		for _, l := range r.Lanes {
			if l.Lending != nil {
				lent += l.Lending.Units
			}
		}
		refusals += r.Refusals
	}
	if lent == 0 {
		t.Error("nothing was lent, so that nothing about lending was shown")
	}
	if refusals > 0 {
		t.Errorf("%d planned starts were refused: plan and counters disagree", refusals)
	}
	storetest.Figure(t, "simulate: I01, I02, I06 at %d instants of 8 random traces, %d units lent, no violation", instants, lent)
}

func (w *world) check(t *testing.T) {
	t.Helper()
	lanes, pools := map[plan.LaneGroup]plan.LaneUse{}, map[string]int64{}
	tenants, users := map[*tenant]plan.Use{}, map[*user]plan.UserUse{}
	for _, x := range w.running {
		s := &x.start
		use := lanes[x.account.key]
		switch s.Account {
		case control.AccountOwn:
			use.Own += s.SlotUnits
		case control.AccountCommon:
			use.Common += s.SlotUnits
		case control.AccountBorrowed:
			use.Borrowed += s.SlotUnits
			of := plan.LaneGroup{Lane: s.Lender, Group: s.Group}
			m := lanes[of]
			m.Lent += s.SlotUnits
			lanes[of] = m
		}
		lanes[x.account.key] = use
		for _, p := range w.pools[s.Pool].chain {
			pools[p.rule.Key] += s.SlotUnits
		}
		ten := tenants[x.party.tenant]
		ten.Tasks, ten.Units = ten.Tasks+1, ten.Units+s.SlotUnits
		tenants[x.party.tenant] = ten
		u := users[x.user]
		if u.Tasks++; x.kind == 0 {
			u.Image++
		} else {
			u.Video++
		}
		users[x.user] = u
	}
	common := int64(0)
	for _, a := range w.every {
		got, want := w.count.lanes[a.key], lanes[a.key]
		want.Stopped = got.Stopped
		if got != want {
			t.Fatalf("at %d: lane %s counts %+v, what runs is %+v", w.now, a.key.Lane, got, want)
		}
		common += got.Common
		if got.Own+got.Lent > a.rule.ReservedUnits || got.Lent > a.rule.LendableUnits || got.Borrowed > a.rule.BorrowLimit || got.Common < 0 {
			t.Fatalf("at %d: lane %s is over its limits: %+v of %+v", w.now, a.key.Lane, got, a.rule)
		}
	}
	if g := w.groups[0]; common != w.count.common[g.code] || common > g.common || g.used > g.capacity {
		t.Fatalf("at %d: %d common units in use of %d, counted %d; %d of %d in all", w.now, common, g.common, w.count.common[g.code], g.used, g.capacity)
	}
	for key, p := range w.pools {
		if use := w.count.pools[key]; use.Used != pools[key] || use.Used > p.rule.CapacityUnits {
			t.Fatalf("at %d: pool %s counts %d, what runs is %d of %d", w.now, key, use.Used, pools[key], p.rule.CapacityUnits)
		}
	}
	for _, ten := range w.tenants {
		use := w.count.tenants[ten.account.ID]
		if use.Use != tenants[ten] || use.Tasks > ten.settings.MaxRunningTasks || use.Units > ten.settings.MaxRunningUnits {
			t.Fatalf("at %d: tenant %s counts %+v, what runs is %+v", w.now, ten.account.Code, use, tenants[ten])
		}
		for _, p := range ten.parties {
			if w.count.inLane[plan.TenantLane{Tenant: ten.account.ID, Lane: p.lane.rule.Code}].Tasks < 0 || p.waiting < 0 || p.runnable < 0 || p.runnable > p.waiting {
				t.Fatalf("at %d: tenant %s: %d wait, %d of them may start", w.now, ten.account.Code, p.waiting, p.runnable)
			}
		}
	}
	for _, u := range w.users {
		s := &u.tenant.settings
		use := w.count.users[plan.TenantUser{Tenant: u.tenant.account.ID, User: u.id}]
		if use != users[u] || use.Tasks > s.UserMaxRunningTasks || use.Video > s.UserMaxRunningVideo || use.Image > s.UserMaxRunningImage {
			t.Fatalf("at %d: user %s counts %+v, what runs is %+v", w.now, u.name, use, users[u])
		}
	}
}
