package simulate

import (
	"container/heap"
	"context"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/admit"
	"fairlane/control/estimate"
	"fairlane/control/plan"
	"fairlane/policy"
)

// world is the state of one run: what PostgreSQL would hold, and a clock. Times are microseconds since
// the start of the trace.
type world struct {
	cfg     Config
	doc     *policy.Document
	version *policy.Version
	now     int64
	horizon int64
	arrival []Arrival // in order of time
	next    int       // of the arrivals

	tenants  []*tenant
	byID     map[uuid.UUID]*tenant
	users    []*user
	models   []*model
	lanes    map[string]*lane
	order    []*lane
	groups   []*group
	accounts map[plan.LaneGroup]*account
	every    []*account
	loans    []*task // running on borrowed units, oldest first
	pools    map[string]*pool
	waiting  map[uuid.UUID]*task
	running  ends
	patient  patience
	onLoan   map[uuid.UUID]*task // the same by attempt

	gate     *admit.Gate
	load     *admit.Load
	arriving *arriving
	decider  decider
	tasks    uint64
	attempts uint64

	count  counters
	result tally

	history   *estimate.Model
	book      *estimate.Book
	told      map[estimate.Key]estimate.History // as in the book
	published int64                             // when
}

// decider chooses what starts. start is called for each; wake is when it wants to be asked again although
// nothing has happened, 0 for never.
type decider interface {
	add(t *task) error
	remove(t *task)
	decide() (wake int64, err error)
}

// counters are those that a snapshot reads, kept in the snapshot's own form.
type counters struct {
	lanes   map[plan.LaneGroup]plan.LaneUse
	common  map[string]int64
	pools   map[string]plan.PoolUse
	tenants map[uuid.UUID]plan.TenantUse
	inLane  map[plan.TenantLane]plan.Use
	users   map[plan.TenantUser]plan.UserUse
	debts   map[plan.TenantLane]int64
}

type tenant struct {
	index    int32
	account  policy.Tenant
	settings policy.TenantSettings
	parties  []*party
	queued   int64 // tasks
	milli    int64 // fairness milli-units that wait
	factor   estimate.Factor
	tally    tenantTally
}

type user struct {
	id     uuid.UUID
	name   string
	tenant *tenant
	queued int64
	waits  []userWait
	capped [2]bool // by kind: not one more may start
}

// userWait is how many of a user's tasks wait in a lane, by kind.
type userWait struct {
	party *party
	n     [2]int64
}

type model struct {
	code string
	kind control.Kind
	key  estimate.Key
}

type task struct {
	id       uuid.UUID
	user     *user
	party    *party
	model    *model
	kind     int
	at       int64
	duration int64
	charge   estimate.Charge
	actual   estimate.Bill // what it will turn out to have used
	p95      time.Duration
	until    int64    // the end of its patience, 0: none
	account  *account // of its lane in its group
	lent     int64    // the account's time without units because they were lent, when it came
	route    string
	band     control.Band

	// while it runs
	start    plan.Start
	attempt  uuid.UUID
	began    int64
	ends     int64
	deadline int64 // of the attempt
}

func kindOf(k control.Kind) int {
	if k == control.KindImage {
		return 0
	}
	return 1
}

func (w *world) time() time.Time { return Epoch.Add(time.Duration(w.now) * time.Microsecond) }

// Run plays one simulation. It ends early with the context's error.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	w, err := newWorld(cfg)
	if err != nil {
		return nil, err
	}
	if err := w.play(ctx); err != nil {
		return nil, err
	}
	return w.report(), nil
}

// progressEvery is how many instants pass between two looks at the context.
const progressEvery = 2048

func (w *world) play(ctx context.Context) error {
	var wake int64
	for instants := 0; ; instants++ {
		if instants%progressEvery == 0 {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			w.progress()
		}
		at, ok := w.upcoming(wake)
		if !ok {
			w.progress()
			return nil
		}
		w.advance(at)
		if err := w.happen(ctx); err != nil {
			return err
		}
		var err error
		if wake, err = w.decider.decide(); err != nil {
			return err
		}
		if wake > 0 {
			wake = max(wake, w.now+1000) // time alone changes nothing twice in a millisecond
		}
		w.observe()
		w.publish()
	}
}

// upcoming is the time of the next event; false when none can come.
func (w *world) upcoming(wake int64) (at int64, ok bool) {
	consider := func(t int64) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if w.next < len(w.arrival) {
		consider(w.arrival[w.next].At)
	}
	if len(w.running) > 0 {
		consider(w.running[0].ends)
	}
	if len(w.patient) > 0 {
		consider(w.patient[0].until)
	}
	if wake > 0 && len(w.waiting) > 0 && (ok || wake < w.horizon+stillness) {
		consider(wake)
	}
	return at, ok
}

// stillness is how long after the last arrival time alone is waited for when nothing runs: what has not
// started by then never will.
const stillness = 24 * 3600 * secondsInMicro

// happen lets everything of this instant happen: what ends first makes room for what arrives.
func (w *world) happen(ctx context.Context) error {
	for len(w.running) > 0 && w.running[0].ends <= w.now {
		w.finish(heap.Pop(&w.running).(*task)) //nolint:errcheck // a heap of tasks
	}
	for len(w.patient) > 0 && w.patient[0].until <= w.now {
		t := heap.Pop(&w.patient).(patient) //nolint:errcheck // a heap of them
		if w.waiting[t.id] != nil {
			w.expire(w.waiting[t.id])
		}
	}
	for w.next < len(w.arrival) && w.arrival[w.next].At <= w.now {
		a := &w.arrival[w.next]
		w.next++
		if err := w.arrive(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// advance moves the clock; a wake that has passed is now.
func (w *world) advance(at int64) { w.now = max(w.now, at) }

func (w *world) progress() {
	if w.cfg.Progress != nil {
		w.cfg.Progress(Progress{
			At: time.Duration(w.now) * time.Microsecond, Horizon: time.Duration(w.horizon) * time.Microsecond,
			Arrivals: w.next, Of: len(w.arrival), Waiting: len(w.waiting), Running: len(w.running),
		})
	}
}

// ends is a heap of running tasks by their end.
type ends []*task

func (h ends) Len() int { return len(h) }
func (h ends) Less(i, j int) bool {
	if h[i].ends != h[j].ends {
		return h[i].ends < h[j].ends
	}
	return h[i].began < h[j].began || h[i].began == h[j].began && lessID(h[i].attempt, h[j].attempt)
}
func (h ends) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *ends) Push(x any)   { *h = append(*h, x.(*task)) } //nolint:errcheck // a heap of tasks
func (h *ends) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}

func lessID(a, b uuid.UUID) bool { return string(a[:]) < string(b[:]) }

// patience is a heap of waiting tasks by the end of their patience.
type patience []patient

type patient struct {
	until int64
	id    uuid.UUID
}

func (h patience) Len() int { return len(h) }
func (h patience) Less(i, j int) bool {
	return h[i].until < h[j].until || h[i].until == h[j].until && lessID(h[i].id, h[j].id)
}
func (h patience) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *patience) Push(x any)   { *h = append(*h, x.(patient)) } //nolint:errcheck // a heap of them
func (h *patience) Pop() any {
	old := *h
	t := old[len(old)-1]
	*h = old[:len(old)-1]
	return t
}
