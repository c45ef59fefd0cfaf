package service_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"fairlane/control/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken")

func untilStopped(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestStopIsIdempotentAndWaits(t *testing.T) {
	t.Parallel()
	var returned bool
	s := service.New("s", func(ctx context.Context, started func()) error {
		started()
		started() // a second call is harmless
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), service.ErrStopped) {
			t.Errorf("cause %v, want ErrStopped", context.Cause(ctx))
		}
		returned = true
		return ctx.Err()
	})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-s.Started()
	for range 3 {
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if !returned {
			t.Error("Stop came back before the run")
		}
	}
	if err := s.Start(t.Context()); !errors.Is(err, service.ErrStartedBefore) {
		t.Errorf("second start: %v", err)
	}
}

func TestStopBeforeStart(t *testing.T) {
	t.Parallel()
	s := service.Func("s", untilStopped)
	for range 2 {
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := s.Start(t.Context()); !errors.Is(err, service.ErrStartedBefore) {
		t.Errorf("start after stop: %v", err)
	}
	<-s.Done()
}

func TestRunOutlivesTheStartersContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := service.Func("s", untilStopped)
	if err := s.Start(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-s.Done():
		t.Error("the run ended with its starter's context")
	case <-s.Started():
	}
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run  func(ctx context.Context) error
		want error
	}{
		"by itself":            {func(context.Context) error { return nil }, service.ErrEnded},
		"with an error":        {func(context.Context) error { return errBroken }, errBroken},
		"error while stopping": {func(ctx context.Context) error { <-ctx.Done(); return errBroken }, errBroken},
		"wrapped cancellation": {func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("loop: %w", ctx.Err()) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := service.Func("part", c.run)
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c.want == service.ErrEnded {
				<-s.Done() // otherwise the stop below would be the reason
			}
			err := s.Stop(t.Context())
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), "part") {
				t.Errorf("got %v, want %v with the name", err, c.want)
			}
			if got := s.Err(); !errors.Is(got, c.want) {
				t.Errorf("Err %v, want %v", got, c.want)
			}
		})
	}
}

func TestStopGivesUpAtItsBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := service.Func("slow", func(context.Context) error { <-release; return nil })
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		before := time.Now()
		if err := s.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(before) != time.Minute {
			t.Errorf("after %v: %v", time.Since(before), err)
		}
		close(release)
		if err := s.Stop(t.Context()); err != nil {
			t.Errorf("once it has stopped: %v", err)
		}
	})
}

// Every interleaving of Start and Stop ends with a run that has returned, or never began.
func TestStressOfTheContract(t *testing.T) {
	t.Parallel()
	for range 2000 {
		begun, ended := make(chan struct{}, 1), make(chan struct{}, 1)
		s := service.New("s", func(ctx context.Context, started func()) error {
			begun <- struct{}{}
			started()
			<-ctx.Done()
			ended <- struct{}{}
			return nil
		})
		var all sync.WaitGroup
		var startErr error
		all.Go(func() { startErr = s.Start(context.Background()) })
		for range 3 {
			all.Go(func() {
				if err := s.Stop(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		<-s.Done()
		if len(begun) != len(ended) || (startErr == nil) != (len(begun) == 1) {
			t.Fatalf("begun %d, ended %d, start %v", len(begun), len(ended), startErr)
		}
	}
}

type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) write(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) part(name string) *service.Service {
	return service.New(name, func(ctx context.Context, started func()) error {
		d.write("+" + name)
		started()
		<-ctx.Done()
		d.write("-" + name)
		return nil
	})
}

func TestGroupStartsInOrderAndStopsInReverse(t *testing.T) {
	t.Parallel()
	var d diary
	g := service.NewGroup(slog.New(slog.DiscardHandler))
	for _, name := range []string{"stores", "outbox", "web"} {
		g.Add(d.part(name), time.Minute)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Wait(ctx); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := g.Stop(); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"+stores", "+outbox", "+web", "-web", "-outbox", "-stores"}; !slices.Equal(d.lines, want) {
		t.Errorf("got %q, want %q", d.lines, want)
	}
}

func TestGroupThatCannotStartStopsWhatRuns(t *testing.T) {
	t.Parallel()
	var d diary
	g := service.NewGroup(slog.New(slog.DiscardHandler))
	g.Add(d.part("stores"), time.Minute)
	g.Add(service.New("migrate", func(context.Context, func()) error { return errBroken }), time.Minute)
	g.Add(d.part("web"), time.Minute)
	err := g.Start(t.Context())
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "migrate") {
		t.Errorf("got %v", err)
	}
	if want := []string{"+stores", "-stores"}; !slices.Equal(d.lines, want) {
		t.Errorf("got %q, want %q", d.lines, want)
	}
}

func TestGroupStartGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	g := service.NewGroup(slog.New(slog.DiscardHandler))
	g.Add(service.New("never ready", func(ctx context.Context, _ func()) error { <-ctx.Done(); return nil }), time.Minute)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBroken)
	if err := g.Start(ctx); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

func TestGroupReportsTheFirstFailure(t *testing.T) {
	t.Parallel()
	fail := make(chan struct{})
	g := service.NewGroup(slog.New(slog.DiscardHandler))
	g.Add(service.Func("stores", untilStopped), time.Minute)
	g.Add(service.Func("loop", func(context.Context) error { <-fail; return errBroken }), time.Minute)
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(fail)
	if err := g.Wait(t.Context()); !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "loop") {
		t.Errorf("got %v", err)
	}
	if err := g.Stop(); !errors.Is(err, errBroken) {
		t.Errorf("stop: %v", err)
	}
}

func TestGroupGoesOnPastAServiceThatWillNotStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d diary
		release := make(chan struct{})
		g := service.NewGroup(slog.New(slog.DiscardHandler))
		g.Add(d.part("stores"), time.Minute)
		g.Add(service.Func("stuck", func(context.Context) error { <-release; return nil }), 2*time.Second)
		if err := g.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		err := g.Stop()
		if err == nil || !strings.Contains(err.Error(), "stuck did not stop in time") || time.Since(before) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(before), err)
		}
		if want := []string{"+stores", "-stores"}; !slices.Equal(d.lines, want) {
			t.Errorf("got %q, want %q", d.lines, want)
		}
		close(release)
		synctest.Wait()
	})
}
