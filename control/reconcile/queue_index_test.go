package reconcile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"fairlane/control"
	"fairlane/control/admit"
	"fairlane/control/queue"
	"fairlane/control/reconcile"
	"fairlane/policy"
	"fairlane/store/facts"
	"fairlane/store/speed"
	"fairlane/store/storetest"
)

const group = policy.DefaultGroup

// world has queued tasks in PostgreSQL and an index of them on Redis.
type world struct {
	t        *testing.T
	ctx      context.Context
	db       *storetest.Database
	facts    *facts.DB
	rdb      *redis.Client
	prefix   string
	index    *speed.QueueIndex
	backlogs *facts.Backlogs
	rebuild  *reconcile.QueueIndexRebuilder
	log      *bytes.Buffer
	tenants  []policy.Tenant
	last     int
}

func newWorld(t *testing.T, tasks int) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), db: storetest.New(t), log: &bytes.Buffer{}}
	var err error
	w.facts, err = facts.Open(w.ctx, w.db.URL, "test", 6)
	w.must(err)
	t.Cleanup(w.facts.Close)
	w.must(policyOf(w))
	w.tenants, err = facts.NewTenants(w.facts).Onboard(w.ctx, []facts.NewTenant{
		{Code: "a", Name: "A", Plan: "standard", Users: []facts.NewUser{{ExternalID: "u"}}}, {Code: "b", Name: "B", Plan: "standard", Users: []facts.NewUser{{ExternalID: "u"}}},
	}, control.System, "")
	w.must(err)
	space := storetest.Redis(t)
	options, err := redis.ParseURL(space.URL)
	w.must(err)
	w.rdb, w.prefix = redis.NewClient(options), space.Prefix
	client, err := speed.Open(space.URL)
	w.must(err)
	t.Cleanup(func() { _, _ = w.rdb.Close(), client.Close() })
	log := slog.New(slog.NewTextHandler(w.log, nil))
	w.index, w.backlogs = speed.NewQueueIndex(client, space.Prefix, log, nil), facts.NewBacklogs(w.facts)
	w.rebuild = reconcile.NewQueueIndexRebuilder(w.backlogs, w.index, facts.NewLeases(w.facts), "me", log)
	w.admit(tasks)
	w.exec(`UPDATE generation_task SET next_eligible_at = now() - interval '1 minute' WHERE provider_slot_units > 1`) // the others are delayed
	w.must(w.index.Begin(w.ctx, group, false))
	w.must(w.rebuild.Rebuild(w.ctx, group))
	w.log.Reset()
	return w
}

func policyOf(w *world) error {
	tenants := facts.NewTenants(w.facts)
	d := policy.Default()
	for i := range d.Plans {
		d.Plans[i].Settings.UserMaxQueuedTasks = 5000
	}
	_, err := policy.NewPublisher(facts.NewPolicies(w.facts), tenants).Publish(w.ctx, policy.Publication{Document: d, Reason: "test", Actor: control.System})
	return err
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) admit(n int) {
	w.t.Helper()
	list := make([]admit.NewTask, n)
	for i := range list {
		w.last++
		list[i] = admit.NewTask{
			TaskID: uuid.Must(uuid.NewV7()), TenantID: w.tenants[i%2].ID, User: "u", Key: fmt.Sprint(w.last), RequestHash: []byte{1},
			Answer: json.RawMessage(`{}`), Kind: control.KindVideo, Lane: control.LaneStandard, Group: group, Band: control.Band(2 + i%2), ResourceClass: "STANDARD",
			Model: "clip", Route: "clip|720p", SlotUnits: int64(1 + i%3), FairnessMilli: 1000, CostMicro: 1, PriceMicro: 1,
			MeanSeconds: 30, P95Seconds: 60.123456, MaxAttempts: 3, PolicyVersion: 1, EstimateVersion: 1, Parameters: json.RawMessage(`{}`), Actor: "test",
		}
	}
	done, err := facts.NewAdmissions(w.facts).InsertTasks(w.ctx, list)
	w.must(err)
	for _, d := range done {
		w.must(d.Err)
	}
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.db.Pool.Exec(w.ctx, sql, args...)
	w.must(err)
}

func (w *world) backlog() []queue.Item {
	w.t.Helper()
	items, err := w.backlogs.Backlog(w.ctx, group, uuid.Nil, 10_000)
	w.must(err)
	return items
}

func (w *world) sweep() reconcile.Result {
	w.t.Helper()
	r, err := w.rebuild.Sweep(w.ctx, []string{group})
	w.must(err)
	return r
}

// keys finds the keys of the index by their last part.
func (w *world) keys(pattern string) []string {
	w.t.Helper()
	var out []string
	it := w.rdb.Scan(w.ctx, 0, w.prefix+"q:*:"+pattern, 1000).Iterator()
	for it.Next(w.ctx) {
		out = append(out, it.Val())
	}
	w.must(it.Err())
	return out
}

