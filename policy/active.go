package policy

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"fairlane/control"
)

// ActiveConfig configures an Active. Zero values take the defaults.
type ActiveConfig struct {
	Replica   string        // name under which the process writes down what it has in force
	Hints     <-chan string // "look now", whatever it says; may be nil: polling alone finds every version
	Poll      time.Duration // how often the head is read; 500 ms
	Retry     time.Duration // pause after a version could not be read; 50 ms, doubled up to Poll
	Heartbeat time.Duration // how often the replica's row is written though nothing changed; 5 s
	Timeout   time.Duration // of one read; 3 s
	Log       *slog.Logger
}

// Active is the version in force in this process. It follows the head of the store: a version is in
// force once it has been read, and is never reported before.
type Active struct {
	source Source
	cfg    ActiveConfig

	wanted  atomic.Int64
	current atomic.Pointer[Version]
	problem atomic.Pointer[string]

	mu          sync.Mutex
	moved       chan struct{} // closed and replaced at every new version
	subscribers map[int]func(*Version)
	nextID      int

	notify sync.Mutex // one notification after the other, in the order of versions
}

// NewActive makes an Active that has nothing in force yet.
func NewActive(source Source, cfg ActiveConfig) *Active {
	orDefault(&cfg.Poll, 500*time.Millisecond)
	orDefault(&cfg.Retry, 50*time.Millisecond)
	orDefault(&cfg.Heartbeat, 5*time.Second)
	orDefault(&cfg.Timeout, 3*time.Second)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	a := &Active{source: source, cfg: cfg, moved: make(chan struct{}), subscribers: map[int]func(*Version){}}
	none := ""
	a.problem.Store(&none)
	return a
}

func orDefault(d *time.Duration, to time.Duration) {
	if *d <= 0 {
		*d = to
	}
}

// Current returns the version in force; nil before the first one was read.
func (a *Active) Current() *Version { return a.current.Load() }

// Wanted returns the newest version that this process knows to exist; 0 before the first. It differs
// from Current's number while the version could not be read.
func (a *Active) Wanted() int64 { return a.wanted.Load() }

// Problem says what keeps the wanted version from being in force; "" when nothing does.
func (a *Active) Problem() string { return *a.problem.Load() }

// Subscribe calls fn with the version in force, if there is one, and then with every later one in its
// order, always from one goroutine at a time; fn must return soon. The answer ends the subscription.
func (a *Active) Subscribe(fn func(*Version)) (cancel func()) {
	a.notify.Lock()
	defer a.notify.Unlock()
	a.mu.Lock()
	id := a.nextID
	a.nextID++
	a.subscribers[id] = fn
	a.mu.Unlock()
	if v := a.Current(); v != nil {
		fn(v)
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.subscribers, id)
	}
}

// Await returns once version number or a later one is in force here and every subscriber has been told.
func (a *Active) Await(ctx context.Context, number int64) error {
	for {
		a.mu.Lock()
		moved := a.moved
		a.mu.Unlock()
		if v := a.Current(); v != nil && v.Number >= number {
			a.notify.Lock() // until those before us have been told
			defer a.notify.Unlock()
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("policy version %d is not in force: %w", number, context.Cause(ctx))
		}
	}
}

// Refresh reads the head once and puts it in force. Run does this by itself; a start calls it to
// have a version before anything else runs. Before the first version it is CodeNotFound.
func (a *Active) Refresh(ctx context.Context) error {
	err := a.refresh(ctx)
	text := ""
	if err != nil {
		text = err.Error()
	}
	a.problem.Store(&text)
	return err
}

func (a *Active) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Timeout)
	defer cancel()
	head, err := a.source.HeadNumber(ctx)
	if err != nil {
		return fmt.Errorf("read the number of the policy in force: %w", err)
	}
	if head > a.wanted.Load() {
		a.wanted.Store(head)
	}
	if head == 0 {
		return control.Errorf(control.CodeNotFound, "no policy version has been published yet")
	}
	if v := a.Current(); v != nil && v.Number >= head {
		return nil
	}
	v, err := a.source.Version(ctx, head)
	if err != nil {
		return fmt.Errorf("read policy version %d: %w", head, err)
	}
	a.enforce(&v)
	return nil
}

func (a *Active) enforce(v *Version) {
	a.notify.Lock()
	defer a.notify.Unlock()
	if c := a.Current(); c != nil && c.Number >= v.Number {
		return
	}
	a.current.Store(v)
	a.mu.Lock()
	told := make([]func(*Version), 0, len(a.subscribers))
	for id := range a.nextID { // in the order of subscription
		if fn, ok := a.subscribers[id]; ok {
			told = append(told, fn)
		}
	}
	close(a.moved)
	a.moved = make(chan struct{})
	a.mu.Unlock()
	for _, fn := range told {
		fn(v)
	}
}

// Run follows the head until ctx ends: at every hint, and every Poll without one. A version that could
// not be read is tried again after Retry, so that one failed read does not cost a whole poll.
func (a *Active) Run(ctx context.Context) error {
	hints := a.cfg.Hints
	pause := time.Duration(0)
	retry := a.cfg.Retry
	beat := newBeat(a.cfg.Heartbeat)
	for {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case _, open := <-hints:
			timer.Stop()
			if !open {
				hints = nil
			}
		case <-timer.C:
		}
		before := a.Problem()
		err := a.Refresh(ctx)
		if ctx.Err() != nil {
			continue // the select ends it
		}
		if err != nil && control.CodeOf(err) != control.CodeNotFound {
			if before == "" {
				a.cfg.Log.WarnContext(ctx, "policy version not in force", "wanted", a.Wanted(), "error", err)
			}
			pause, retry = retry, min(2*retry, a.cfg.Poll)
		} else {
			pause, retry = a.cfg.Poll, a.cfg.Retry
		}
		a.report(ctx, beat)
	}
}

// report writes the replica's row when it would say something new, and at every heartbeat.
func (a *Active) report(ctx context.Context, b *beat) {
	var number int64
	if v := a.Current(); v != nil {
		number = v.Number
	}
	problem := a.Problem()
	if !b.due(number, problem) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Timeout)
	defer cancel()
	if err := a.source.Seen(ctx, a.cfg.Replica, number, problem); err != nil {
		b.forget()
		if ctx.Err() == nil {
			a.cfg.Log.WarnContext(ctx, "replica's policy version not written down", "version", number, "error", err)
		}
	}
}

// beat remembers what was last written down and when it is due again.
type beat struct {
	every   time.Duration
	ticker  *time.Timer
	number  int64
	problem string
	written bool
}

func newBeat(every time.Duration) *beat { return &beat{every: every, ticker: time.NewTimer(every)} }

func (b *beat) due(number int64, problem string) bool {
	again := false
	select {
	case <-b.ticker.C:
		again = true
	default:
	}
	if b.written && !again && number == b.number && problem == b.problem {
		return false
	}
	b.ticker.Reset(b.every)
	b.number, b.problem, b.written = number, problem, true
	return true
}

func (b *beat) forget() { b.written = false }
