package session

import (
	"sync"
	"time"
)

// The bound of failed tries for one account and for one peer address.
const (
	maxTries  = 10
	tryWindow = 5 * time.Minute
	maxKeys   = 10_000
)

// tries counts failed sign-ins by key in this process. A try is counted before the password is looked at
// and given back when it was right, so that many at once cannot slip through.
type tries struct {
	mu   sync.Mutex
	keys map[string][]time.Time // newest last, at most maxTries
}

func newTries() *tries { return &tries{keys: map[string][]time.Time{}} }

// take counts a try, or tells how long to wait.
func (t *tries) take(key string, now time.Time) (wait time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := recent(t.keys[key], now)
	if len(list) >= maxTries {
		t.keys[key] = list
		return list[0].Add(tryWindow).Sub(now), false
	}
	if len(list) == 0 && len(t.keys) >= maxKeys {
		t.evict(now)
	}
	t.keys[key] = append(list, now)
	return 0, true
}

// giveBack takes the newest try of the key off the count.
func (t *tries) giveBack(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if list := t.keys[key]; len(list) > 1 {
		t.keys[key] = list[:len(list)-1]
	} else {
		delete(t.keys, key)
	}
}

// forget clears the key: its owner has shown to know the password.
func (t *tries) forget(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.keys, key)
}

// evict makes room: what ran out goes, and if nothing did, the key with the fewest tries.
func (t *tries) evict(now time.Time) {
	fewest, least := "", maxTries+1
	for key, list := range t.keys {
		if list = recent(list, now); len(list) == 0 {
			delete(t.keys, key)
		} else if len(list) < least {
			fewest, least = key, len(list)
		}
	}
	if len(t.keys) >= maxKeys {
		delete(t.keys, fewest)
	}
}

func recent(list []time.Time, now time.Time) []time.Time {
	for len(list) > 0 && now.Sub(list[0]) >= tryWindow {
		list = list[1:]
	}
	return list
}
