package schedule

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"fairlane/control"
)

// mender brings a shared index back: it waits until there are answers, has the index begun and rebuilt,
// and says so once there have been answers for a while. It is a goroutine of the turn's.
//
// Between Begin and the rebuild it hands over to the loop and waits, so that every event that the loop
// applies from then on goes to both indexes, and every row that changed earlier is read by the rebuild.
type mender struct {
	indexes Indexes
	rebuild Rebuilder
	group   string
	hold    time.Duration // answers without a break before the index is used again
	quick   bool          // there were answers all the time: as soon as it is rebuilt
	every   time.Duration // between two questions
	log     *slog.Logger
	now     func() time.Time

	follow chan struct{} // "write to both from here on"; the loop takes it between two drains
	mended chan struct{} // closed at the end
	wake   chan struct{} // wakes the loop for either
	broken atomic.Bool   // a write of the loop has failed since
	away   atomic.Bool   // there was no answer
}

func (m *mender) run(ctx context.Context) {
	anew := false
	for first := true; ctx.Err() == nil; first = false {
		if !first && !pause(ctx, m.every) || !m.answers(ctx) {
			continue
		}
		since := m.now()
		if err := m.indexes.Begin(ctx, m.group, anew); err != nil {
			m.say(ctx, err)
			continue
		}
		m.wakeLoop()
		select {
		case m.follow <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if err := m.rebuild.Rebuild(ctx, m.group); err != nil {
			anew = control.CodeOf(err) == control.CodeNotFound // what was kept cannot be corrected
			m.say(ctx, err)
			continue
		}
		if m.steady(ctx, since) {
			close(m.mended)
			m.wakeLoop()
			return
		}
		anew = m.broken.Load()
	}
}

func (m *mender) wakeLoop() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// steady waits until there have been answers since then for hold; false when one has failed.
func (m *mender) steady(ctx context.Context, since time.Time) bool {
	for {
		if m.broken.Load() || !m.answers(ctx) {
			return false
		}
		if m.quick || m.now().Sub(since) >= m.hold {
			return true
		}
		if !pause(ctx, m.every) {
			return false
		}
	}
}

func (m *mender) answers(ctx context.Context) bool {
	err := m.indexes.Ping(ctx)
	if err != nil && ctx.Err() == nil {
		m.quick = false
		if !m.away.Swap(true) {
			m.wakeLoop()
		}
	}
	return err == nil
}

func (m *mender) say(ctx context.Context, err error) {
	if ctx.Err() == nil {
		m.log.Warn("queue index not rebuilt, tried again", "group", m.group, "error", err)
		pause(ctx, 4*m.every)
	}
}

// pause waits; false when ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// mendWake wakes a waiting loop when the mender wants something of it; the next look does it.
func (t *turn) mendWake() <-chan struct{} {
	if t.mend == nil {
		return nil
	}
	return t.mend.wake
}
