package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/lead"
	"fairlane/control/plan"
	"fairlane/control/schedule"
	"fairlane/store/facts"
	"fairlane/store/storetest"
)

// mortal are the leases as a process sees them that can be killed: from then on nothing of it reaches
// the database.
type mortal struct {
	*facts.Leases
	dead atomic.Bool
}

var errDead = errors.New("the process was killed")

func (m *mortal) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (int64, bool, error) {
	if m.dead.Load() {
		return 0, false, errDead
	}
	return m.Leases.Acquire(ctx, name, holder, ttl)
}

func (m *mortal) Renew(ctx context.Context, name, holder string, term int64, ttl time.Duration) (bool, error) {
	if m.dead.Load() {
		return false, errDead
	}
	return m.Leases.Renew(ctx, name, holder, term, ttl)
}

func (m *mortal) Release(ctx context.Context, name, holder string, term int64) error {
	if m.dead.Load() {
		return errDead
	}
	return m.Leases.Release(ctx, name, holder, term)
}

// A killed holder is replaced within the lease time: its successor claims what came after its death.
func TestKilledHolderIsReplacedWithinTheLeaseTime(t *testing.T) {
	t.Parallel()
	const ttl, rounds = 1500 * time.Millisecond, 8
	w := newWorld(t, 1000, 1)
	var took []float64
	type process struct {
		leases *mortal
		stop   context.CancelFunc
	}
	start := func(name string) process {
		ctx, stop := context.WithCancel(t.Context())
		p := process{&mortal{Leases: facts.NewLeases(w.facts)}, stop}
		loop := w.loop(schedule.Config{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = lead.New(lead.Config{Name: lease, Holder: name, TTL: ttl}, p.leases, loop.Run).Run(ctx)
		}()
		t.Cleanup(func() { stop(); <-done })
		return p
	}
	holder := start("p0")
	w.admit(0, 1)
	w.await(1, dispatching)
	for i := range rounds {
		standby := start(fmt.Sprintf("p%d", i+1))
		w.number(`SELECT count(*) FROM pg_sleep($1)`, 0.1+0.07*float64(i)) // at different moments between two renewals
		holder.leases.dead.Store(true)
		holder.stop()
		at := time.Now()
		w.admit(0, 1)
		w.await(i+2, dispatching)
		took = append(took, time.Since(at).Seconds())
		holder = standby
	}
	slices.Sort(took)
	if took[0] > 30*ttl.Seconds() {
		t.Errorf("nobody took over for %v s", took)
	}
	storetest.Figure(t, "schedule: a killed holder of a lease of %v is replaced, and a task claimed, after %.2f s (p50), %.2f s (p95)",
		ttl, took[len(took)/2], took[len(took)*95/100])
}

// paused is a store of a process that stops between its snapshot and its claim.
type paused struct {
	*counted
	stopped chan struct{} // it has stopped
	resume  chan struct{}
	once    atomic.Bool
}

func (p *paused) Snapshot(ctx context.Context, group string, tenants []uuid.UUID, users []plan.TenantUser) (plan.Snapshot, error) {
	s, err := p.counted.Snapshot(ctx, group, tenants, users)
	if !p.once.Swap(true) {
		close(p.stopped)
		<-p.resume
	}
	return s, err
}

// A holder that is paused over the end of its lease and comes back changes nothing: the claim that it
// had planned meets rows that have moved and passes no limit, and its next look is refused. Only the
// order of what it still could start is its own.
func TestTrap_D18_PausedHolderThatComesBackPassesNoLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6, 2)
	w.admit(0, 10)
	w.admit(1, 10)
	ctx, leases := t.Context(), facts.NewLeases(w.facts)
	old, held, err := leases.Acquire(ctx, lease, "old", 200*time.Millisecond)
	if err != nil || !held {
		t.Fatal(held, err)
	}
	p := &paused{counted: w.store, stopped: make(chan struct{}), resume: make(chan struct{})}
	loop := schedule.New(schedule.Config{Group: group, Lease: lease}, p, w.active, w.directory)
	ended := make(chan error, 1)
	go func() { ended <- loop.Run(ctx, old) }()
	<-p.stopped
	w.run(schedule.Config{}) // the successor, once the lease has run out
	w.await(6, dispatching)
	close(p.resume)
	if err := <-ended; control.CodeOf(err) != control.CodeFenced {
		t.Errorf("the old holder ended with %v, want FENCED", err)
	}
	w.await(6, dispatching)
	w.await(6, used)
	w.await(6, attempts)
	if findings, err := facts.NewCheck(w.facts).Run(ctx); err != nil || len(findings) > 0 {
		t.Errorf("check: %v, %v", findings, err)
	}
	w.release()
	w.onceEach(20)
}