// holder is the items key that holds a task.
func (w *world) holder(task uuid.UUID) string {
	w.t.Helper()
	for _, k := range w.keys("items") {
		if w.rdb.HExists(w.ctx, k, string(task[:])).Val() {
			return k
		}
	}
	w.t.Fatalf("task %v is in no slot", task)
	return ""
}

// same fails unless the index holds what waits and nothing else, in every view of it.
func (w *world) same() {
	w.t.Helper()
	rows := w.backlog()
	var ask []queue.Gone
	milli := int64(0)
	for _, r := range rows {
		ask = append(ask, queue.Gone{TaskID: r.TaskID, Lane: r.Lane, TenantID: r.TenantID})
		milli += r.CostMilli
	}
	entries, err := w.index.Entries(w.ctx, group, ask)
	w.must(err)
	for i := range entries {
		if d := entries[i].Differs(&rows[i]); d != "" {
			w.t.Errorf("task %v is %s", rows[i].TaskID, d)
		}
	}
	q, err := w.index.Open(w.ctx, group, time.Now().Add(time.Minute))
	w.must(err)
	if d := q.Depth(control.LaneStandard); d.Tasks != int64(len(rows)) || d.Milli != milli || q.Len() != len(rows) {
		w.t.Errorf("the index holds %d tasks of %d milli-units, %d wait of %d", d.Tasks, d.Milli, len(rows), milli)
	}
	inLines := 0
	for _, k := range append(w.keys("t:*"), w.keys("delayed")...) {
		inLines += int(w.rdb.ZCard(w.ctx, k).Val())
	}
	if inLines != len(rows) {
		w.t.Errorf("%d tasks stand in lines, %d wait", inLines, len(rows))
	}
}

// Every way in which index and PostgreSQL can disagree is reported and repaired; then nothing is left.
func TestRebuilderRepairsEveryDirection(t *testing.T) {
	t.Parallel()
	for kind, disturb := range map[string]func(w *world, some []queue.Item){
		queue.DiffersMissing: func(w *world, some []queue.Item) {
			for _, it := range some {
				w.rdb.HDel(w.ctx, w.holder(it.TaskID), string(it.TaskID[:]))
			}
		},
		"missing, removed by a version that never was": func(w *world, some []queue.Item) {
			var gone []queue.Gone
			for _, it := range some {
				gone = append(gone, queue.Gone{TaskID: it.TaskID, Version: 99, Lane: it.Lane, TenantID: it.TenantID})
			}
			w.must(w.index.Write(w.ctx, group, nil, gone))
		},
		queue.DiffersExtra: func(w *world, some []queue.Item) { // tasks that nobody knows
			for i := range some {
				some[i].TaskID = uuid.New()
			}
			w.must(w.index.Write(w.ctx, group, some, nil))
		},
		"extra, terminal": func(w *world, some []queue.Item) {
			for _, it := range some {
				w.exec(`UPDATE generation_task SET state = 'CANCELED', version = version + 1 WHERE task_id = $1`, it.TaskID)
			}
		},
		queue.DiffersOlder: func(w *world, some []queue.Item) {
			for _, it := range some {
				w.exec(`UPDATE generation_task SET version = version + 3, queued_since = queued_since + interval '1 second' WHERE task_id = $1`, it.TaskID)
			}
		},
		queue.DiffersNewer: func(w *world, some []queue.Item) {
			for i := range some {
				some[i].Version, some[i].Band = 77, 4
			}
			w.must(w.index.Write(w.ctx, group, some, nil))
		},
		queue.DiffersFields: func(w *world, some []queue.Item) {
			for _, it := range some {
				w.exec(`UPDATE generation_task SET fairness_units = 5000, priority_band = 4 WHERE task_id = $1`, it.TaskID)
			}
		},
		queue.DiffersDamaged: func(w *world, some []queue.Item) {
			for _, it := range some {
				for _, line := range append(w.keys("t:*"), w.keys("delayed")...) {
					w.rdb.ZRem(w.ctx, line, string(it.TaskID[:]))
				}
			}
		},
		"damaged, not to be read": func(w *world, some []queue.Item) {
			for _, it := range some {
				w.rdb.HSet(w.ctx, w.holder(it.TaskID), string(it.TaskID[:]), "nonsense")
			}
		},
		"damaged, lines of another type": func(w *world, _ []queue.Item) {
			line := w.keys("t:*")[0]
			w.rdb.Del(w.ctx, line)
			w.rdb.Set(w.ctx, line, "not a sorted set", 0)
		},
		"nothing": func(*world, []queue.Item) {},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 40)
			w.same()
			disturb(w, w.backlog()[5:15])
			first := w.sweep()
			said, _, _ := strings.Cut(kind, ",")
			if kind == "nothing" {
				if first != (reconcile.Result{}) {
					t.Errorf("found %+v where nothing differs", first)
				}
			} else if first.Found == 0 || first.Repaired != first.Found || !strings.Contains(w.log.String(), "difference="+said) {
				t.Errorf("%+v, and in the log:\n%s", first, w.log)
			}
			if again := w.sweep(); again != (reconcile.Result{}) {
				t.Errorf("after the repair it still finds %+v", again)
			}
			w.same()
		})
	}
}

