package demo

import (
	"math"
	"strings"
	"testing"
	"time"

	"fairlane/control"
	"fairlane/policy"
)

func platform(t *testing.T, speed float64) *Platform {
	t.Helper()
	p, err := New(speed)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDocumentMayBePublished(t *testing.T) {
	t.Parallel()
	for _, speed := range []float64{1, 7.5, 20, 100} {
		p := platform(t, speed)
		var tenants []policy.Tenant
		for _, tenant := range p.Tenants {
			tenants = append(tenants, policy.Tenant{ID: tenant.ID, Code: tenant.Code, Name: tenant.Name, PlanCode: tenant.Plan})
		}
		for _, fault := range policy.Validate(p.Document(), tenants) {
			t.Errorf("speed %v: %s: %s %v", speed, fault.Field, fault.Key, fault.Args)
		}
	}
}

func TestPlatformIsTheOneThatIsPromised(t *testing.T) {
	t.Parallel()
	p := platform(t, 20)
	d := p.Document()
	if len(d.Lanes) != 6 || len(d.Models) != 12 || len(p.Tenants) != 60 {
		t.Errorf("%d lanes, %d models, %d tenants; want 6, 12, 60", len(d.Lanes), len(d.Models), len(p.Tenants))
	}
	sizes, codes, chinese := map[Size]int{}, map[string]bool{}, 0
	for _, tenant := range p.Tenants {
		sizes[tenant.Size]++
		codes[tenant.Code] = true
		if strings.ContainsFunc(tenant.Name, func(r rune) bool { return r >= 0x4e00 && r <= 0x9fff }) {
			chinese++
		}
		if want := usersOf[tenant.Size]; len(tenant.Users) != want {
			t.Errorf("%s has %d users, want %d", tenant.Code, len(tenant.Users), want)
		}
	}
	if sizes[Whale] != 1 || sizes[Large] != 5 || sizes[Medium] != 14 || sizes[Small] != 40 || len(codes) != 60 || chinese < 10 {
		t.Errorf("sizes %v, %d codes, %d Chinese names", sizes, len(codes), chinese)
	}
	if l, _ := d.Lane(control.LaneBestEffort); l.Weight != 0 {
		t.Errorf("BEST_EFFORT has weight %d, want 0", l.Weight)
	}
	targets := map[string]int64{control.LaneEnterprise: 30, control.LanePaid: 180, control.LaneStandard: 600, control.LaneExpensive: 900}
	for lane, want := range targets {
		if l, _ := platform(t, 1).Document().Lane(lane); l.WaitTargetSeconds != want {
			t.Errorf("%s has the wait target %d s, want %d", lane, l.WaitTargetSeconds, want)
		}
	}
}

func TestSpeedDividesTimesAndMultipliesRates(t *testing.T) {
	t.Parallel()
	slow, fast := platform(t, 1).Document(), platform(t, 20).Document()
	if slow.Scheduling.AgingStepSeconds != 300 || fast.Scheduling.AgingStepSeconds != 15 {
		t.Errorf("aging steps %d and %d s, want 300 and 15", slow.Scheduling.AgingStepSeconds, fast.Scheduling.AgingStepSeconds)
	}
	for i := range slow.Models {
		if ratio := slow.Models[i].MeanSeconds / fast.Models[i].MeanSeconds; math.Abs(ratio-20) > 1e-9 {
			t.Errorf("%s: mean divided by %v", slow.Models[i].Code, ratio)
		}
		if slow.Models[i].CostMicro != fast.Models[i].CostMicro {
			t.Errorf("%s: the price moved", slow.Models[i].Code)
		}
	}
	if s, f := slow.Plans[0].Settings, fast.Plans[0].Settings; f.SubmitsPerMinute != 20*s.SubmitsPerMinute || f.Weight != s.Weight {
		t.Errorf("submits %d and %d a minute, weights %d and %d", s.SubmitsPerMinute, f.SubmitsPerMinute, s.Weight, f.Weight)
	}
	for _, speed := range []float64{0, -1, 0.5, 101, math.NaN(), math.Inf(1)} {
		if _, err := New(speed); err == nil || !strings.Contains(err.Error(), "FAIRLANE_DEMO_SPEED") {
			t.Errorf("speed %v: %v; want an error that names the setting", speed, err)
		}
	}
}

func TestLanesLendWhatTheyLeaveIdle(t *testing.T) {
	t.Parallel()
	slow, fast := platform(t, 1).Document(), platform(t, 20).Document()
	of := func(d *policy.Document, lane string) policy.LaneAccount {
		l, _ := d.Lane(lane)
		return l.Accounts[0]
	}
	lender := of(slow, control.LaneEnterprise)
	if lender.HeadroomUnits < 1 || lender.LendableUnits < 1 || lender.BorrowTimeout != 300 || lender.Cooldown != 60 {
		t.Errorf("the lender's terms are %+v", lender)
	}
	if a := of(fast, control.LaneEnterprise); a.BorrowTimeout != 15 || a.Cooldown != 3 || a.LendableUnits != lender.LendableUnits || fast.Scheduling.EarmarkTimeout != 60 {
		t.Errorf("20 times as fast: %+v, earmarks end after %d s", a, fast.Scheduling.EarmarkTimeout)
	}
	for _, borrower := range lender.LendsTo {
		if of(slow, borrower).BorrowLimit < 1 {
			t.Errorf("%s may borrow and is allowed nothing", borrower)
		}
	}
	short := 0
	for _, m := range slow.Models {
		if m.P95Seconds <= float64(lender.BorrowTimeout) {
			short++
		}
	}
	if short < len(slow.Models)/2 || short == len(slow.Models) {
		t.Errorf("%d of %d models are short enough to borrow; most should be, not all", short, len(slow.Models))
	}
	kept, lookUps := 0, 0
	for i := range slow.Pools {
		kept += len(slow.Pools[i].LaneMinimums)
		if slow.Pools[i].CanLookUp {
			lookUps++
		}
	}
	leaves := 0
	for _, a := range accounts {
		leaves += len(a.models)
	}
	if kept < 3 || lookUps != leaves {
		t.Errorf("%d pools keep something for a lane, %d of %d can look a job up", kept, lookUps, leaves)
	}
	if s := slow.Scheduling; s.RepayPermille == 0 || s.DebtTaskUnits == 0 || s.DebtTotalUnits == 0 {
		t.Errorf("debts are off: %+v", s)
	}
}

// Offered load of the busiest hour: drawn requests times the mean seconds of their models, over what the
// pools can hold for that hour, from the published document alone.
func TestBusiestHourOffersSomeMoreThanThePoolsCanDo(t *testing.T) {
	t.Parallel()
	const speed = 20
	p := platform(t, speed)
	d := p.Document()
	hour := time.Hour / speed
	capacity := float64(d.GroupCapacity(policy.DefaultGroup)) * hour.Seconds()
	perModel := map[string]float64{}
	var offered float64
	const runs = 40
	for seed := range uint64(runs) {
		traffic := p.Traffic(seed, 0)
		for r := traffic.Next(); r.At < hour; r = traffic.Next() {
			m, ok := d.Model(r.Model)
			if !ok {
				t.Fatalf("unknown model %s", r.Model)
			}
			work := float64(m.SlotUnits) * m.MeanSeconds
			offered += work
			perModel[r.Model] += work
		}
	}
	if load := offered / runs / capacity; load < 1.15 || load > 1.25 {
		t.Errorf("the busiest hour offers %.3f of the capacity, want 1.15 to 1.25", load)
	}
	leaves := map[string]int64{}
	for _, pool := range d.Pools {
		if pool.Kind == policy.PoolProvider {
			leaves[pool.Model] += pool.CapacityUnits
		}
	}
	for model, work := range perModel {
		load := work / runs / hour.Seconds() / float64(leaves[model])
		if load < 0.75 || load > 1.45 {
			t.Errorf("%s: the busiest hour offers %.2f of its pools", model, load)
		}
	}
	if len(perModel) != 12 {
		t.Errorf("%d models are asked for, want 12", len(perModel))
	}
}

func TestDemandIsMetOnBothSides(t *testing.T) {
	t.Parallel()
	p := platform(t, 1)
	units := modelUnits()
	perModel := make([]float64, len(models))
	for tenant, mix := range p.mixes {
		want := p.trace.Requests(tenant, 0, busiest)
		if got := mix[len(mix)-1]; math.Abs(got-max(want, 1)) > 0.01*max(want, 1) {
			t.Errorf("tenant %d asks %.1f times, the trace says %.1f", tenant, got, want)
		}
		last := 0.0
		for m := range models {
			perModel[m] += mix[m] - last
			last = mix[m]
		}
	}
	for m, requests := range perModel {
		load := requests * p.scale / busiest.Seconds() * models[m].render().Mean().Seconds() / units[models[m].code]
		if math.Abs(load-peakLoad) > 0.02 {
			t.Errorf("%s: load %.3f, want %.2f", models[m].code, load, peakLoad)
		}
	}
}

func TestTrafficIsWhatTenantsMayAskFor(t *testing.T) {
	t.Parallel()
	p := platform(t, 20)
	d := p.Document()
	traffic, again := p.Traffic(3, 5*time.Hour), p.Traffic(3, 5*time.Hour)
	cancelled := 0
	const n = 50_000
	var last time.Duration
	for range n {
		r := traffic.Next()
		if r != again.Next() {
			t.Fatal("the same seed gives another request")
		}
		if r.At < last || r.CancelAfter < 0 {
			t.Fatalf("request %+v after one at %v", r, last)
		}
		last = r.At
		tenant := p.Tenants[r.Tenant]
		plan, _ := d.Plan(tenant.Plan)
		if r.User < 0 || r.User >= len(tenant.Users) {
			t.Fatalf("%s has no user %d", tenant.Code, r.User)
		}
		entitled := len(plan.Models) == 0
		for _, m := range plan.Models {
			entitled = entitled || m == r.Model
		}
		if !entitled {
			t.Fatalf("%s on plan %s asks for %s", tenant.Code, tenant.Plan, r.Model)
		}
		if r.CancelAfter > 0 {
			cancelled++
		}
	}
	if share := float64(cancelled) / n; share < 0.01 || share > 0.02 {
		t.Errorf("%.2f %% are cancelled, want 1 to 2", share*100)
	}
}

func TestRenderMean(t *testing.T) {
	t.Parallel()
	// ln(300/110) / 1.645 = 0.61; 110 s * exp(0.61 * 0.61 / 2) = 132.5 s
	if got := (Render{Median: 110 * time.Second, P95: 300 * time.Second}).Mean().Seconds(); math.Abs(got-132.5) > 0.2 {
		t.Errorf("mean %.2f s, want 132.5", got)
	}
}
