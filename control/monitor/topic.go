package monitor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Row is one keyed row of a snapshot.
type Row struct {
	Key  string
	JSON json.RawMessage
}

// Snapshot is a topic at one sequence number. Rows are in the order in which they are shown.
// Sequence numbers of one epoch are gapless; another process, or the same after a start, has another epoch.
type Snapshot struct {
	Topic Topic
	Epoch string
	Seq   int64
	AsOf  time.Time
	Rows  []Row
}

// Patch leads from one sequence number to the next: rows to set whole, keys that are gone, and the
// order of all keys where that changed.
type Patch struct {
	Set   []Row
	Gone  []string
	Order []string // nil: as it was, with new keys at the end
}

// Update tells a follower that a topic was read again. Patch is nil when nothing changed but AsOf.
type Update struct {
	Snapshot Snapshot
	Patch    *Patch
}

// board numbers the snapshots of one topic and tells its followers, in order.
type board struct {
	mu        sync.Mutex
	snap      Snapshot
	watchers  int
	followers map[int]func(Update)
	nextID    int
}

func newBoard(t Topic, epoch string) *board {
	return &board{snap: Snapshot{Topic: t, Epoch: epoch}, followers: map[int]func(Update){}}
}

// attach registers fn and tells it the snapshot of now before anything later.
func (b *board) attach(fn func(Update)) (detach func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := b.nextID
	b.nextID++
	b.followers[id] = fn
	fn(Update{Snapshot: b.snap})
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.followers, id)
	}
}

func (b *board) watch(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchers += n
	return b.watchers
}

func (b *board) watched() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.watchers > 0
}

// put makes rows the current ones, with the next number if they differ.
func (b *board) put(rows []Row, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	patch := diff(b.snap.Rows, rows)
	b.snap.AsOf = at
	if patch != nil {
		b.snap.Rows = rows
		b.snap.Seq++
	}
	for _, fn := range b.followers {
		fn(Update{Snapshot: b.snap, Patch: patch})
	}
}

// diff is nil when both are equal.
func diff(old, now []Row) *Patch {
	was := make(map[string]json.RawMessage, len(old))
	for _, r := range old {
		was[r.Key] = r.JSON
	}
	p := &Patch{}
	is := make(map[string]bool, len(now))
	for _, r := range now {
		is[r.Key] = true
		if before, ok := was[r.Key]; !ok || !bytes.Equal(before, r.JSON) {
			p.Set = append(p.Set, r)
		}
	}
	for _, r := range old {
		if !is[r.Key] {
			p.Gone = append(p.Gone, r.Key)
		}
	}
	if order := keys(now); !slices.Equal(order, expected(old, now, is, was)) {
		p.Order = order
	}
	if len(p.Set) == 0 && len(p.Gone) == 0 && p.Order == nil {
		return nil
	}
	return p
}

// expected is the order that a reader has after the patch when it is told none.
func expected(old, now []Row, is map[string]bool, was map[string]json.RawMessage) []string {
	out := make([]string, 0, len(now))
	for _, r := range old {
		if is[r.Key] {
			out = append(out, r.Key)
		}
	}
	for _, r := range now {
		if _, ok := was[r.Key]; !ok {
			out = append(out, r.Key)
		}
	}
	return out
}

func keys(rows []Row) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r.Key
	}
	return out
}

// rows renders a topic of the state.
func (s *State) rows(t Topic) ([]Row, error) {
	var list []Row
	var failed error
	add := func(key string, v any) {
		raw, err := json.Marshal(v)
		if err != nil && failed == nil {
			failed = fmt.Errorf("row %s of %s: %w", key, t, err)
		}
		list = append(list, Row{Key: key, JSON: raw})
	}
	switch t {
	case TopicOverview:
		add(OverviewKey, s.Overview)
	case TopicLanes:
		for _, r := range s.Lanes {
			add(r.Lane, r)
		}
		for _, r := range s.Accounts {
			add(r.Key(), r)
		}
		add(HistoryKey, s.history())
	case TopicPools:
		for _, r := range s.Pools {
			add(r.Key, r)
		}
	case TopicTenants:
		add(TenantSumKey, s.TenantSum)
		for _, r := range s.Tenants {
			add(r.ID.String(), r)
		}
	case TopicQueue:
		for _, r := range s.Queue {
			add(r.Lane, r)
		}
	case TopicHealth:
		for _, r := range s.Health {
			add(r.Key(), r)
		}
	}
	return list, failed
}
