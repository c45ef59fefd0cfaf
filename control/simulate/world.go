package simulate

import (
	"container/heap"
	"context"
	"time"

	"github.com/google/uuid"

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
	now     int64
	horizon int64
	arrival []Arrival // in order of time
	next    int       // of the arrivals

	tenants  []*tenant
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

// decider knows what waits and starts what may start; wake is when it wants to be asked again although
// nothing has happened, 0 for never.
type decider interface {
	add(t *task) error
	remove(t *task)
	decide() (wake int64, err error)
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
		w.finish(heap.Pop(&w.running).(*task))
	}
	for len(w.patient) > 0 && w.patient[0].until <= w.now {
		t := heap.Pop(&w.patient).(patient)
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
