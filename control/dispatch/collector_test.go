package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"fairlane/control"
)

var errAway = errors.New("away")

type sink struct {
	mu      sync.Mutex
	batches [][]int
	spoiled []int
	refuse  func(batch []int) error
}

func (s *sink) flush(_ context.Context, batch []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		if err := s.refuse(batch); err != nil {
			return err
		}
	}
	s.batches = append(s.batches, slices.Clone(batch))
	return nil
}

func (s *sink) all() (out []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.batches {
		out = append(out, b...)
	}
	slices.Sort(out)
	return out
}

func collect(s *sink) *collector[int] {
	c := newCollector("numbers", 40*time.Millisecond, slog.New(slog.DiscardHandler), s.flush)
	c.spoiled = func(_ context.Context, n int, _ error) { s.spoiled = append(s.spoiled, n) }
	return c
}

func TestCollectorGroupsWhatComesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		c := collect(s)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { c.run(ctx, t.Context()); close(done) }()
		for i := range 450 {
			c.add(t.Context(), i)
		}
		time.Sleep(50 * time.Millisecond) // the bubble's clock
		synctest.Wait()
		if len(s.all()) != 450 || len(s.batches) != 3 || len(s.batches[0]) != 200 {
			t.Errorf("%d items in %d batches", len(s.all()), len(s.batches))
		}
		c.add(t.Context(), 450)
		stop() // what is queued is still written
		<-done
		if len(s.all()) != 451 {
			t.Errorf("%d items", len(s.all()))
		}
	})
}

func TestCollectorIsolatesWhatSpoilsABatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sink{refuse: func(batch []int) error {
			if slices.Contains(batch, 13) || slices.Contains(batch, 77) {
				return &pgconn.PgError{Code: "22P05"}
			}
			return nil
		}}
		c := collect(s)
		for i := range 100 {
			c.add(t.Context(), i)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		c.run(ctx, t.Context())
		if len(s.all()) != 98 || !slices.Equal(s.spoiled, []int{13, 77}) {
			t.Errorf("%d written, spoiled %v", len(s.all()), s.spoiled)
		}
	})
}

func TestCollectorWaitsForAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		back := time.Now().Add(20 * time.Second)
		s := &sink{refuse: func([]int) error {
			if time.Now().Before(back) {
				return errAway
			}
			return nil
		}}
		c := collect(s)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { c.run(ctx, t.Context()); close(done) }()
		for i := range 1000 {
			c.add(t.Context(), i)
		}
		bounded, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		taken := true
		for i := 0; i < 10 && taken; i++ {
			taken = c.add(bounded, -1)
		}
		if taken {
			t.Error("a full queue takes more")
		}
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if n := len(s.all()); n < 1000 {
			t.Errorf("%d written", n)
		}
		stop()
		<-done
	})
}

// An accepted job's id must outlive a long absence of the store; any other error is given up in time.
func TestCollectorOutlivesALongAbsence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		kept bool
	}{
		"away":  {control.Errorf(control.CodeUnavailable, "away"), true},
		"other": {errAway, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				back := time.Now().Add(10 * time.Minute)
				s := &sink{refuse: func([]int) error {
					if time.Now().Before(back) {
						return c.err
					}
					return nil
				}}
				collect(s).write(t.Context(), []int{1})
				if kept := len(s.all()) == 1; kept != c.kept {
					t.Errorf("kept %v", kept)
				}
			})
		})
	}
}

// Each try has an end of its own.
func TestCollectorLeavesAHangingConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		c := collect(s)
		tries := 0
		c.flush = func(ctx context.Context, batch []int) error {
			if tries++; tries == 1 {
				<-ctx.Done()
				return control.Errorf(control.CodeUnavailable, "hung")
			}
			return s.flush(ctx, batch)
		}
		c.write(t.Context(), []int{1})
		if len(s.all()) != 1 {
			t.Error("not written")
		}
	})
}

// Stopping ends while the store is away, at the hard bound.
func TestCollectorStopsAtItsBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sink{refuse: func([]int) error { return errAway }}
		c := collect(s)
		c.add(t.Context(), 1)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		hard, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		c.run(ctx, hard)
		if took := time.Since(began); took > 2*time.Second+100*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestGate(t *testing.T) {
	t.Parallel()
	g := newGate(2)
	for i, want := range []bool{true, true, false} {
		if g.tryAcquire("a") != want {
			t.Errorf("acquire %d of a gate of two", i+1)
		}
	}
	if !g.tryAcquire("b") || g.free("a") != 0 || g.free("c") != 2 {
		t.Error("keys are not apart")
	}
	g.release("a")
	g.release("b")
	if !g.tryAcquire("a") || len(g.used) != 1 {
		t.Errorf("%v", g.used)
	}
	select {
	case <-g.freed:
	default:
		t.Error("nobody was told")
	}
}
