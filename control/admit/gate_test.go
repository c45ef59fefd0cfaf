package admit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fairlane/control"
	"fairlane/control/estimate"
	"fairlane/policy"
)

func TestAcceptedTaskCarriesWhatIsFrozen(t *testing.T) {
	t.Parallel()
	d := newDesk()
	r := request()
	r.Resolution, r.Seconds, r.DeadlineSeconds, r.Project = "720p", 10, 900, "film"
	a, err := d.gate().Submit(context.Background(), principal(), r, "k1")
	if err != nil {
		t.Fatal(err)
	}
	n := d.written[0]
	// 10 s is twice the default clip: 120 s, 0.8 of the currency = 8 fairness units.
	if n.FairnessMilli != 8_000 || n.CostMicro != 800_000 || n.PriceMicro != 1_000_000 || n.MeanSeconds != 120 || n.P95Seconds != 300 || n.SlotUnits != 1 {
		t.Errorf("estimate: %+v", n)
	}
	if n.Lane != "MAIN" || n.Group != "video" || n.Band != 2 || n.Route != "clip|720p" || n.MaxAttempts != 3 || n.PolicyVersion != 7 || n.EstimateVersion != 1 || n.DeadlineSeconds != 900 {
		t.Errorf("frozen: %+v", n)
	}
	var p map[string]any
	if err := json.Unmarshal(n.Parameters, &p); err != nil || p["prompt"] != r.Prompt || p["resolution"] != "720p" || p["duration_seconds"] != 10.0 {
		t.Errorf("parameters %s: %v", n.Parameters, err)
	}
	if a.TaskID != n.TaskID || a.Decision != Accepted || a.State != control.TaskQueued || a.PositionLevel != LevelShort || a.Replayed {
		t.Errorf("answer: %+v", a)
	}
	// μ = 0.75 × (100 own + 0 common) × 8 units / (1 × 120 s) = 5 units/s: 8 units take 1.6 s.
	if got := a.EstimatedStart.Sub(a.QueuedAt); got != 1600*time.Millisecond {
		t.Errorf("estimated start after %v, want 1.6 s", got)
	}
	if !a.EstimatedStart90.After(*a.EstimatedStart) || d.counted[Accepted] != 1 {
		t.Errorf("p90 %v, counted %v", a.EstimatedStart90, d.counted)
	}
}

// Fairness is charged by history and by what the tenant's tasks use; times are what such tasks take.
func TestTheEstimateInForceAndTheFactorAreFrozen(t *testing.T) {
	t.Parallel()
	d := newDesk()
	d.doc.Pools[0].Provider = "a"
	d.factor = estimate.Factor{Value: 2.5, Tasks: 100}
	history := estimate.History{Tasks: 180, MeanSeconds: 260, P95Seconds: 650, Costs: 180, CostMicro: 400_000}
	d.book = estimate.NewBook(9, map[estimate.Key]estimate.History{{Model: "clip", Resolution: "720p", Seconds: 5, Provider: "a"}: history})
	a, err := d.gate().Submit(context.Background(), principal(), request(), "k1")
	if err != nil {
		t.Fatal(err)
	}
	n := d.written[0]
	// (20 × 60 + 180 × 260) / 200 = 240 s are 8 units; the P95 is stretched by the factor.
	if n.MeanSeconds != 240 || n.P95Seconds != 1500 || n.BaseMilli != 8_000 || n.FairnessMilli != 20_000 || n.EstimateVersion != 9 ||
		n.Bases != (estimate.Bases{Seconds: 30, CostMicro: 100_000, GPUSeconds: 30}) || n.PriceMicro != 500_000 {
		t.Errorf("frozen: %+v", n)
	}
	if a.FairnessMilli != 20_000 || a.ExpectedSeconds != 240 {
		t.Errorf("answer: %+v", a)
	}
	other := d.doc.Pools[0] // with a second provider nobody knows which it will be
	other.Key, other.Provider = "provider:b:clip", "b"
	d.doc.Pools = append(d.doc.Pools, other)
	d.factor = estimate.Factor{}
	if _, err := d.gate().Submit(context.Background(), principal(), request(), "k2"); err != nil {
		t.Fatal(err)
	}
	if n := d.written[1]; n.MeanSeconds != 60 || n.BaseMilli != 4_000 || n.FairnessMilli != 4_000 {
		t.Errorf("of several providers: %+v", n)
	}
}

