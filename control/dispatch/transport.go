package dispatch

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Transport carries dispatch messages at least once, in no promised order. A message that was taken
// and neither acknowledged nor put back comes again after a while. Losing one is survived too: the
// sweep of undispatched attempts writes it again. One that has work of its own also has a
// Run(ctx) error, which the service runs.
type Transport interface {
	// Take returns what is there now, at most Max of each group, and does not wait for more.
	Take(ctx context.Context, wants []Want) ([]Delivery, error)
	// Ack removes messages; those that were handed out again meanwhile stay.
	Ack(ctx context.Context, done []Delivery) error
	// Nack hands messages out again, not before `after`.
	Nack(ctx context.Context, back []Delivery, after time.Duration) error
	// Wake holds a hint when something may have come. It is only a hint: the worker polls too.
	Wake() <-chan struct{}
}

// Want asks for at most Max messages of a group; a group is a lane.
type Want struct {
	Group string
	Max   int
}

// Delivery is one message in one worker's hands.
type Delivery struct {
	ID        uuid.UUID // of the event: the same at every delivery
	Group     string
	Type      string // control.EventDispatchRequest or control.EventCancelRequest
	Aggregate uuid.UUID
	Payload   []byte
	Count     int    // deliveries so far, with this one
	Receipt   string // the transport's own: which delivery this is
}

// Outbox is the table that the postgres transport delivers from.
type Outbox interface {
	Take(ctx context.Context, topic string, wants []Want, hold time.Duration) ([]Delivery, error)
	Ack(ctx context.Context, done []Delivery) error
	Nack(ctx context.Context, back []Delivery, after time.Duration) error
}
