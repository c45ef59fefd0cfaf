package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"fairlane/control"
)

// collector turns many single writes into few: what comes within linger of the first, at most max,
// goes in one flush. Its queue is bounded, so that a store which is away slows its callers down.
type collector[T any] struct {
	name    string
	max     int
	linger  time.Duration
	patient time.Duration // how long a flush that fails is tried again before it is given up
	loyal   time.Duration // how long it is tried again while the store is away
	in      chan T
	flush   func(ctx context.Context, batch []T) error
	spoiled func(ctx context.Context, item T, err error) // an item that the store cannot take, alone
	log     *slog.Logger
}

func newCollector[T any](name string, linger time.Duration, log *slog.Logger, flush func(context.Context, []T) error) *collector[T] {
	const most = 200
	return &collector[T]{name: name, max: most, linger: linger, patient: time.Minute, loyal: time.Hour, in: make(chan T, 4*most), flush: flush, log: log,
		spoiled: func(context.Context, T, error) {}}
}

// add queues an item. It waits while the queue is full, at most until ctx ends; false means that the
// item was not taken.
func (c *collector[T]) add(ctx context.Context, item T) bool {
	select {
	case c.in <- item:
		return true
	default:
	}
	select {
	case c.in <- item:
		return true
	case <-ctx.Done():
		c.log.Error("write given up", "kind", c.name, "error", ctx.Err())
		return false
	}
}

// run flushes until ctx ends, and then what is still queued. hard ends every write; it ends later than ctx.
func (c *collector[T]) run(ctx, hard context.Context) {
	for {
		select {
		case <-ctx.Done():
			for batch := c.drain(nil); len(batch) > 0; batch = c.drain(nil) {
				c.write(hard, batch)
			}
			return
		case first := <-c.in:
			c.write(hard, c.gather(ctx, first))
		}
	}
}

func (c *collector[T]) gather(ctx context.Context, first T) []T {
	batch := append(make([]T, 0, c.max), first)
	timer := time.NewTimer(c.linger)
	defer timer.Stop()
	for len(batch) < c.max {
		select {
		case item := <-c.in:
			batch = append(batch, item)
		case <-timer.C:
			return c.drain(batch)
		case <-ctx.Done():
			return batch
		}
	}
	return batch
}

func (c *collector[T]) drain(batch []T) []T {
	for len(batch) < c.max {
		select {
		case item := <-c.in:
			batch = append(batch, item)
		default:
			return batch
		}
	}
	return batch
}

// tryBound ends one try of a flush: a connection may hang without an end.
const tryBound = 20 * time.Second

// write flushes a batch. Where the store is away it tries again with growing pauses, for as long as
// there is any hope: the batch may hold the only word of a job's id. Where the store refuses the data
// the batch is halved until the one item that spoils it stands alone. What is given up is found again
// by checks and sweeps, where the provider can be asked.
func (c *collector[T]) write(hard context.Context, batch []T) {
	loyal, end := context.WithTimeout(hard, c.loyal)
	defer end()
	patience := time.NewTimer(c.patient)
	defer patience.Stop()
	pause := 50 * time.Millisecond
	for {
		try, done := context.WithTimeout(loyal, tryBound)
		err := c.flush(try, batch)
		done()
		if err == nil {
			return
		}
		if control.CodeOf(err) == control.CodeUnavailable {
			patience.Reset(c.patient) // it is for other errors
		}
		if refusesData(err) {
			if len(batch) == 1 {
				c.log.Error("write refused", "kind", c.name, "error", err)
				c.spoiled(loyal, batch[0], err)
				return
			}
			c.write(hard, batch[:len(batch)/2])
			c.write(hard, batch[len(batch)/2:])
			return
		}
		select {
		case <-patience.C:
			c.log.Error("writes given up", "kind", c.name, "count", len(batch), "error", err)
			return
		case <-loyal.Done():
			c.log.Error("writes given up", "kind", c.name, "count", len(batch), "error", err)
			return
		case <-time.After(pause):
			c.log.Warn("write failed, trying again", "kind", c.name, "count", len(batch), "error", err)
		}
		pause = min(2*pause, 2*time.Second)
	}
}

// refusesData tells an error about what was written (SQLSTATE classes 22 and 23) from one about the store.
func refusesData(err error) bool {
	var sql interface{ SQLState() string }
	if !errors.As(err, &sql) || len(sql.SQLState()) < 2 {
		return false
	}
	class := sql.SQLState()[:2]
	return class == "22" || class == "23"
}
