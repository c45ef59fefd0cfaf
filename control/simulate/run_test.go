package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"fairlane/control"
	"fairlane/policy"
)

func TestWaitsAreThoseOfAQueueBeforeOneSlot(t *testing.T) {
	t.Parallel()
	r := run(t, Config{Document: small(1), Trace: script(t, "0 a u clip 60 ×3", "100 a u clip 30")})
	// Starts at 0, 60, 120 and 180 s.
	if r.Started != 4 || r.Wait.P50 != 60 || r.Wait.Max != 120 || r.Wait.P99 != 120 {
		t.Errorf("%+v", r.Wait)
	}
	if u := r.Groups[0]; u.Capacity != 1 || math.Abs(u.Utilisation-1) > 1e-9 || u.Peak != 1 {
		t.Errorf("%+v", u)
	}
	if a := r.tenant(t, "a"); a.Started != 4 || a.Arrivals != 4 || a.Busy != 1 {
		t.Errorf("%+v", a)
	}
}

func TestSharesFollowWeights(t *testing.T) {
	t.Parallel()
	d := small(4)
	give(d, "light", func(o *policy.TenantOverride) { o.Weight = value(1) })
	give(d, "heavy", func(o *policy.TenantOverride) { o.Weight = value(3) })
	trace := script(t, "0 light u clip 60 ×600", "0 heavy u clip 60 ×600", "3600 other u clip 60")
	for _, c := range []struct {
		mode        Mode
		heavy, jain float64
	}{{Fairlane, 3, 0.99}, {RoundRobin, 1, 0.5}, {FIFO, 0, 0.2}} {
		r := run(t, Config{Document: d, Trace: trace, Mode: c.mode})
		light, heavy := r.tenant(t, "light"), r.tenant(t, "heavy")
		if ratio := float64(heavy.Got / light.Got); math.Abs(ratio-c.heavy) > 0.1 {
			t.Errorf("%s: heavy got %v times what light got, want %v", c.mode, ratio, c.heavy)
		}
		if math.Abs(float64(heavy.Owed/light.Owed)-3) > 0.05 {
			t.Errorf("%s: heavy was owed %v, light %v", c.mode, heavy.Owed, light.Owed)
		}
		if fair := c.mode == Fairlane; fair != (float64(r.Jain) > 0.999) {
			t.Errorf("%s: Jain %v", c.mode, r.Jain)
		}
		if r.Started != 1201 || r.NeverStart != 0 {
			t.Errorf("%s: %d started, %d never", c.mode, r.Started, r.NeverStart)
		}
	}
}

