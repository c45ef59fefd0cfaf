package live_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/monitor"
	"fairlane/policy/access"
	"fairlane/web/live"
)

// owners tells whose single objects are.
type owners struct {
	mu   sync.Mutex
	of   map[monitor.Topic]access.Object
	down error
}

func (o *owners) Object(_ context.Context, t monitor.Topic) (access.Object, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	x, ok := o.of[t]
	if !ok && o.down == nil {
		return x, control.Errorf(control.CodeNotFound, "there is no %s", t)
	}
	return x, o.down
}

var (
	acme  = uuid.MustParse("00000000-0000-7000-8000-0000000000aa")
	other = uuid.MustParse("00000000-0000-7000-8000-0000000000bb")
)

const (
	ownTask   = monitor.Topic("task:00000000-0000-7000-8000-000000000011")
	otherTask = monitor.Topic("task:00000000-0000-7000-8000-000000000012")
	goneTask  = monitor.Topic("task:00000000-0000-7000-8000-000000000013")
	ownTenant = monitor.Topic("tenant:00000000-0000-7000-8000-0000000000aa")
)

func singleStand(t *testing.T) (*stand, *owners) {
	t.Helper()
	o := &owners{of: map[monitor.Topic]access.Object{
		ownTask: {Lane: "STANDARD", Tenant: acme}, ownTenant: {Lane: "STANDARD", Tenant: acme}, otherTask: {Lane: "PAID_SHARED", Tenant: other},
	}}
	s := newStand(t, func(cfg *live.Config) {
		cfg.Objects = o
		cfg.Topics = map[string]access.Permission{"task": access.LiveTask, "tenant": access.LiveTenants, "lanes": access.LiveLanes, "tenants": access.LiveTenants}
	})
	for _, topic := range []monitor.Topic{ownTask, otherTask, ownTenant} {
		s.feed.add(topic, "e1")
	}
	return s, o
}

// add gives the feed one more topic.
func (f *feed) add(t monitor.Topic, epoch string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.snaps[t] = monitor.Snapshot{Topic: t, Epoch: epoch, AsOf: time.Now()}
}

func TestI13_SingleObjectsAreForThoseWhoseReachHoldsThem(t *testing.T) {
	t.Parallel()
	s, _ := singleStand(t)
	scoped := rightsOf(t, access.Grant{Operator: operatorID, Role: access.Viewer, Lanes: []string{"STANDARD"}})
	s.people.set(func() { s.people.rights[operatorID] = scoped })
	s.feed.set(ownTask, "task", "queued")
	c := s.client(t, "a")
	c.hello(string(ownTask), string(ownTenant), "lanes")
	c.until("the own task", func(f frame) bool { return f.Topic == string(ownTask) && c.rows[f.Topic]["task"] == "queued" })
	s.feed.set(ownTask, "task", "running")
	c.until("its change", func(frame) bool { return c.rows[string(ownTask)]["task"] == "running" })
	c.until("the age of single objects in the beat", func(f frame) bool {
		return f.Beat != nil && f.Beat.Topics[string(ownTask)].AsOf > 0 && f.Beat.Topics[string(ownTenant)].AsOf > 0
	})
	plain := s.client(t, "b")
	plain.hello("lanes")
	plain.until("a beat without objects of others", func(f frame) bool {
		if f.Beat != nil {
			if _, ok := f.Beat.Topics[string(ownTask)]; ok {
				t.Error("a beat names an object that the socket does not follow")
			}
		}
		return f.Beat != nil
	})
	for topic, code := range map[monitor.Topic]int{
		otherTask: live.CloseForbidden, goneTask: live.CloseForbidden, "tenants": live.CloseForbidden,
		"task:1": 1008, "task:": 1008, "lane:STANDARD": 1008, "task:00000000-0000-7000-8000-00000000001": 1008,
	} {
		x := s.client(t, "c-"+string(topic))
		x.hello(string(topic))
		if got := x.closeCode(); got != code {
			t.Errorf("%s ends with %d, want %d", topic, got, code)
		}
	}
}

