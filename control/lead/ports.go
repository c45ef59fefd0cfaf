package lead

import (
	"context"
	"time"
)

// Leases is the table of leases. Every time is the database's.
type Leases interface {
	// Acquire takes the lease when nobody holds it or its time has run out, and returns the new term.
	// held is false, with no error, while another holder's lease is still good.
	Acquire(ctx context.Context, name, holder string, ttl time.Duration) (term int64, held bool, err error)
	// Renew prolongs the lease of that term; false when a later term has replaced it.
	Renew(ctx context.Context, name, holder string, term int64, ttl time.Duration) (bool, error)
	// Release gives the lease of that term back at once.
	Release(ctx context.Context, name, holder string, term int64) error
}
