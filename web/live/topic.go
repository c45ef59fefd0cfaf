package live

import (
	"log/slog"
	"sync"
	"time"

	"fairlane/control/monitor"
)

// How much of a topic's past is kept for those who come back.
const (
	keepPatches = 64
	keepBytes   = 512 << 10
)

// topic fans one topic out. Lock order: topic, then socket.
type topic struct {
	name monitor.Topic
	log  *slog.Logger
	now  func() time.Time

	mu        sync.Mutex
	snap      monitor.Snapshot
	snapshot  *frame   // of snap.Seq, made when first asked for
	past      []*frame // the latest patches, gapless up to snap.Seq
	pastBytes int
	subs      map[*socket]struct{}
}

func newTopic(name monitor.Topic, log *slog.Logger, now func() time.Time) *topic {
	return &topic{name: name, log: log, now: now, subs: map[*socket]struct{}{}}
}

// update takes what the feed tells, in order.
func (t *topic) update(u monitor.Update) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.snap.AsOf.IsZero() && !u.Snapshot.AsOf.IsZero()
	t.snap = u.Snapshot
	if u.Patch != nil {
		t.snapshot = nil
		f, err := patchFrame(u, t.now())
		if err != nil {
			// Nobody can be patched over it: everybody gets a snapshot.
			t.log.Error("patch cannot be framed", "topic", string(t.name), "error", err)
			t.past, t.pastBytes = nil, 0
			for s := range t.subs {
				s.resnap(t)
			}
			return
		}
		t.keep(f)
		for s := range t.subs {
			s.push(t, f)
		}
	}
	if first {
		for s := range t.subs {
			s.signal()
		}
	}
}

func (t *topic) keep(f *frame) {
	t.past, t.pastBytes = append(t.past, f), t.pastBytes+f.size
	for len(t.past) > 0 && (len(t.past) > keepPatches || t.pastBytes > keepBytes) {
		t.pastBytes -= t.past[0].size
		t.past[0] = nil
		t.past = t.past[1:]
	}
}

// join adds a socket and leaves it with everything it needs: the patches since what it already has, or
// a snapshot.
func (t *topic) join(s *socket, epoch string, seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subs[s] = struct{}{}
	if epoch == "" || epoch != t.snap.Epoch || seq > t.snap.Seq || t.snap.AsOf.IsZero() || int64(len(t.past)) < t.snap.Seq-seq {
		s.resnap(t)
		return
	}
	f, err := resumedFrame(t.snap, seq, t.now())
	if err != nil {
		s.resnap(t)
		return
	}
	s.push(t, f)
	for _, f := range t.past[int64(len(t.past))-(t.snap.Seq-seq):] {
		s.push(t, f)
	}
}

func (t *topic) leave(s *socket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.subs, s)
}

// catchUp gives a socket the snapshot of now and drops what it had queued of the topic: the snapshot
// holds it. nil while nothing was read yet.
func (t *topic) catchUp(s *socket) *frame {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.snap.AsOf.IsZero() {
		return nil
	}
	if t.snapshot == nil {
		f, err := snapshotFrame(t.snap, t.now())
		if err != nil {
			t.log.Error("snapshot cannot be framed", "topic", string(t.name), "error", err)
			return nil
		}
		t.snapshot = f
	}
	s.caughtUp(t)
	return t.snapshot
}

func (t *topic) beat() topicBeat {
	t.mu.Lock()
	defer t.mu.Unlock()
	return topicBeat{Seq: t.snap.Seq, AsOf: t.snap.AsOf.UnixMilli()}
}

func (t *topic) epoch() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.snap.Epoch
}