func TestRefusalsNameTheirNumbers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		arrange  func(*desk, *Principal, *Request)
		decision Decision
		status   int
		retry    time.Duration
		says     string
		unit     string
		limit    int64
		have     int64
		want     int64
	}{
		{"platform switched off", func(d *desk, _ *Principal, _ *Request) { d.doc.Switches.AdmissionOpen = false },
			PlatformOverloaded, 503, 30 * time.Second, "closed for the whole platform", "", 0, 0, 0},
		{"lane switched off", func(d *desk, _ *Principal, _ *Request) { d.doc.Lanes[0].AdmissionOpen = false },
			ResourceClassDisabled, 503, time.Minute, "closed for lane MAIN", "", 0, 0, 0},
		{"model switched off", func(d *desk, _ *Principal, _ *Request) { d.doc.Models[0].Enabled = false },
			ResourceClassDisabled, 503, time.Minute, "clip is switched off", "", 0, 0, 0},
		{"model retired yesterday", func(d *desk, _ *Principal, _ *Request) { d.doc.Models[0].RetireOn = "2026-11-29" },
			ResourceClassDisabled, 503, 0, "retired on 2026-11-29", "", 0, 0, 0},
		{"model without a pool", func(_ *desk, _ *Principal, r *Request) { r.Model = "orphan" },
			ResourceClassDisabled, 503, time.Minute, "no pool serves the model orphan", "", 0, 0, 0},
		{"model outside the plan", func(_ *desk, p *Principal, r *Request) { p.PlanCode, r.Model = "free", "epic" },
			NotEntitled, 403, 0, "plan free does not include the model epic", "", 0, 0, 0},
		{"task wider than the tenant may run", func(d *desk, _ *Principal, r *Request) { d.doc.Plans[0].Settings.MaxRunningUnits, r.Model = 7, "epic" },
			NotEntitled, 403, 0, "8 slot units is larger than the 7", UnitSlots, 7, 0, 8},
		{"D30: task wider than every pool", func(d *desk, _ *Principal, r *Request) { d.doc.Pools[1].CapacityUnits, r.Model = 7, "epic" },
			ResourceClassDisabled, 503, time.Minute, "larger than every pool of the model epic (7)", UnitSlots, 7, 0, 8},
		{"D30: task wider than a cap group", func(d *desk, _ *Principal, r *Request) {
			d.doc.Pools[1].Parents, r.Model = []string{"account"}, "epic"
			d.doc.Pools = append(d.doc.Pools, policy.Pool{Key: "account", Kind: policy.PoolCapGroup, CapacityUnits: 6})
		}, ResourceClassDisabled, 503, time.Minute, "(6)", UnitSlots, 6, 0, 8},
		{"lane has no account in the group", func(d *desk, _ *Principal, _ *Request) { d.doc.Lanes[0].Accounts = nil },
			ResourceClassDisabled, 503, time.Minute, "MAIN may not run in the pool group video", "", 0, 0, 0},
		{"lane full of tasks", func(d *desk, _ *Principal, _ *Request) { d.queue("MAIN", me, 1, 1_000, 1_000) },
			LaneQueueFull, 429, 30 * time.Second, "1000 of at most 1000 tasks", UnitTasks, 1_000, 1_000, 1},
		{"lane full of units", func(d *desk, _ *Principal, _ *Request) { d.queue("MAIN", me, 1, 20, 9_997) },
			LaneQueueFull, 429, 30 * time.Second, "9997 of at most 10000 fairness units", UnitFairness, 10_000_000, 9_997_000, 4_000},
		{"platform full of tasks", func(d *desk, _ *Principal, _ *Request) {
			d.queue("REST", whale, 1, 1_990, 10)
			d.queue("MAIN", me, 1, 10, 10)
		},
			PlatformOverloaded, 503, 30 * time.Second, "2000 of at most 2000 tasks", UnitTasks, 2_000, 2_000, 1},
		{"platform full of units", func(d *desk, _ *Principal, _ *Request) {
			d.queue("REST", whale, 1, 10, 19_980)
			d.queue("MAIN", me, 1, 10, 20)
		},
			PlatformOverloaded, 503, 30 * time.Second, "20000 of at most 20000 fairness units", UnitFairness, 20_000_000, 20_000_000, 4_000},
		// μ = 0.75 × 100 × 1/30 = 2.5 units/s; 4 own units and 746 of the equal neighbour capped at 4: 8 / 2.5 = 3.2 s.
		{"expected wait above the tenant's bound", func(d *desk, _ *Principal, _ *Request) {
			d.queue("MAIN", whale, 1, 90, 746)
			d.doc.Plans[0].Settings.MaxWaitSeconds = 3
		}, ExpectedWaitTooLong, 429, 5 * time.Second, "in about 4 s, it may wait 3 s", UnitSeconds, 3, 4, 0},
		{"expected wait above the client's deadline", func(d *desk, _ *Principal, r *Request) {
			d.queue("MAIN", me, 1, 5, 496) // (496+4)/2.5 = 200 s
			r.DeadlineSeconds = 20
		}, ExpectedWaitTooLong, 429, 180 * time.Second, "in about 200 s, it may wait 20 s", UnitSeconds, 20, 200, 0},
		{"expected wait above the lane's bound", func(d *desk, _ *Principal, _ *Request) {
			d.queue("MAIN", me, 1, 5, 9_000-4)
			d.doc.Lanes[0].MaxWaitSeconds = 60
		}, ExpectedWaitTooLong, 429, 10 * time.Minute, "in about 3600 s, it may wait 60 s", UnitSeconds, 60, 3_600, 0},
		{"user's rate is 0", func(d *desk, _ *Principal, _ *Request) { d.doc.Plans[0].Settings.UserSubmitsPerMin = 0 },
			UserRateLimit, 429, 0, "its limit is 0 a minute", UnitPerMinute, 0, 0, 1},
		{"tenant's rate is 0", func(d *desk, _ *Principal, _ *Request) { d.doc.Plans[0].Settings.SubmitsPerMinute = 0 },
			TenantRateLimit, 429, 0, "its limit is 0 a minute", UnitPerMinute, 0, 0, 1},
		{"the store's own refusal passes through", func(d *desk, _ *Principal, _ *Request) {
			d.refusal = QueueFull(UserQueueFull, "user", "", UnitTasks, 20, 20, 1)
		}, UserQueueFull, 429, 15 * time.Second, "this user has 20 of at most 20 tasks", UnitTasks, 20, 20, 1},
		{"tenant's units, said in units", func(d *desk, _ *Principal, _ *Request) {
			d.refusal = QueueFull(TenantQueueFull, "tenant", "", UnitFairness, 1_000_000, 997_500, 4_000)
		}, TenantQueueFull, 429, 15 * time.Second, "998 of at most 1000 fairness units waiting, this task adds 4", UnitFairness, 1_000_000, 997_500, 4_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d, who, r := newDesk(), principal(), request()
			tc.arrange(d, &who, &r)
			_, err := d.gate().Submit(context.Background(), who, r, "key")
			var no *Refusal
			if !errors.As(err, &no) {
				t.Fatalf("err = %v, want a refusal", err)
			}
			if no.Decision != tc.decision || no.Decision.Status() != tc.status || no.RetryAfter != tc.retry {
				t.Errorf("got %s %d after %v, want %s %d after %v", no.Decision, no.Decision.Status(), no.RetryAfter, tc.decision, tc.status, tc.retry)
			}
			if !strings.Contains(no.Message, tc.says) {
				t.Errorf("message %q does not say %q", no.Message, tc.says)
			}
			if no.Unit != tc.unit || no.Limit != tc.limit || no.Have != tc.have || no.Want != tc.want {
				t.Errorf("numbers: %s limit %d have %d want %d", no.Unit, no.Limit, no.Have, no.Want)
			}
			if len(d.written) != 0 || len(d.stored) != 0 {
				t.Errorf("a refusal left %d tasks and %d answers behind", len(d.written), len(d.stored))
			}
			if d.counted[tc.decision] != 1 {
				t.Errorf("counted: %v", d.counted)
			}
		})
	}
}