// A sweep that fails goes on where it was; its places are pages.
type failing struct {
	*facts.Backlogs
	left int
}

var errAway = errors.New("away")

func (f *failing) Look(ctx context.Context, group string, tasks []uuid.UUID) ([]queue.Item, error) {
	if f.left--; f.left < 0 {
		return nil, errAway
	}
	return f.Backlogs.Look(ctx, group, tasks)
}

func TestRebuilderGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30)
	w.exec(`UPDATE generation_task SET version = version + 1`)
	f := &failing{w.backlogs, 0}
	r := reconcile.NewQueueIndexRebuilder(f, w.index, facts.NewLeases(w.facts), "other", slog.New(slog.DiscardHandler))
	if _, err := r.Sweep(w.ctx, []string{group}); !errors.Is(err, errAway) {
		t.Fatalf("got %v", err)
	}
	f.left = 1000
	if got, err := r.Sweep(w.ctx, []string{group}); err != nil || got.Repaired != 30 {
		t.Fatalf("%+v, %v", got, err)
	}
	w.same()
}

func TestOneProcessRebuildsAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	leases := facts.NewLeases(w.facts)
	term, held, err := leases.Acquire(w.ctx, "queue-index/"+group, "another", time.Minute)
	if err != nil || !held {
		t.Fatal(held, err)
	}
	if err := w.rebuild.Rebuild(w.ctx, group); control.CodeOf(err) != control.CodeConflict {
		t.Errorf("two rebuild at once: %v", err)
	}
	w.exec(`UPDATE generation_task SET version = version + 1`)
	if r := w.sweep(); r.Found != 0 {
		t.Errorf("swept beside another: %+v", r)
	}
	w.must(leases.Release(w.ctx, "queue-index/"+group, "another", term))
	if r := w.sweep(); r.Repaired != 1 {
		t.Errorf("afterwards: %+v", r)
	}
}

// An index that was lost is not the sweep's business, and an empty one cannot be read before it is built.
func TestSweepLeavesALostIndexAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5)
	for _, k := range w.keys("units") {
		w.rdb.Del(w.ctx, k)
	}
	if r := w.sweep(); r != (reconcile.Result{}) {
		t.Errorf("%+v", r)
	}
	if _, err := w.index.Open(w.ctx, group, time.Now()); control.CodeOf(err) != control.CodeNotFound {
		t.Errorf("a lost index opens: %v", err)
	}
	w.must(w.index.Begin(w.ctx, group, false))
	if _, err := w.index.Open(w.ctx, group, time.Now()); control.CodeOf(err) != control.CodeNotFound {
		t.Errorf("an index that was only begun opens: %v", err)
	}
	w.must(w.rebuild.Rebuild(w.ctx, group))
	w.same()
}

// The rebuilder beside the indexer in full work, both at once, the indexer's batches late, twice and in
// any order: in the end the index is what waits.
func TestRebuilderBesideTheIndexer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 60)
	var both sync.WaitGroup
	stop := make(chan struct{})
	both.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := w.rebuild.Sweep(w.ctx, []string{group}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	all := w.backlog()
	for round := range 12 {
		for i := range 10 {
			it := all[(round*7+i*3)%len(all)]
			w.exec(`UPDATE generation_task SET state = CASE WHEN state = 'QUEUED' THEN 'DISPATCHING' ELSE 'QUEUED' END, version = version + 1 WHERE task_id = $1`, it.TaskID)
		}
		waits, err := w.backlogs.Look(w.ctx, group, ids(all))
		w.must(err)
		var gone []queue.Gone
		for _, it := range all {
			var version int64
			var state string
			w.must(w.db.Pool.QueryRow(w.ctx, `SELECT version, state FROM generation_task WHERE task_id = $1`, it.TaskID).Scan(&version, &state))
			if state != "QUEUED" {
				gone = append(gone, queue.Gone{TaskID: it.TaskID, Version: version, Lane: it.Lane, TenantID: it.TenantID})
			}
		}
		w.must(w.index.Write(w.ctx, group, waits, gone))
		w.must(w.index.Write(w.ctx, group, all, nil)) // as they were at the start
	}
	close(stop)
	both.Wait()
	w.sweep()
	w.same()
}

func ids(items []queue.Item) []uuid.UUID {
	out := make([]uuid.UUID, len(items))
	for i := range items {
		out[i] = items[i].TaskID
	}
	return out
}