func TestATenantThatMovesOutOfReachEndsItsSockets(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var mu sync.Mutex
	o := &owners{of: map[monitor.Topic]access.Object{ownTask: {Lane: "STANDARD", Tenant: acme}}}
	s := newStand(t, func(cfg *live.Config) {
		cfg.Objects, cfg.Topics = o, map[string]access.Permission{"task": access.LiveTask}
		cfg.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	s.feed.add(ownTask, "e1")
	scoped := rightsOf(t, access.Grant{Operator: operatorID, Role: access.Viewer, Lanes: []string{"STANDARD"}})
	s.people.set(func() { s.people.rights[operatorID] = scoped })
	s.feed.set(ownTask, "task", "queued")
	c := s.client(t, "a")
	c.hello(string(ownTask))
	c.until("the own task", func(f frame) bool { return f.Snapshot != nil })
	o.mu.Lock()
	o.of[ownTask] = access.Object{Lane: "PAID_SHARED", Tenant: acme}
	o.mu.Unlock()
	mu.Lock()
	now = now.Add(11 * time.Second)
	mu.Unlock()
	s.people.version.Add(1)
	if code := c.closeCode(); code != live.CloseForbidden {
		t.Errorf("ends with %d", code)
	}
	await(t, "the end of its watch", func() bool { return s.feed.watchers(ownTask) == 0 })
}

func TestSingleTopicsGoWithTheirLastSocket(t *testing.T) {
	t.Parallel()
	s, _ := singleStand(t)
	s.feed.set(ownTask, "task", "queued")
	a, b := s.client(t, "a"), s.client(t, "b")
	for _, c := range []*client{a, b} {
		c.hello(string(ownTask))
		c.until("the task", func(f frame) bool { return f.Snapshot != nil })
	}
	if n := s.feed.watchers(ownTask); n != 2 {
		t.Errorf("%d watch, want 2", n)
	}
	_ = a.conn.Close()
	_ = b.conn.Close()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); s.feed.watchers(ownTask) > 0 || s.hub.Open() > 0; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it is watched after everybody has left")
		}
	}
	c := s.client(t, "c")
	c.hello(string(ownTask))
	c.until("the task again", func(f frame) bool { return f.Snapshot != nil && c.rows[string(ownTask)]["task"] == "queued" })
}

func TestObjectsThatCannotBeLookedUpAreTriedLater(t *testing.T) {
	t.Parallel()
	s, o := singleStand(t)
	o.mu.Lock()
	o.of, o.down = nil, context.DeadlineExceeded
	o.mu.Unlock()
	c := s.client(t, "a")
	c.hello(string(ownTask))
	if code := c.closeCode(); code != live.CloseRestart {
		t.Errorf("ends with %d", code)
	}
	s.feed.mu.Lock()
	delete(s.feed.snaps, ownTask) // the feed is full
	s.feed.mu.Unlock()
	o.mu.Lock()
	o.of, o.down = map[monitor.Topic]access.Object{ownTask: {Tenant: acme}}, nil
	o.mu.Unlock()
	d := s.client(t, "b")
	d.hello(string(ownTask))
	if code := d.closeCode(); code != 1013 {
		t.Errorf("ends with %d", code)
	}
}

// stuck is a store that answers nobody who does not give up.
type stuck struct{ asked chan struct{} }

func (s stuck) Object(ctx context.Context, _ monitor.Topic) (access.Object, error) {
	close(s.asked)
	<-ctx.Done()
	return access.Object{}, ctx.Err()
}

func TestShutdownWaitsForNoLookUp(t *testing.T) {
	t.Parallel()
	o := stuck{make(chan struct{})}
	s := newStand(t, func(cfg *live.Config) {
		cfg.Objects, cfg.Topics = o, map[string]access.Permission{"task": access.LiveTask}
	})
	s.people.set(func() {
		s.people.rights[operatorID] = rightsOf(t, access.Grant{Operator: operatorID, Role: access.Viewer})
	})
	c := s.client(t, "a")
	c.hello(string(ownTask))
	<-o.asked
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // a look-up may take two
	defer cancel()
	if err := s.hub.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if code := c.closeCode(); code != live.CloseRestart {
		t.Errorf("the socket ended with %d", code)
	}
}
