package dispatch

import (
	"math"
	"time"
)

// pace says when to look again and when to try again. speed divides every interval; r is a number in
// [0, 1) that spreads them. Nothing is sooner than floor.
type pace struct{ speed float64 }

const (
	paceFloor = 250 * time.Millisecond
	retryCap  = 5 * time.Minute
)

func (p pace) scaled(seconds float64) time.Duration {
	return max(time.Duration(seconds/p.speed*float64(time.Second)), paceFloor)
}

// first is the wait from an accepted submit to its first check: 10 s, a little spread.
func (p pace) first(r float64) time.Duration { return p.scaled(10 + 2*r) }

// next is the wait between checks that were answered: 15 to 30 s; 5 to 10 s from four fifths of the
// expected time until half past the P95, when most jobs end. elapsed and the expectations are not scaled.
func (p pace) next(elapsed, expected, p95 time.Duration, r float64) time.Duration {
	if expected > 0 && elapsed >= expected*4/5 && elapsed <= p95*3/2 {
		return p.scaled(5 + 5*r)
	}
	return p.scaled(15 + 15*r)
}

// silent is the wait after the n-th check in a row without an answer: doubling from 15 s to 5 min.
func (p pace) silent(n int, r float64) time.Duration {
	return p.scaled(doubling(15, n, 300) * (1 + r/2))
}

// unknown is the wait before the n-th look-up of a submit whose fate is open: doubling from 2 s to 1 min.
func (p pace) unknown(n int, r float64) time.Duration {
	return p.scaled(doubling(2, n, 60) * (1 + r/2))
}

// retry is the wait before a task is tried again after its n-th attempt: doubling from 5 s to 5 min and
// up to twice that, or after the provider's own hint and up to half of it later. Never earlier than
// the hint, and spread at the cap too, so that many that were refused at once do not come back at once.
func (p pace) retry(n int, hint time.Duration, r float64) time.Duration {
	own := p.scaled(doubling(5, n, retryCap.Seconds()))
	if hint >= own {
		return hint + time.Duration(r*float64(max(hint/2, p.scaled(2))))
	}
	return own + time.Duration(r*float64(own))
}

// doubling is base × 2^(n−1), at most most.
func doubling(base float64, n int, most float64) float64 {
	return math.Min(base*math.Pow(2, float64(min(max(n, 1), 30)-1)), most)
}