func TestPeopleWhoMayNot(t *testing.T) {
	t.Parallel()
	d, who := newDesk(), principal()
	who.Suspended = true
	if _, err := d.gate().Submit(context.Background(), who, request(), "k"); control.CodeOf(err) != control.CodeForbidden {
		t.Errorf("suspended tenant: %v", err)
	}
	d = newDesk()
	d.blocked = true
	if _, err := d.gate().Submit(context.Background(), principal(), request(), "k"); control.CodeOf(err) != control.CodeForbidden {
		t.Errorf("blocked user: %v", err)
	}
	d = newDesk()
	who = principal()
	who.PlanCode = "gone"
	if _, err := d.gate().Submit(context.Background(), who, request(), "k"); control.CodeOf(err) != control.CodeUnavailable {
		t.Errorf("plan that is not in the policy: %v", err)
	}
	d = newDesk()
	d.doc = nil
	if _, err := d.gate().Submit(context.Background(), principal(), request(), "k"); control.CodeOf(err) != control.CodeUnavailable {
		t.Errorf("no policy: %v", err)
	}
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	d := newDesk()
	g := d.gate()
	ctx := context.Background()
	first, err := g.Submit(ctx, principal(), request(), "k")
	if err != nil {
		t.Fatal(err)
	}
	// The stored answer comes first: not even a closed platform or a suspended tenant changes it.
	d.doc = document()
	d.doc.Switches.AdmissionOpen = false
	who := principal()
	who.Suspended = true
	again := request()
	again.TraceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	second, err := g.Submit(ctx, who, again, "k")
	if err != nil || !second.Replayed {
		t.Fatalf("replay: %+v %v", second, err)
	}
	second.Replayed = false
	one, _ := json.Marshal(first)
	two, _ := json.Marshal(second)
	if string(one) != string(two) {
		t.Errorf("the answer changed:\n%s\n%s", one, two)
	}
	for _, other := range []func(*Request){
		func(r *Request) { r.Prompt += "." }, func(r *Request) { r.User = "u-2" }, func(r *Request) { r.Seconds = 10 },
		func(r *Request) { n := int64(0); r.Seed = &n }, func(r *Request) { r.DeadlineSeconds = 9 }, func(r *Request) { r.Resolution = "720p" },
	} {
		r := request()
		other(&r)
		if _, err := g.Submit(ctx, principal(), r, "k"); control.CodeOf(err) != control.CodeIdemConflict {
			t.Errorf("%+v under the same key: %v", r, err)
		}
	}
	if len(d.written) != 1 {
		t.Errorf("%d tasks written", len(d.written))
	}
}

