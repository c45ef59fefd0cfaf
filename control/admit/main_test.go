package admit

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"fairlane/control"
	"fairlane/control/estimate"
	"fairlane/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// document is a small platform: a lane with 100 slot units of its own, one with leftovers only, and
// one for costly work; three models on one pool each.
func document() *policy.Document {
	lane := func(code string, weight, reserved int64) policy.Lane {
		return policy.Lane{
			Code: code, Weight: weight, AdmissionOpen: true, WaitTargetSeconds: 60, MaxQueuedTasks: 1_000,
			MaxQueuedUnits: 10_000, MaxAttempts: 3, Accounts: []policy.LaneAccount{{PoolGroup: "video", ReservedUnits: reserved}},
		}
	}
	model := func(code, class string, slots int64) policy.Model {
		return policy.Model{
			Code: code, Kind: "VIDEO", ResourceClass: class, Resolutions: []string{"720p", "1080p"}, Seconds: []int64{5, 10},
			SlotUnits: slots, MeanSeconds: 60, P95Seconds: 150, CostMicro: 400_000, PriceMicro: 500_000, Enabled: true,
		}
	}
	pool := func(key, model string, units int64) policy.Pool {
		return policy.Pool{Key: key, Kind: policy.PoolProvider, Group: "video", Model: model, CapacityUnits: units}
	}
	return &policy.Document{
		Scheduling: policy.Scheduling{ProviderSecondBase: 30, CostBaseMicro: 100_000, GPUSecondBase: 30},
		Lanes:      []policy.Lane{lane("MAIN", 1, 100), lane("REST", 0, 0), lane("COSTLY", 1, 20)},
		PoolGroups: []policy.PoolGroup{{Code: "video"}},
		Plans: []policy.Plan{
			{Code: "pro", Settings: policy.TenantSettings{
				Lane: "MAIN", Weight: 1, MaxRunningTasks: 100, MaxRunningUnits: 50, MaxQueuedTasks: 100, MaxQueuedUnits: 1_000,
				SubmitsPerMinute: 100, UserSubmitsPerMin: 5, UserMaxQueuedTasks: 20, Band: 2,
			}},
			{Code: "free", Models: []string{"clip"}, Settings: policy.TenantSettings{
				Lane: "REST", Weight: 1, MaxRunningTasks: 10, MaxRunningUnits: 10, MaxQueuedTasks: 10, MaxQueuedUnits: 100,
				SubmitsPerMinute: 10, UserSubmitsPerMin: 5, UserMaxQueuedTasks: 5, Band: 4,
			}},
		},
		Models:  []policy.Model{model("clip", "NORMAL", 1), model("epic", "EXPENSIVE", 8), model("orphan", "NORMAL", 1)},
		Pools:   []policy.Pool{pool("provider:a:clip", "clip", 90), pool("provider:a:epic", "epic", 30)},
		Routing: []policy.RoutingRule{{Mark: "RECOVERY", Lane: "REST"}, {ResourceClass: "EXPENSIVE", Lane: "COSTLY"}},
		Limits: policy.Limits{
			MaxQueuedTasks: 2_000, MaxQueuedUnits: 20_000, GuaranteedQueue: 10, SafeUtilisation: 0.75,
		},
		Switches: policy.Switches{AdmissionOpen: true, SchedulingRunning: true},
	}
}

// desk is the gate's surroundings: what it is told, and what it handed over to be stored.
type desk struct {
	doc     *policy.Document
	load    *Load
	stored  map[string]StoredAnswer
	blocked bool
	factor  estimate.Factor
	book    *estimate.Book
	refusal error
	raced   *StoredAnswer
	written []NewTask
	now     time.Time
	counted map[Decision]int
}

func newDesk() *desk {
	return &desk{doc: document(), load: &Load{Lanes: map[string]*LaneLoad{}}, stored: map[string]StoredAnswer{}, now: noon, counted: map[Decision]int{}}
}

func (d *desk) gate() *Gate {
	return NewGate(Config{
		Policies: d, Store: d, Loads: d, Estimates: d, Now: func() time.Time { return d.now },
		OnDecision: func(x Decision) { d.counted[x]++ },
	})
}

func (d *desk) Current() *policy.Version {
	if d.doc == nil {
		return nil
	}
	return &policy.Version{Number: 7, Document: d.doc}
}

func (d *desk) Load(context.Context) (*Load, error) { return d.load, nil }

func (d *desk) StoredAnswer(_ context.Context, _ uuid.UUID, key string) (StoredAnswer, error) {
	if s, ok := d.stored[key]; ok {
		return s, nil
	}
	return StoredAnswer{}, control.Errorf(control.CodeNotFound, "none")
}

func (d *desk) Standing(context.Context, uuid.UUID, string) (Standing, error) {
	return Standing{Blocked: d.blocked, Factor: d.factor}, nil
}

func (d *desk) Book() *estimate.Book { return d.book }

func (d *desk) InsertTasks(_ context.Context, tasks []NewTask) ([]Inserted, error) {
	out := make([]Inserted, len(tasks))
	for i, n := range tasks {
		if d.refusal != nil || d.raced != nil {
			out[i] = Inserted{Err: d.refusal, Stored: d.raced}
			continue
		}
		d.written = append(d.written, n)
		d.stored[n.Key] = StoredAnswer{RequestHash: n.RequestHash, Answer: n.Answer}
	}
	return out, nil
}

// queue puts a backlog into a lane, in fairness units of which each is a task of 30 s on one slot unit.
func (d *desk) queue(lane string, tenant uuid.UUID, weight, tasks, units int64) {
	in := d.load.Lanes[lane]
	if in == nil {
		in = &LaneLoad{Tenants: map[uuid.UUID]TenantLoad{}}
		d.load.Lanes[lane] = in
	}
	in.Tenants[tenant] = TenantLoad{Tasks: tasks, Milli: units * control.Milli, Weight: weight}
	in.Tasks += tasks
	in.Milli += units * control.Milli
	in.SlotSeconds += float64(units) * 30
	in.SampleMilli += units * control.Milli
	d.load.Tasks += tasks
	d.load.Milli += units * control.Milli
}

var (
	me    = uuid.MustParse("01939b00-0000-7000-8000-000000000001")
	whale = uuid.MustParse("01939b00-0000-7000-8000-000000000002")
)

func principal() Principal {
	return Principal{TenantID: me, TenantCode: "me", TokenID: uuid.New(), TokenName: "main", PlanCode: "pro"}
}

func request() Request { return Request{User: "u-1", Model: "clip", Prompt: "a fox in the snow"} }
