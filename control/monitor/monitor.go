package monitor

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
)

// Config sets how fresh the views are. Zero values take the defaults.
type Config struct {
	MinGap       time.Duration                          // between two reads, 250 ms: at most four frames a second
	WatchedFloor time.Duration                          // without hints while somebody watches, 2 s; at most 10 s
	IdleFloor    time.Duration                          // while nobody watches, 5 s; at most 10 s
	TenantGap    time.Duration                          // between two reads of all tenants' use, 1 s
	MachineGap   time.Duration                          // between two reads of leases, outbox and replicas, 2 s
	ReadTimeout  time.Duration                          // of one read, 5 s
	ShareWindow  time.Duration                          // over which shares are measured, 60 s
	Details      Details                                // of single objects; nil: they have no topics
	Epoch        string                                 // of this process; default: random
	Moved        func(state control.TaskState, n int64) // told of every move of a task, some 15 s later; nil: nobody is
	Log          *slog.Logger
	Now          func() time.Time
}

func (c *Config) defaults() {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&c.MinGap, 250*time.Millisecond)
	set(&c.WatchedFloor, 2*time.Second)
	set(&c.IdleFloor, 5*time.Second)
	set(&c.TenantGap, time.Second)
	set(&c.MachineGap, 2*time.Second)
	set(&c.ReadTimeout, 5*time.Second)
	set(&c.ShareWindow, time.Minute)
	c.WatchedFloor, c.IdleFloor = min(c.WatchedFloor, 10*time.Second), min(c.IdleFloor, 10*time.Second)
	if c.Epoch == "" {
		c.Epoch = uuid.NewString()
	}
	if c.Moved == nil {
		c.Moved = func(control.TaskState, int64) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
}

// Monitor keeps the State fresh and numbers its topics. Run owns all reading; every other method is
// safe from any goroutine and never waits for the database.
type Monitor struct {
	cfg     Config
	source  Source
	active  Active
	boards  map[Topic]*board
	details details // of single objects
	reports *reports
	state   atomic.Pointer[State]
	wake    chan struct{} // a hint; at most one is kept
	must    chan struct{} // a hint that may not wait for the idle floor
	watches atomic.Int64
	lookAt  atomic.Int64 // unix nanoseconds until which a page that was served counts as a watcher

	// Owned by Run.
	ring                         *shareRing
	flow                         *flow
	tenantsAt, machineAt, flowAt time.Time
	detailsAt                    time.Time
	shares                       map[uuid.UUID]tenantShare
	failing                      bool

	publishing sync.Mutex // state and boards move together

	mu   sync.Mutex
	hint func(hint string) // tells other replicas
}

// New makes a monitor over a source. active gives the policy in force on this replica.
func New(cfg Config, source Source, active Active) *Monitor {
	cfg.defaults()
	m := &Monitor{cfg: cfg, source: source, active: active, boards: map[Topic]*board{}, details: details{boards: map[Topic]*detail{}}, reports: newReports(),
		wake: make(chan struct{}, 1), must: make(chan struct{}, 1), ring: newShareRing(cfg.ShareWindow), flow: newFlow()}
	for _, t := range Topics {
		m.boards[t] = newBoard(t, cfg.Epoch)
	}
	m.state.Store(&State{Overview: Overview{PausedLanes: []string{}, Degraded: []Degraded{}}})
	return m
}

// State returns what was folded last. A page that shows it calls Look, so that the next one is fresh.
func (m *Monitor) State() *State { return m.state.Load() }

// Look tells that a page was just served from the state: for ten seconds hints refresh it as if a
// socket watched.
func (m *Monitor) Look() {
	m.lookAt.Store(m.cfg.Now().Add(10 * time.Second).UnixNano())
	signal(m.wake)
}

// Attach calls fn with the topic's snapshot of now and then with every later update, in order. fn must
// not block and must not call the monitor. Unknown topics are told by ok, as are those of single objects
// while MaxDetails others are looked at.
func (m *Monitor) Attach(t Topic, fn func(Update)) (detach func(), ok bool) {
	if b, ok := m.boards[t]; ok {
		return b.attach(fn), true
	}
	if m.cfg.Details == nil {
		return nil, false
	}
	b := m.details.open(t, m.cfg.Epoch)
	if b == nil {
		return nil, false
	}
	leave := b.attach(fn)
	return sync.OnceFunc(func() { leave(); m.details.close(t) }), true
}

// Watch tells that somebody looks at the topic until release is called. When it returns, the topic's
// followers have been told what the state of now says; those of a single object are told when it is read.
func (m *Monitor) Watch(t Topic) (release func()) {
	b, fixed := m.boards[t]
	if !fixed {
		if b = m.details.find(t); b == nil {
			return func() {}
		}
	}
	m.publishing.Lock()
	if b.watch(1) == 1 && fixed {
		m.render(m.state.Load(), t)
	}
	m.publishing.Unlock()
	m.watches.Add(1)
	signal(m.wake)
	return sync.OnceFunc(func() { b.watch(-1); m.watches.Add(-1) })
}

// Hints of what changed; also the names under which replicas tell each other.
const (
	HintQueue  = "queue"  // tasks were admitted, canceled, requeued
	HintSlots  = "slots"  // tasks were claimed or ended
	HintPolicy = "policy" // a version was published or is in force here
)

// Hint tells that facts changed here; other replicas are told too.
func (m *Monitor) Hint(hint string) {
	m.Heard(hint)
	m.mu.Lock()
	tell := m.hint
	m.mu.Unlock()
	if tell != nil {
		tell(hint)
	}
}

// Heard tells that facts changed on another replica, or that hints may have been missed ("").
func (m *Monitor) Heard(hint string) {
	if hint == HintPolicy || hint == "" {
		signal(m.must)
		return
	}
	signal(m.wake)
}

// TellOthers sets how hints reach other replicas. tell must not block.
func (m *Monitor) TellOthers(tell func(hint string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hint = tell
}

// SetDegraded enters or leaves a degraded mode; it is shown everywhere within a frame.
func (m *Monitor) SetDegraded(code string, on bool) {
	if m.reports.set(code, on, m.cfg.Now()) {
		signal(m.must)
	}
}

// SetStore tells whether a store answers.
func (m *Monitor) SetStore(name string, up bool) {
	if m.reports.store(name, up) {
		signal(m.must)
	}
}

// ReconcilerRan tells what a reconciler of this process did last.
func (m *Monitor) ReconcilerRan(name string, run Run) { m.reports.ran(name, run) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (m *Monitor) looked() bool {
	return m.watches.Load() > 0 || m.cfg.Now().UnixNano() < m.lookAt.Load()
}