func TestIdempotencyRaceGetsTheWinnersAnswer(t *testing.T) {
	t.Parallel()
	d := newDesk()
	winner := Answer{Decision: Accepted, Lane: "MAIN", FairnessMilli: 4_000}
	text, _ := json.Marshal(winner)
	d.raced = &StoredAnswer{RequestHash: request().hash(), Answer: text}
	got, err := d.gate().Submit(context.Background(), principal(), request(), "k")
	if err != nil || !got.Replayed || got.Lane != "MAIN" {
		t.Errorf("got %+v %v", got, err)
	}
	d.raced.RequestHash = []byte("another")
	if _, err := d.gate().Submit(context.Background(), principal(), request(), "k2"); control.CodeOf(err) != control.CodeIdemConflict {
		t.Errorf("other body: %v", err)
	}
}

func TestEveryBrokenFieldIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk()
	seed := int64(-1)
	r := Request{User: strings.Repeat("u", 129), Project: "a\x00b", Model: "clip", NegativePrompt: strings.Repeat("猫", 4001),
		Resolution: "8k", Seconds: -5, Seed: &seed, DeadlineSeconds: -1}
	_, err := d.gate().Submit(context.Background(), principal(), r, "k")
	var e *control.Error
	if !errors.As(err, &e) || e.Code != control.CodeInvalid {
		t.Fatalf("err = %v", err)
	}
	got := map[string]string{}
	for _, f := range e.Fields {
		got[f.Field] = f.Key
	}
	want := map[string]string{"X-Fairlane-User": "length", "project": "chars", "prompt": "required", "negative_prompt": "length",
		"resolution": "one_of", "duration_seconds": "one_of", "seed": "range", "deadline_seconds": "range"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	for _, key := range []string{"", strings.Repeat("k", 256), "a\nb", "\xff"} {
		if _, err := d.gate().Submit(context.Background(), principal(), request(), key); control.CodeOf(err) != control.CodeInvalid {
			t.Errorf("key %q: %v", key, err)
		}
	}
	if _, err := d.gate().Submit(context.Background(), principal(), Request{User: "u", Model: "nosuch", Prompt: "x"}, "k"); control.CodeOf(err) != control.CodeInvalid {
		t.Errorf("unknown model: %v", err)
	}
}

