package audit

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"fairlane/control"
)

const (
	denialWindow   = time.Minute
	denialsByActor = 20     // different attempts of one actor that get records of their own in a window
	denialsOpen    = 10_000 // different attempts that are kept apart in a window
	denialTimeout  = 3 * time.Second
)

// DenialsConfig configures Denials. Zero values take the defaults.
type DenialsConfig struct {
	Window time.Duration // one minute
	Log    *slog.Logger
}

// Denials records attempts without the right to them. The first of its kind (actor, permission, route)
// in a window is written at once; those that follow are counted and written together when the window
// ends, so that somebody who tries a thousand times a second fills neither the chain nor its lock.
type Denials struct {
	to    Appender
	cfg   DenialsConfig
	fresh chan struct{} // a tally waits for its first record

	mu     sync.Mutex
	open   map[denial]*tally
	first  []denial // those that wait for their first record
	actors map[who]int
}

type who struct{ id, name, address string }

type denial struct {
	who
	permission, route string
}

// tally counts the attempts that no record tells of yet.
type tally struct {
	actor control.Actor // of the first
	count int64
}

// many stands for the attempts that are not kept apart.
const many = "*"

// NewDenials makes Denials; they are written while Run runs.
func NewDenials(to Appender, cfg DenialsConfig) *Denials {
	if cfg.Window <= 0 {
		cfg.Window = denialWindow
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Denials{to: to, cfg: cfg, fresh: make(chan struct{}, 1), open: map[denial]*tally{}, actors: map[who]int{}}
}

// Denied notes an attempt of the actor at an object (a route) that the permission guards. It never waits.
func (d *Denials) Denied(_ context.Context, actor control.Actor, permission, object string) {
	if actor.Name == "" {
		actor.Name = "anonymous"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.key(actor, permission, object)
	t, again := d.open[k]
	if !again {
		t = &tally{actor: actor}
		d.open[k] = t
		if k.route == many {
			t.actor = control.Actor{ID: actor.ID, Name: k.name, SourceAddress: k.address}
		} else {
			d.actors[k.who]++
			d.first = append(d.first, k)
			select {
			case d.fresh <- struct{}{}:
			default:
			}
		}
	}
	t.count++
}

// key is under what an attempt is counted: what nobody keeps apart any more goes together.
func (d *Denials) key(actor control.Actor, permission, object string) denial {
	k := denial{who{actor.ID.String(), actor.Name, actor.SourceAddress}, permission, object}
	if _, again := d.open[k]; again {
		return k
	}
	if d.actors[k.who] >= denialsByActor {
		k.permission, k.route = many, many
	}
	if _, again := d.open[k]; !again && len(d.open) >= denialsOpen {
		return denial{who{"", many, ""}, many, many}
	}
	return k
}

// Run writes first attempts at once, the counts at the end of every window, and what is left when ctx ends.
func (d *Denials) Run(ctx context.Context) error {
	tick := time.NewTicker(d.cfg.Window)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			d.writeWindow(ctx)
			return nil
		case <-d.fresh:
			d.writeFirst(ctx)
		case <-tick.C:
			d.writeWindow(ctx)
		}
	}
}

func (d *Denials) writeFirst(ctx context.Context) {
	d.mu.Lock()
	first := d.first
	d.first = nil
	d.mu.Unlock()
	for i, k := range first {
		if !d.writeOne(ctx, k, 0) {
			d.cfg.Log.ErrorContext(ctx, "denied attempts wait for the end of their window", "attempts", len(first)-i)
			return // one wait is enough to learn that the store is away; the counts are kept
		}
	}
}

// writeWindow writes what was counted and begins the next window; what could not be written goes into it.
func (d *Denials) writeWindow(ctx context.Context) {
	d.mu.Lock()
	keys := make([]denial, 0, len(d.open))
	for k, t := range d.open {
		if t.count > 0 {
			keys = append(keys, k)
		} else {
			delete(d.open, k)
		}
	}
	d.first, d.actors = nil, map[who]int{}
	d.mu.Unlock()
	for i, k := range keys {
		if !d.writeOne(ctx, k, d.cfg.Window) {
			d.cfg.Log.ErrorContext(ctx, "denied attempts not recorded, kept for the next window", "kinds", len(keys)-i)
			return
		}
		d.mu.Lock()
		if t := d.open[k]; t != nil && t.count == 0 {
			delete(d.open, k)
		}
		d.mu.Unlock()
	}
}

func (d *Denials) writeOne(ctx context.Context, k denial, over time.Duration) bool {
	d.mu.Lock()
	t := d.open[k]
	if t == nil || t.count == 0 {
		d.mu.Unlock()
		return true
	}
	n, actor := t.count, t.actor
	t.count = 0
	d.mu.Unlock()
	if over > 0 {
		actor.RequestID = "" // it stands for many requests
	}
	err := d.write(ctx, actor, k, n, over)
	if err == nil {
		return true
	}
	d.cfg.Log.ErrorContext(ctx, "denied attempt not recorded", "error", err, "permission", k.permission)
	d.mu.Lock()
	defer d.mu.Unlock()
	t.count += n // writeWindow, which alone removes tallies, runs in this goroutine
	return false
}

// write goes on when ctx ends: the attempt was made all the same.
func (d *Denials) write(ctx context.Context, actor control.Actor, k denial, count int64, over time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), denialTimeout)
	defer cancel()
	_, err := d.to.Append(ctx, Event{
		Actor: actor, Action: AccessDenied, ObjectKind: KindRoute, ObjectID: k.route, Result: Denied,
		Params: map[string]any{"permission": k.permission, "route": k.route, "count": count, "seconds": int64(over / time.Second)},
	})
	return err
}
