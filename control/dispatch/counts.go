package dispatch

import (
	"sync/atomic"

	"fairlane/control"
)

// Counts are sums since the process started, of what this process did.
type Counts struct {
	Submits    int64 // calls of a provider's create
	Accepted   int64
	Rejected   int64
	Unknown    int64
	Lost       int64
	Succeeded  int64
	Failed     int64
	Canceled   int64
	Checks     int64 // reads and look-ups
	Callbacks  int64 // stored, duplicates too
	Reemitted  int64 // dispatch events written again
	Past       int64 // messages whose attempt was past CREATED
	Undecoded  int64 // messages that could not be read
	Postponed  int64 // messages put back because their pool was full
	InFlight   int64 // submits now
	CheckingIn int64 // checks now
}

type counters struct {
	submits, accepted, rejected, unknown, lost, succeeded, failed, canceled    atomic.Int64
	checks, callbacks, reemitted, past, undecoded, postponed, flying, checking atomic.Int64
}

func (c *counters) moved(to control.AttemptState) {
	switch to {
	case control.AttemptAccepted:
		c.accepted.Add(1)
	case control.AttemptUnknown:
		c.unknown.Add(1)
	case control.AttemptLost:
		c.lost.Add(1)
	case control.AttemptRejected:
		c.rejected.Add(1)
	case control.AttemptSucceeded:
		c.succeeded.Add(1)
	case control.AttemptFailed:
		c.failed.Add(1)
	case control.AttemptCanceled:
		c.canceled.Add(1)
	case control.AttemptCreated, control.AttemptSubmitting, control.AttemptAbandoned:
	}
}

// Counts returns the sums.
func (s *Service) Counts() Counts {
	c := &s.counts
	return Counts{
		Submits: c.submits.Load(), Accepted: c.accepted.Load(), Rejected: c.rejected.Load(), Unknown: c.unknown.Load(),
		Lost: c.lost.Load(), Succeeded: c.succeeded.Load(), Failed: c.failed.Load(), Canceled: c.canceled.Load(),
		Checks: c.checks.Load(), Callbacks: c.callbacks.Load(), Reemitted: c.reemitted.Load(), Past: c.past.Load(),
		Undecoded: c.undecoded.Load(), Postponed: c.postponed.Load(), InFlight: c.flying.Load(), CheckingIn: c.checking.Load(),
	}
}
