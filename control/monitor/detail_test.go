package monitor_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/monitor"
)

// objects is what single objects are now.
type objects struct {
	mu      sync.Mutex
	tasks   map[uuid.UUID]monitor.TaskNow
	tenants []monitor.TenantNow
	down    error
	reads   int
}

func (o *objects) TasksNow(_ context.Context, ids []uuid.UUID) ([]monitor.TaskNow, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reads++
	var out []monitor.TaskNow
	for _, id := range ids {
		if t, ok := o.tasks[id]; ok {
			out = append(out, t)
		}
	}
	return out, o.down
}

func (o *objects) TenantsNow(_ context.Context, ids []uuid.UUID) ([]monitor.TenantNow, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []monitor.TenantNow
	for _, t := range o.tenants {
		for _, id := range ids {
			if t.ID == id {
				out = append(out, t)
			}
		}
	}
	return out, o.down
}

// follower keeps what it was told of a topic.
type follower struct {
	mu      sync.Mutex
	snap    monitor.Snapshot
	patches int
}

// now is what it was told last, and how often.
func (f *follower) now() (monitor.Snapshot, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.snap, f.patches
}

func (o *objects) asked() int { o.mu.Lock(); defer o.mu.Unlock(); return o.reads }

func (f *follower) row(t *testing.T, key string, into any) {
	t.Helper()
	snap, _ := f.now()
	for _, r := range snap.Rows {
		if r.Key == key {
			if err := json.Unmarshal(r.JSON, into); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no row %s in %+v", key, snap)
}

func follow(t *testing.T, m *monitor.Monitor, topic monitor.Topic) (*follower, func()) {
	t.Helper()
	f := &follower{}
	detach, ok := m.Attach(topic, func(u monitor.Update) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.snap = u.Snapshot; u.Patch != nil {
			f.patches++
		}
	})
	if !ok {
		t.Fatalf("there is no topic %s", topic)
	}
	release := m.Watch(topic)
	return f, func() { release(); detach() }
}

func TestSingleObjectsAreReadWhileSomebodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &objects{tasks: map[uuid.UUID]monitor.TaskNow{tenant(50): {ID: tenant(50), State: control.TaskQueued, Version: 3}},
			tenants: []monitor.TenantNow{
				{ID: tenant(1), Lane: "STANDARD", QueuedTasks: 4, QueuedMilli: 8000, RunningTasks: 2, RunningUnits: 3, DebtMilli: -500, OldestAt: time.Now().Add(-time.Minute)},
				{ID: tenant(1), Lane: "EXPENSIVE", RunningTasks: 1, RunningUnits: 8},
			}}
		f := example()
		f.machine.SampledAt = time.Now()
		m, stop := start(t, f, monitor.Config{Details: o})
		defer stop()
		pass(5 * time.Second)
		if n := o.asked(); n != 0 {
			t.Errorf("%d reads of objects that nobody looks at", n)
		}
		task, leaveTask := follow(t, m, monitor.Topic(monitor.TaskPrefix+tenant(50).String()))
		other, leaveOther := follow(t, m, monitor.Topic(monitor.TenantPrefix+tenant(1).String()))
		pass(3 * time.Second)
		var live monitor.TaskLive
		task.row(t, monitor.TaskKey, &live)
		if live.State != "QUEUED" || live.Version != 3 || live.Looked == 0 {
			t.Errorf("%+v", live)
		}
		_, before := task.now()
		pass(10 * time.Second)
		_, after := task.now()
		if n := after - before; n < 4 || n > 6 {
			t.Errorf("a waiting task was looked up %d times in ten seconds, want every other second", n)
		}
		var sum monitor.TenantLive
		other.row(t, monitor.TenantKey, &sum)
		if sum.Running != 3 || sum.RunningUnits != 11 || sum.QueuedTasks != 4 || sum.OldestAt.IsZero() {
			t.Errorf("%+v", sum)
		}
		var lane monitor.TenantLaneLive
		other.row(t, "STANDARD", &lane)
		var history monitor.HistoryRow
		other.row(t, monitor.HistoryKey, &history)
		if lane.DebtMilli != -500 || history.SampledMilli != f.machine.SampledAt.UnixMilli() {
			t.Errorf("%+v %+v", lane, history)
		}
		last, _ := task.now()
		seq := last.Seq
		leaveTask()
		leaveOther()
		reads := o.asked()
		pass(20 * time.Second)
		if n := o.asked() - reads; n != 0 {
			t.Errorf("%d reads after everybody has left", n)
		}
		again, leave := follow(t, m, monitor.Topic(monitor.TaskPrefix+tenant(50).String()))
		defer leave()
		pass(3 * time.Second)
		back, _ := again.now()
		if back.Seq-seq < 1000 {
			t.Errorf("who comes back with number %d must not take %d for its next ones", seq, back.Seq)
		}
		o.mu.Lock()
		o.down = errors.New("away")
		o.mu.Unlock()
		pass(10 * time.Second)
		if still, _ := again.now(); !still.AsOf.Equal(back.AsOf) {
			t.Error("what cannot be read keeps its old time")
		}
	})
}

func TestTopicsOfObjectsAreBoundedAndSpelledOneWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, stop := start(t, example(), monitor.Config{Details: &objects{}})
		defer stop()
		none := func(monitor.Update) {}
		for _, name := range []monitor.Topic{"task:", "task:1", "tenant:x", "lane:A", "task:" + monitor.Topic("{"+tenant(1).String()+"}"), "task:urn:uuid:" + monitor.Topic(tenant(1).String())} {
			if _, ok := m.Attach(name, none); ok {
				t.Errorf("%q is a topic", name)
			}
		}
		var detach []func()
		for i := range monitor.MaxDetails {
			d, ok := m.Attach(monitor.Topic(monitor.TaskPrefix+tenant(i).String()), none)
			if !ok {
				t.Fatalf("only %d objects can be looked at", i)
			}
			detach = append(detach, d)
		}
		one := monitor.Topic(monitor.TaskPrefix + tenant(100_000).String())
		if _, ok := m.Attach(one, none); ok {
			t.Error("there is no bound")
		}
		m.Watch(one)() // of a topic that was refused
		detach[0]()
		detach[0]()
		d, ok := m.Attach(one, none)
		if !ok {
			t.Error("a place that was given back is not free")
		}
		d()
	})
}