func TestSameSeedSameResultToTheLastByte(t *testing.T) {
	t.Parallel()
	d := small(3)
	trace := script(t, "0 a u clip 60 ×40", "0 b u wide 90 ×20", "30 c u picture 20 ×30", "500 a v clip 60 ×10")
	once := func(seed uint64) string {
		text, err := json.Marshal(run(t, Config{Document: d, Trace: trace, Seed: seed, Admission: true}))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := once(1)
	if again := once(1); again != first {
		t.Errorf("another result:\n%s\n%s", first, again)
	}
	if zero := once(0); zero != first {
		t.Error("seed 0 is not the trace as it is")
	}
	second := once(2)
	if second == first {
		t.Error("another seed changes nothing")
	}
	if once(2) != second {
		t.Error("another result of seed 2")
	}
	var back Result
	if err := json.Unmarshal([]byte(first), &back); err != nil {
		t.Fatal(err)
	}
	if text, _ := json.Marshal(&back); string(text) != first {
		t.Errorf("JSON does not come back:\n%s\n%s", first, text)
	}
}

func TestSeedsKeepDurationsAndBurstsInTheMean(t *testing.T) {
	t.Parallel()
	trace := script(t, "0 a u clip 60 ×5000", "100 b u clip 60 ×5000")
	list := trace.seeded(7)
	sum, first := 0.0, map[int32]int64{}
	last := int64(0)
	for _, x := range list {
		sum += float64(x.Duration) / 1e6
		if x.At < last {
			t.Fatal("out of order")
		}
		last = x.At
		if at, ok := first[x.Tenant]; ok && at != x.At {
			t.Fatal("a burst is torn apart")
		}
		first[x.Tenant] = x.At
	}
	if mean := sum / 10_000; math.Abs(mean-60) > 1 {
		t.Errorf("mean duration %v", mean)
	}
	if len(trace.Arrivals) != 10_000 || trace.Arrivals[0].Duration != 60e6 {
		t.Error("the trace itself was changed")
	}
}

func TestTheGateTurnsAwayByThePolicysNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		change    func(*policy.Document)
		admission bool
		reason    string
		rejected  int
	}{
		{"nothing", func(*policy.Document) {}, true, "", 0},
		{"tenant queue", func(d *policy.Document) { d.Plans[0].Settings.MaxQueuedTasks = 3 }, true, "REJECT_TENANT_QUEUE_FULL", 7},
		{"tenant queue, gate open", func(d *policy.Document) { d.Plans[0].Settings.MaxQueuedTasks = 3 }, false, "", 0},
		{"tenant units", func(d *policy.Document) { d.Plans[0].Settings.MaxQueuedUnits = 5 }, true, "REJECT_TENANT_QUEUE_FULL", 8},
		{"user queue", func(d *policy.Document) { d.Plans[0].Settings.UserMaxQueuedTasks = 4 }, true, "REJECT_USER_QUEUE_FULL", 6},
		{"user rate", func(d *policy.Document) { d.Plans[0].Settings.UserSubmitsPerMin = 6 }, true, "REJECT_USER_RATE_LIMIT", 4},
		{"user rate, gate open", func(d *policy.Document) { d.Plans[0].Settings.UserSubmitsPerMin = 6 }, false, "", 0},
		{"tenant rate", func(d *policy.Document) { d.Plans[0].Settings.SubmitsPerMinute = 8 }, true, "REJECT_TENANT_RATE_LIMIT", 2},
		{"lane queue", func(d *policy.Document) {
			d.Limits.GuaranteedQueue = 0
			lane, _ := d.Lane(control.LaneStandard)
			lane.MaxQueuedTasks = 5
		}, true, "REJECT_LANE_QUEUE_FULL", 5},
		{"expected wait", func(d *policy.Document) { d.Plans[0].Settings.MaxWaitSeconds = 200 }, true, "REJECT_EXPECTED_WAIT_TOO_LONG", 8},
		{"model switched off, gate open", func(d *policy.Document) { d.Models[0].Enabled = false }, false, "REJECT_RESOURCE_CLASS_DISABLED", 10},
	} {
		d := small(1)
		c.change(d)
		r := run(t, Config{Document: d, Trace: script(t, "0 a u clip 60 ×10"), Admission: c.admission})
		if r.Rejected != c.rejected || r.Reasons[c.reason] != c.rejected || r.Started != 10-c.rejected {
			t.Errorf("%s: %d rejected %v, %d started, want %d %s", c.name, r.Rejected, r.Reasons, r.Started, c.rejected, c.reason)
		}
		if a := r.tenant(t, "a"); a.Rejected != c.rejected {
			t.Errorf("%s: tenant %+v", c.name, a)
		}
	}
}

func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	d := small(1)
	lane, _ := d.Lane(control.LaneStandard)
	lane.MaxWaitSeconds = 3600
	// The estimates say 60 s, so that the gate lets ten in; each takes 30 minutes, so that the third waits an hour.
	r := run(t, Config{Document: d, Trace: script(t, "0 a u clip 1800 ×10"), Admission: true})
	if r.Started != 2 || r.Expired != 8 || r.NeverStart != 0 || r.Wait.Max != 1800 {
		t.Errorf("%d started, %d expired, waits %+v", r.Started, r.Expired, r.Wait)
	}
}

func TestWhatNeverStartsIsCountedAndEndsTheRun(t *testing.T) {
	t.Parallel()
	d := small(2)
	lane, _ := d.Lane(control.LaneStandard)
	lane.Paused = true
	r := run(t, Config{Document: d, Trace: script(t, "0 a u clip 60 ×3", "5 b u clip 60")})
	if r.Started != 0 || r.NeverStart != 4 {
		t.Errorf("%d started, %d never", r.Started, r.NeverStart)
	}
	for _, l := range r.Lanes {
		if l.Lane == control.LaneStandard && (l.Starved != 2 || l.NeverStart != 4) {
			t.Errorf("%+v", l)
		}
	}
	if r.Wait.P95.Known() || r.Jain.Known() {
		t.Errorf("a wait of nobody: %v, %v", r.Wait.P95, r.Jain)
	}
}

