package audit

import "context"

// Appender adds one event to the chain, in a transaction of its own.
type Appender interface {
	Append(ctx context.Context, e Event) (sequence int64, err error)
}
