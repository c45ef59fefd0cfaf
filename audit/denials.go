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
	to  Appender
	cfg DenialsConfig

	mu     sync.Mutex
	open   map[denial]int64 // attempts that no record tells of yet
	actors map[who]int
}

type who struct{ id, name, address string }

type denial struct {
	who
	permission, route string
}

// many stands for the attempts that are not kept apart.
const many = "*"

// NewDenials makes Denials; Run must run for the counts to be written.
func NewDenials(to Appender, cfg DenialsConfig) *Denials {
	if cfg.Window <= 0 {
		cfg.Window = denialWindow
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Denials{to: to, cfg: cfg, open: map[denial]int64{}, actors: map[who]int{}}
}

// Denied notes an attempt of the actor at what the permission guards. It waits at most three seconds
// for the record, and goes on writing it when ctx ends: the attempt was made all the same.
func (d *Denials) Denied(ctx context.Context, actor control.Actor, permission, route string) {
	if actor.Name == "" {
		actor.Name = "anonymous"
	}
	k := denial{who{actor.ID.String(), actor.Name, actor.SourceAddress}, permission, route}
	d.mu.Lock()
	if _, again := d.open[k]; !again {
		if d.actors[k.who] >= denialsByActor {
			k.permission, k.route = many, many
		}
		if _, again = d.open[k]; !again && len(d.open) >= denialsOpen {
			k = denial{who{"", many, ""}, many, many}
		}
	}
	_, again := d.open[k]
	if again || k.route == many {
		d.open[k]++
		d.mu.Unlock()
		return
	}
	d.open[k] = 0
	d.actors[k.who]++
	d.mu.Unlock()
	if err := d.write(ctx, actor, k, 1, 0); err != nil {
		d.cfg.Log.ErrorContext(ctx, "denied attempt not recorded", "error", err, "permission", permission)
		d.again(k, 1)
	}
}

func (d *Denials) again(k denial, n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open[k] += n
}

func (d *Denials) write(ctx context.Context, actor control.Actor, k denial, count int64, over time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), denialTimeout)
	defer cancel()
	_, err := d.to.Append(ctx, Event{
		Actor: actor, Action: AccessDenied, ObjectKind: KindRoute, ObjectID: k.route, Result: Denied,
		Params: map[string]any{"permission": k.permission, "route": k.route, "count": count, "seconds": int64(over / time.Second)},
	})
	return err
}

// Run writes the counts at the end of every window, and of the last one when ctx ends.
func (d *Denials) Run(ctx context.Context) error {
	tick := time.NewTicker(d.cfg.Window)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			d.Flush(ctx)
			return nil
		case <-tick.C:
			d.Flush(ctx)
		}
	}
}

// Flush writes the counts of the window and begins the next.
func (d *Denials) Flush(ctx context.Context) {
	d.mu.Lock()
	open := d.open
	d.open, d.actors = map[denial]int64{}, map[who]int{}
	d.mu.Unlock()
	failed := false
	for k, n := range open {
		if n == 0 {
			continue
		}
		if !failed { // one wait is enough to learn that the store is away
			if err := d.write(ctx, k.actor(), k, n, d.cfg.Window); err == nil {
				continue
			} else {
				failed = true
				d.cfg.Log.ErrorContext(ctx, "denied attempts not recorded", "error", err)
			}
		}
		d.again(k, n)
	}
}

func (k denial) actor() control.Actor {
	a := control.Actor{Name: k.name, SourceAddress: k.address}
	if err := a.ID.UnmarshalText([]byte(k.id)); err != nil {
		return control.Actor{Name: k.name, SourceAddress: k.address} // attempts of many actors
	}
	return a
}
