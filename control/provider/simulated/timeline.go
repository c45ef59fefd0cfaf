package simulated

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// timeline runs what is planned when its time has come, one after the other.
type timeline struct {
	now  func() time.Time
	mu   sync.Mutex
	plan planHeap
	wake chan struct{}
}

type planned struct {
	at time.Time
	do func()
}

type planHeap []planned

func (h planHeap) Len() int           { return len(h) }
func (h planHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h planHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *planHeap) Push(x any)        { *h = append(*h, x.(planned)) }
func (h *planHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = planned{}
	*h = old[:len(old)-1]
	return last
}

func newTimeline(now func() time.Time) *timeline {
	return &timeline{now: now, wake: make(chan struct{}, 1)}
}

func (t *timeline) at(at time.Time, do func()) {
	t.mu.Lock()
	first := len(t.plan) == 0 || at.Before(t.plan[0].at)
	heap.Push(&t.plan, planned{at, do})
	t.mu.Unlock()
	if first {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// due takes the next thing whose time has come, or says how long to wait for it.
func (t *timeline) due() (func(), time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.plan) == 0 {
		return nil, time.Hour
	}
	if wait := t.plan[0].at.Sub(t.now()); wait > 0 {
		return nil, wait
	}
	return heap.Pop(&t.plan).(planned).do, 0
}

func (t *timeline) run(ctx context.Context) {
	for ctx.Err() == nil {
		do, wait := t.due()
		if do != nil {
			do()
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-t.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}
