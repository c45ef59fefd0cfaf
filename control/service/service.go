package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Causes and answers of a service's life.
var (
	// ErrStopped is the cause with which the context of a run ends when Stop was called.
	ErrStopped = errors.New("service stopped")
	// ErrStartedBefore is the answer of a second Start: a service has one life.
	ErrStartedBefore = errors.New("service was started before")
	// ErrEnded says that a run returned though nobody had asked for it.
	ErrEnded = errors.New("service ended by itself")
)

// Run is the work of a service. It calls started once it is of use to others, and returns soon after ctx
// has ended; context.Cause(ctx) is then ErrStopped. An error after that is told by Stop.
type Run func(ctx context.Context, started func()) error

// Service is one part of the process with one goroutine of its own.
type Service struct {
	name    string
	run     Run
	started chan struct{}
	done    chan struct{}

	mu     sync.Mutex
	cancel context.CancelCauseFunc // nil until Start
	over   bool                    // Stop was called, or a Start refused
	err    error                   // valid once done is closed
}

// New names the work; nothing runs yet.
func New(name string, run Run) *Service {
	return &Service{name: name, run: run, started: make(chan struct{}), done: make(chan struct{})}
}

// Func is a service that is of use as soon as it runs.
func Func(name string, run func(ctx context.Context) error) *Service {
	return New(name, func(ctx context.Context, started func()) error {
		started()
		return run(ctx)
	})
}

// Name is the name given to New.
func (s *Service) Name() string { return s.name }

// Start begins the run and returns at once; Started tells when it is of use. The run keeps the values of
// ctx but not its end: services stop in an order, which a shared cancellation would break.
func (s *Service) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil || s.over {
		return fmt.Errorf("%s: %w", s.name, ErrStartedBefore)
	}
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.cancel = cancel
	go func() {
		defer close(s.done)
		defer cancel(nil)
		err := s.run(inner, sync.OnceFunc(func() { close(s.started) }))
		asked := errors.Is(context.Cause(inner), ErrStopped)
		switch {
		case asked && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, ErrStopped)):
		case err != nil:
			s.err = fmt.Errorf("%s: %w", s.name, err)
		default:
			s.err = fmt.Errorf("%s: %w", s.name, ErrEnded)
		}
	}()
	return nil
}

// Started is closed when the run has said that it is of use.
func (s *Service) Started() <-chan struct{} { return s.started }

// Done is closed when the run has returned, or when Stop came before any Start.
func (s *Service) Done() <-chan struct{} { return s.done }

// Err is how the run ended: nil after a wanted stop. It is nil while Done is open.
func (s *Service) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Stop ends the run's context and waits until it has returned or ctx ends. Any number of callers may call
// it, before, during and after the run; each gets the same answer once the run has returned.
func (s *Service) Stop(ctx context.Context) error {
	s.mu.Lock()
	switch {
	case s.cancel != nil:
		s.cancel(ErrStopped)
	case !s.over:
		close(s.done)
	}
	s.over = true
	s.mu.Unlock()
	select {
	case <-s.done:
		return s.err
	default:
	}
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("%s did not stop in time: %w", s.name, context.Cause(ctx))
	}
}
