package session

import (
	"sync"
	"time"
)

// tokenTimes remembers when each session was last extended, so that it is not written on every request.
type tokenTimes struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func newTokenTimes() *tokenTimes { return &tokenTimes{last: map[string]time.Time{}} }

// due reports whether the last time is at least every ago, and notes now if so.
func (t *tokenTimes) due(key string, now time.Time, every time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.last[key]) < every {
		return false
	}
	if len(t.last) >= maxKeys {
		for k, at := range t.last {
			if now.Sub(at) >= every {
				delete(t.last, k)
			}
		}
		if len(t.last) >= maxKeys {
			clear(t.last) // extending once too often does no harm
		}
	}
	t.last[key] = now
	return true
}