func TestRoutingAndOverrides(t *testing.T) {
	t.Parallel()
	d := newDesk()
	r := request()
	r.Model = "epic"
	a, err := d.gate().Submit(context.Background(), principal(), r, "k1")
	if err != nil || a.Lane != "COSTLY" {
		t.Fatalf("costly work goes to its lane: %+v %v", a, err)
	}
	rest := "REST"
	d.doc.Tenants = []policy.TenantOverride{{TenantID: me, Lane: &rest}}
	a, err = d.gate().Submit(context.Background(), principal(), request(), "k2")
	if err != nil || a.Lane != "REST" || a.Decision != AcceptedBestEffort || a.EstimatedStart != nil {
		t.Errorf("a lane of weight 0 promises nothing: %+v %v", a, err)
	}
}

// A full lane still takes a tenant's guaranteed room, and the transaction is told to check it exactly.
func TestGuaranteedRoomInAFullLane(t *testing.T) {
	t.Parallel()
	d := newDesk()
	d.queue("MAIN", whale, 1, 1_000, 1_000)
	d.queue("REST", me, 1, 9, 9)
	if _, err := d.gate().Submit(context.Background(), principal(), request(), "k"); err != nil {
		t.Fatalf("below its guaranteed room: %v", err)
	}
	if n := d.written[0]; n.Crowded == nil || n.Crowded.Decision != LaneQueueFull || n.Guaranteed != 10 {
		t.Errorf("told the store %+v", n.Crowded)
	}
}

func TestDecisionTableIsWhole(t *testing.T) {
	t.Parallel()
	if len(Decisions) != len(rules) {
		t.Fatalf("%d decisions, %d rules", len(Decisions), len(rules))
	}
	for _, d := range Decisions {
		if s := d.Status(); s != 202 && s != 403 && s != 429 && s != 503 {
			t.Errorf("%s has status %d", d, s)
		}
		if (d.Status() == 202) == strings.HasPrefix(string(d), "REJECT_") {
			t.Errorf("%s has status %d", d, d.Status())
		}
	}
}
