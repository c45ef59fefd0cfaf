package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"fairlane/control"
	"fairlane/control/provider"
)

// track looks at attempts that are due, at most Checking at once, until ctx ends.
func (s *Service) track(ctx context.Context) {
	var flying sync.WaitGroup
	defer flying.Wait()
	room := newGate(s.Checking)
	hold := 3 * s.ReadTimeout // a check makes at most two calls
	speaks := s.Providers.Codes()
	for ctx.Err() == nil {
		free := room.free("")
		var due []Check
		var err error
		if free > 0 {
			if due, err = s.Checks.Due(ctx, speaks, free, hold); err != nil && ctx.Err() == nil {
				s.Log.Warn("due attempts could not be read", "error", err)
			}
		}
		for _, c := range due {
			room.tryAcquire("")
			flying.Go(func() {
				defer room.release("")
				s.look(ctx, c)
			})
		}
		if free > 0 && len(due) == free && err == nil {
			continue
		}
		timer := time.NewTimer(s.Poll)
		var freed <-chan struct{}
		if free == 0 {
			freed = room.freed
		}
		select {
		case <-ctx.Done():
		case <-s.looked:
		case <-freed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// look does one check within the bound of its provider.
func (s *Service) look(ctx context.Context, c Check) {
	if c.State == control.AttemptSubmitting { // its worker is dead: it would have answered by now
		s.unknown(ctx, c.Ref, provider.ClassTimeout, "WORKER_LOST", "")
		return
	}
	p, err := s.Providers.Find(c.Provider)
	if err != nil {
		s.Log.Error("attempt of a provider that is not configured", "provider", c.Provider)
		s.notes.add(ctx, Note{Ref: c.Ref, Progress: -1, Next: s.pace.silent(c.Silent, s.Rand())})
		return
	}
	if !s.checks.tryAcquire(c.Provider) {
		s.notes.add(ctx, Note{Ref: c.Ref, Progress: -1, Next: time.Second})
		return
	}
	defer s.checks.release(c.Provider)
	s.counts.checks.Add(1)
	s.counts.checking.Add(1)
	defer s.counts.checking.Add(-1)
	if c.State == control.AttemptUnknown {
		s.resolve(ctx, p, c)
		return
	}
	s.poll(ctx, p, c)
}

// poll asks for the job of an accepted or lost attempt.
func (s *Service) poll(ctx context.Context, p provider.Provider, c Check) {
	job := provider.Job{ID: c.JobID, Key: c.Key, Account: c.Account, Model: c.Model}
	st, err := s.status(ctx, p, job)
	if ctx.Err() != nil {
		return
	}
	if err != nil || st.State == provider.JobAbsent {
		// No answer, or one that says nothing: neither success nor failure.
		s.silent(ctx, p, c, err)
		return
	}
	if st.State.Ended() {
		s.end(ctx, c, st)
		return
	}
	note := Note{Ref: c.Ref, Answered: true, Progress: st.Progress,
		Next: max(s.pace.next(c.Now.Sub(c.SubmitEnded), c.Expected, c.P95, s.Rand()), p.Capabilities.MinPollInterval)}
	if c.CancelRequested && !c.CancelSent && cancels(p.Capabilities.Cancel, st.State) {
		// The state was read just now: where a late cancel would erase a result, none is sent for an
		// ended job. The slot stays held until the provider says that the job is over.
		call, cancel := context.WithTimeout(ctx, s.ReadTimeout)
		err := p.Adapter.Cancel(call, job)
		cancel()
		note.CancelSent = err == nil || errors.Is(err, provider.ErrCannot)
		note.Next = max(s.pace.scaled(2), p.Capabilities.MinPollInterval)
		if err != nil {
			s.Log.Warn("cancel not sent", "attempt", c.AttemptID, "error", err)
		}
	}
	if s.expired(ctx, p, c, note.Next) {
		return
	}
	s.notes.add(ctx, note)
}

func cancels(kind provider.CancelKind, state provider.JobState) bool {
	switch kind {
	case provider.CancelAny, provider.CancelBestEffort:
		return true
	case provider.CancelQueuedOnly:
		return state == provider.JobQueued
	case provider.CancelNone:
	}
	return false
}

func (s *Service) status(ctx context.Context, p provider.Provider, job provider.Job) (provider.Status, error) {
	call, cancel := context.WithTimeout(ctx, s.ReadTimeout)
	defer cancel()
	return p.Adapter.Status(call, job)
}

func (s *Service) silent(ctx context.Context, p provider.Provider, c Check, err error) {
	next := max(s.pace.silent(c.Silent, s.Rand()), p.Capabilities.MinPollInterval)
	if s.expired(ctx, p, c, next) {
		return
	}
	s.Log.Debug("provider gave no answer on a job", "attempt", c.AttemptID, "silent", c.Silent, "error", err)
	s.notes.add(ctx, Note{Ref: c.Ref, Progress: -1, Next: next})
}

// expired applies the two bounds of an attempt. Past its deadline it is lost, and keeps its slot; past
// the provider's longest run no job of it can hold one, and it fails. It is not tried again: whether
// the lost job was made and paid for is not known.
func (s *Service) expired(ctx context.Context, p provider.Provider, c Check, next time.Duration) bool {
	switch {
	case c.State == control.AttemptLost && c.Now.Sub(c.SubmitEnded) >= p.Capabilities.LongestRun:
		s.endings.add(ctx, Ending{
			Ref: c.Ref, State: control.AttemptFailed, ErrorClass: string(provider.ClassLost), ErrorCode: string(provider.ClassLost),
			ErrorMessage: "the provider was silent past the longest run of its jobs", ActualCost: -1,
		})
		return true
	case c.State == control.AttemptAccepted && !c.Now.Before(c.Deadline):
		s.Log.Warn("attempt lost", "attempt", c.AttemptID, "provider", c.Provider)
		return s.moves.add(ctx, Move{Ref: c.Ref, To: control.AttemptLost, Class: provider.ClassLost, Next: next})
	}
	return false
}

// resolve looks up what became of an unknown submit. Found: accepted. Surely absent: rejected, to be
// tried again. Neither: it stays as it is, with all that it holds.
func (s *Service) resolve(ctx context.Context, p provider.Provider, c Check) {
	st, err := s.lookup(ctx, p, c)
	if ctx.Err() != nil {
		return
	}
	switch {
	case err == nil && st.State != provider.JobAbsent && provider.GoodJobID(st.JobID):
		s.accept(ctx, c, st.JobID)
	case err == nil && st.State == provider.JobAbsent && surelyAbsent(p.Capabilities, c):
		s.endings.add(ctx, Ending{
			Ref: c.Ref, State: control.AttemptRejected, Retry: true, RetryAfter: s.pace.retry(c.AttemptNo, 0, s.Rand()),
			ErrorClass: string(provider.ClassConnection), ErrorCode: "NEVER_ARRIVED", ErrorMessage: "the submit never reached the provider",
		})
	default:
		next := max(s.pace.unknown(c.Silent+1, s.Rand()), p.Capabilities.MinPollInterval)
		s.notes.add(ctx, Note{Ref: c.Ref, Progress: -1, Next: next})
	}
}

func (s *Service) lookup(ctx context.Context, p provider.Provider, c Check) (provider.Status, error) {
	if !p.Capabilities.LookupByClientID {
		return provider.Status{}, provider.ErrCannot
	}
	call, cancel := context.WithTimeout(ctx, s.ReadTimeout)
	defer cancel()
	return p.Adapter.Lookup(call, provider.Job{Key: c.Key, Account: c.Account, Model: c.Model})
}

// surelyAbsent reports whether "no such job" proves that none was made: the look-up is certain, the
// window in which a job may still become visible has passed, and its record cannot have expired yet.
func surelyAbsent(can provider.Capabilities, c Check) bool {
	if !can.LookupByClientID || c.SubmitEnded.IsZero() || c.SubmitStarted.IsZero() {
		return false
	}
	return c.Now.Sub(c.SubmitEnded) >= can.SafetyWindow && (can.RecordTTL == 0 || c.Now.Sub(c.SubmitStarted) < can.RecordTTL)
}

func (s *Service) accept(ctx context.Context, c Check, jobID string) {
	s.moves.add(ctx, Move{Ref: c.Ref, To: control.AttemptAccepted, JobID: jobID, Next: paceFloor, Lease: s.Lease})
}
