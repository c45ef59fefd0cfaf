package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Group starts services in the order in which they were added and stops them in reverse. It belongs to
// one goroutine; only Wait may run beside others.
type Group struct {
	log     *slog.Logger
	members []member
	failed  chan error
}

type member struct {
	service   *Service
	stopBound time.Duration
	running   bool
}

// NewGroup makes an empty group.
func NewGroup(log *slog.Logger) *Group { return &Group{log: log, failed: make(chan error, 1)} }

// Add appends a service; stopBound is how long Stop waits for it before it goes on to the next.
func (g *Group) Add(s *Service, stopBound time.Duration) {
	g.members = append(g.members, member{service: s, stopBound: stopBound})
}

// Start starts every service and waits until each has started before the next. When one fails, or ctx
// ends, those that run are stopped and the error names the one that failed.
func (g *Group) Start(ctx context.Context) error {
	for i := range g.members {
		m := &g.members[i]
		err := m.service.Start(ctx)
		if err == nil {
			m.running = true
			err = await(ctx, m.service)
		}
		if err != nil {
			return errors.Join(err, g.Stop())
		}
		g.log.Debug("service started", "service", m.service.Name())
		go g.watch(m.service)
	}
	return nil
}

func await(ctx context.Context, s *Service) error {
	select {
	case <-s.Started():
		return nil
	case <-s.Done():
		return s.Err()
	case <-ctx.Done():
		return fmt.Errorf("%s: start given up: %w", s.Name(), context.Cause(ctx))
	}
}

// watch ends with its service; Stop waits for the service, so it cannot outlive the group.
func (g *Group) watch(s *Service) {
	<-s.Done()
	if err := s.Err(); err != nil {
		select {
		case g.failed <- err:
		default: // an earlier failure is already told
		}
	}
}

// Wait returns nil when ctx ends, or the first failure of a service that was started.
func (g *Group) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-g.failed:
		return err
	}
}

// Stop stops in reverse order, each service within its bound, and names all that failed or would not
// stop. A second call does nothing.
func (g *Group) Stop() error {
	var failures []error
	for i := len(g.members) - 1; i >= 0; i-- {
		m := &g.members[i]
		if !m.running {
			continue
		}
		m.running = false
		ctx, cancel := context.WithTimeoutCause(context.Background(), m.stopBound, fmt.Errorf("%v are over", m.stopBound))
		err := m.service.Stop(ctx)
		cancel()
		if err != nil {
			failures = append(failures, err)
		}
		g.log.Debug("service stopped", "service", m.service.Name())
	}
	return errors.Join(failures...)
}
