package dispatch

import (
	"context"
	"time"

	"fairlane/control"
)

// Postgres is the transport that delivers straight from the outbox: a row is leased, handled, deleted.
type Postgres struct {
	outbox Outbox
	hold   time.Duration
	hints  <-chan string
	wake   chan struct{}
}

// NewPostgres makes the transport. hold is how long a taken message belongs to its taker (default
// 30 s); hints are the notifications of control.NotifyDispatch, nil for none.
func NewPostgres(outbox Outbox, hints <-chan string, hold time.Duration) *Postgres {
	if hold <= 0 {
		hold = 30 * time.Second
	}
	return &Postgres{outbox: outbox, hold: hold, hints: hints, wake: make(chan struct{}, 1)}
}

// Run turns notifications into hints until ctx ends.
func (p *Postgres) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-p.hints:
			if !ok {
				<-ctx.Done()
				return nil
			}
			signal(p.wake)
		}
	}
}

// Take leases what is there.
func (p *Postgres) Take(ctx context.Context, wants []Want) ([]Delivery, error) {
	return p.outbox.Take(ctx, control.TopicDispatch, wants, p.hold)
}

// Ack deletes.
func (p *Postgres) Ack(ctx context.Context, done []Delivery) error { return p.outbox.Ack(ctx, done) }

// Nack puts back.
func (p *Postgres) Nack(ctx context.Context, back []Delivery, after time.Duration) error {
	return p.outbox.Nack(ctx, back, after)
}

// Wake holds a hint when a notification came.
func (p *Postgres) Wake() <-chan struct{} { return p.wake }

// signal leaves one pending hint in a channel of capacity one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
