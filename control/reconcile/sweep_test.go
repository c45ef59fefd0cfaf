package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type ledger struct {
	mu   sync.Mutex
	runs map[string][]Result
	errs map[string]int
}

func (l *ledger) Ran(name string, _ time.Time, r Result, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[name] = append(l.runs[name], r)
	if err != nil {
		l.errs[name]++
	}
}

func TestEachSweepKeepsItsOwnClockAndAFailureStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{runs: map[string][]Result{}, errs: map[string]int{}}
		s := New([]Sweep{
			{Name: "often", Every: time.Second, Do: func(context.Context) (Result, error) { return Result{2, 1}, nil }},
			{Name: "broken", Every: time.Second, Do: func(context.Context) (Result, error) { return Result{}, errors.New("away") }},
			{Name: "slow", Every: time.Second, Do: func(ctx context.Context) (Result, error) { <-ctx.Done(); return Result{}, ctx.Err() }},
			{Name: "seldom", Every: time.Minute, Do: func(context.Context) (Result, error) { return Result{}, nil }},
		}, l, slog.New(slog.DiscardHandler), nil)
		ctx, stop := context.WithTimeout(t.Context(), 9500*time.Millisecond)
		defer stop()
		if err := s.Run(ctx, 1); err != nil {
			t.Fatal(err)
		}
		if n := len(l.runs["often"]); n != 10 {
			t.Errorf("often ran %d times in 9.5 s, want 10", n)
		}
		if n := l.errs["broken"]; n != 10 {
			t.Errorf("broken was reported %d times, want 10", n)
		}
		if len(l.runs["seldom"]) != 1 || len(l.runs["slow"]) != 0 {
			t.Errorf("seldom ran %d times, slow was reported %d times", len(l.runs["seldom"]), len(l.runs["slow"]))
		}
	})
}

func TestBatchesStopsAtAShortOneAndAtItsBound(t *testing.T) {
	left := 25
	do := func(_ context.Context, limit int) (int, error) { n := min(limit, left); left -= n; return n, nil }
	if r, err := Batches(do, 10, 5)(t.Context()); err != nil || r.Repaired != 25 {
		t.Errorf("got %+v, %v", r, err)
	}
	left = 100
	if r, _ := Batches(do, 10, 5)(t.Context()); r.Repaired != 50 || left != 50 {
		t.Errorf("a run takes at most 5 batches of 10: %+v, %d left", r, left)
	}
}
