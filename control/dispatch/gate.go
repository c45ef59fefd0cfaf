package dispatch

import "sync"

// gate bounds how much is in flight for each key. It has no queue: who finds it full goes elsewhere.
type gate struct {
	mu    sync.Mutex
	limit int
	used  map[string]int
	freed chan struct{} // holds a hint when something was released
}

func newGate(limit int) *gate {
	return &gate{limit: limit, used: map[string]int{}, freed: make(chan struct{}, 1)}
}

func (g *gate) free(key string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limit - g.used[key]
}

func (g *gate) tryAcquire(key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.used[key] >= g.limit {
		return false
	}
	g.used[key]++
	return true
}

func (g *gate) release(key string) {
	g.mu.Lock()
	if g.used[key]--; g.used[key] <= 0 {
		delete(g.used, key)
	}
	g.mu.Unlock()
	signal(g.freed)
}