func TestCapsOfUsersAndTenantsHold(t *testing.T) {
	t.Parallel()
	d := small(10)
	d.Plans[0].Settings.UserMaxRunningVideo, d.Plans[0].Settings.UserMaxRunningImage, d.Plans[0].Settings.UserMaxRunningTasks = 1, 2, 2
	give(d, "b", func(o *policy.TenantOverride) { o.MaxRunningTasks = value(2) })
	r := run(t, Config{Document: d, Trace: script(t,
		"0 a u clip 60 ×4", "0 a u picture 60 ×2", "0 b u clip 60 ×2", "0 b v clip 60 ×2", "0 b w clip 60 ×2")})
	// Of a's user one video and one picture at a time. Of b two tasks at a time, u and v, again u and v, then
	// only w is left, whose second waits for its first.
	if a := r.tenant(t, "a"); a.Wait.Max != 180 {
		t.Errorf("a: %+v", a.Wait)
	}
	if b := r.tenant(t, "b"); b.Wait.P50 != 60 || b.Wait.Max != 180 {
		t.Errorf("b: %+v", b.Wait)
	}
}

func TestBadConfigurationsAreRefused(t *testing.T) {
	t.Parallel()
	good := script(t, "0 a u clip 60")
	for _, c := range []struct {
		name, says string
		config     Config
	}{
		{"no trace", "trace: no tasks", Config{Document: small(1)}},
		{"an empty trace", "trace: no tasks", Config{Document: small(1), Trace: &Trace{}}},
		{"no policy", "INVALID: a policy is needed", Config{Trace: good}},
		{"an unknown mode", `INVALID: mode "magic" is not one of fairlane, fifo, rr`, Config{Trace: good, Document: small(1), Mode: "magic"}},
		{"an unknown model", `trace: line 2: model: "wide" is not a model of the policy, which has 2`, Config{Trace: script(t, "0 a u wide 60"), Document: small(1)}},
		{"an unknown plan", `INVALID: tenant a: the policy has no plan "gold"; it has plan`, Config{Trace: good, Document: small(1), Plans: map[string]string{"a": "gold"}}},
		{"no plans", "INVALID: policy: plans: at least one plan is needed, tenants have none else", Config{Trace: good, Document: func() *policy.Document { d := small(1); d.Plans = nil; return d }()}},
	} {
		if _, err := Run(t.Context(), c.config); err == nil || err.Error() != c.says {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
	d := small(1)
	d.Scheduling.AgingCap = 2
	var told *control.Error
	if err := Validate(good, d, nil); !errors.As(err, &told) || len(told.Fields) != 1 || told.Fields[0].Field != "scheduling.aging_cap" {
		t.Errorf("a broken rule: %v", err)
	}
}

func TestARunEndsWhenItsContextDoes(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("somebody pressed Ctrl-C")
	calls := 0
	_, err := Run(ctx, Config{
		Document: small(1), Trace: script(t, "0 a u clip 60 ×10000"),
		Progress: func(p Progress) {
			if calls++; calls == 2 {
				if p.Of != 10000 || p.Waiting == 0 || p.Running != 1 || p.At == 0 {
					t.Errorf("%+v", p)
				}
				stop(why)
			}
		},
	})
	if !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

func TestBaselinesDoWhatTheyAreCalled(t *testing.T) {
	t.Parallel()
	d := small(1)
	trace := script(t, "0 a u clip 60 ×3", "1 b u clip 60 ×3")
	fifo := run(t, Config{Document: d, Trace: trace, Mode: FIFO})
	// a at 0, 60, 120; b at 180, 240, 300
	if b := fifo.tenant(t, "b"); b.Wait.P50 != 239 || b.Wait.Max != 299 {
		t.Errorf("first come first served: b %+v", b.Wait)
	}
	rr := run(t, Config{Document: d, Trace: trace, Mode: RoundRobin})
	// a at 0, 120, 240; b at 60, 180, 300
	if b := rr.tenant(t, "b"); b.Wait.P50 != 179 || b.Wait.Max != 299 {
		t.Errorf("in turn: b %+v", b.Wait)
	}
}
