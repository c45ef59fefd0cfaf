package dispatch

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/provider"
)

// givenUpAfter is the number of deliveries after which a message of an attempt that nobody knows is
// dropped (it was rolled back, or is older than the database's restore), and one for a provider to which
// nobody who took it speaks is rejected: about two minutes.
const givenUpAfter = 20

// work takes messages while there is room for them.
func (s *Service) work(b bounds) {
	ctx := b.ctx
	var flying sync.WaitGroup
	defer flying.Wait()
	for ctx.Err() == nil {
		more, full, err := s.round(b, &flying)
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("dispatch messages could not be taken", "error", err)
		}
		if more && err == nil {
			continue
		}
		var freed <-chan struct{}
		if full {
			freed = s.lanes.freed
		}
		timer := time.NewTimer(s.Poll)
		select {
		case <-ctx.Done():
		case <-s.Transport.Wake():
		case <-freed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// round takes what there is room for and starts its submits. more: a lane gave all that was asked of
// it; full: a lane has no room.
func (s *Service) round(b bounds, flying *sync.WaitGroup) (more, full bool, err error) {
	var wants []Want
	room := map[string]int{}
	for _, lane := range s.Lanes() {
		if n := min(s.lanes.free(lane), 100); n > 0 {
			wants = append(wants, Want{Group: lane, Max: n})
			room[lane] = n
		} else {
			full = true
		}
	}
	if len(wants) == 0 {
		return false, full, nil
	}
	got, err := s.Transport.Take(b.sending, wants)
	if err != nil || len(got) == 0 {
		return false, full, err
	}
	if b.ctx.Err() != nil { // stopping: somebody else may begin them at once
		return false, full, s.Transport.Nack(b.sending, got, 0)
	}
	for _, d := range got {
		if room[d.Group]--; room[d.Group] == 0 {
			more = true
		}
	}
	var batch []parcel
	var done, busy, foreign []Delivery
	var hasten []uuid.UUID
	for _, d := range got {
		if d.Type == control.EventCancelRequest {
			hasten, done = append(hasten, d.Aggregate), append(done, d)
			continue
		}
		p := parcel{delivery: d}
		if err := json.Unmarshal(d.Payload, &p.message); err != nil || p.message.AttemptID == uuid.Nil {
			// Its truth is the attempt's row; the sweep writes a good one if it is still needed.
			s.counts.undecoded.Add(1)
			s.Log.Error("dispatch message cannot be read", "event", d.ID, "error", err)
			done = append(done, d)
			continue
		}
		if _, err := s.Providers.Find(p.message.Provider); err != nil && d.Count < givenUpAfter {
			foreign = append(foreign, d) // another process may speak to it
			continue
		}
		p.lane, p.pool = d.Group, p.message.Provider+"\x00"+p.message.ProviderAccount+"\x00"+p.message.ModelCode
		if !s.pools.tryAcquire(p.pool) {
			s.counts.postponed.Add(1)
			busy = append(busy, d)
			continue
		}
		if !s.lanes.tryAcquire(p.lane) { // the transport gave more than was asked for
			s.pools.release(p.pool)
			busy = append(busy, d)
			continue
		}
		// The deadline runs from before Begin: a process that slept in between never sends.
		p.ctx, p.cancel = context.WithTimeout(b.sending, s.SubmitTimeout)
		batch = append(batch, p)
	}
	if len(hasten) > 0 {
		if err := s.Checks.Hasten(b.sending, hasten); err != nil {
			s.Log.Warn("cancel request could not be passed on", "error", err)
		}
		signal(s.looked)
	}
	done = append(done, s.begin(b, batch, flying)...)
	s.giveBack(b.sending, done, busy)
	s.giveBack(b.sending, nil, foreign)
	return more, full, nil
}

// parcel is a message with the room that was taken for it.
type parcel struct {
	delivery   Delivery
	message    control.DispatchMessage
	lane, pool string
	ctx        context.Context
	cancel     context.CancelFunc
}

func (s *Service) release(p parcel) {
	p.cancel()
	s.pools.release(p.pool)
	s.lanes.release(p.lane)
}

// begin begins a batch, starts the submits of those that began, and returns the messages whose work
// is now in the attempts' rows: from here on checks find them, not messages.
func (s *Service) begin(b bounds, batch []parcel, flying *sync.WaitGroup) []Delivery {
	ctx := b.sending // a stop does not cut it: it would leave attempts begun that nobody sends
	if len(batch) == 0 {
		return nil
	}
	refs := make([]Ref, len(batch))
	for i, p := range batch {
		refs[i] = Ref{AttemptID: p.message.AttemptID, FencingToken: p.message.FencingToken}
	}
	begun, err := s.Attempts.Begin(ctx, refs, s.SubmitTimeout+s.SubmitMargin)
	if err != nil || len(begun) != len(batch) {
		// Whether it was committed is not known: nothing is sent. The message comes again; an attempt
		// that did begin is then past CREATED and its overdue check looks the job up.
		if ctx.Err() == nil {
			s.Log.Error("attempts could not be begun", "count", len(batch), "error", err)
		}
		for _, p := range batch {
			s.release(p)
		}
		return nil
	}
	done := make([]Delivery, 0, len(batch))
	for i, p := range batch {
		switch begun[i].Finding {
		case FoundBegun:
			flying.Go(func() {
				defer s.release(p)
				s.submit(p.ctx, b.hard, begun[i].Order)
			})
			done = append(done, p.delivery)
			continue
		case FoundCanceled:
			if s.endings.add(ctx, Ending{Ref: begun[i].Order.Ref, State: control.AttemptCanceled, ActualCost: 0}) {
				done = append(done, p.delivery)
			}
		case FoundMissing:
			if p.delivery.Count >= givenUpAfter {
				s.Log.Error("dispatch message of an attempt that does not exist", "attempt", p.message.AttemptID)
				done = append(done, p.delivery)
			} else if err := s.Transport.Nack(ctx, []Delivery{p.delivery}, s.again(p.delivery.Count)); err != nil {
				s.Log.Warn("dispatch message could not be put back", "error", err)
			}
		case FoundPast:
			s.counts.past.Add(1)
			done = append(done, p.delivery)
		}
		s.release(p)
	}
	return done
}

func (s *Service) giveBack(ctx context.Context, done, busy []Delivery) {
	if len(done) > 0 {
		if err := s.Transport.Ack(ctx, done); err != nil && ctx.Err() == nil {
			s.Log.Warn("dispatch messages could not be acknowledged", "count", len(done), "error", err)
		}
	}
	if len(busy) > 0 {
		if err := s.Transport.Nack(ctx, busy, s.again(busy[0].Count)); err != nil && ctx.Err() == nil {
			s.Log.Warn("dispatch messages could not be put back", "count", len(busy), "error", err)
		}
	}
}

// again is the wait before the next delivery: doubling from 100 ms to 5 s, spread.
func (s *Service) again(deliveries int) time.Duration {
	return time.Duration(doubling(0.1, deliveries, 5) * (1 + s.Rand()) * float64(time.Second))
}

// submit sends one order, once, and records what came of it.
func (s *Service) submit(ctx, hard context.Context, o Order) {
	s.counts.submits.Add(1)
	s.counts.flying.Add(1)
	defer s.counts.flying.Add(-1)
	a := s.send(ctx, o)
	s.record(hard, o, a)
}

func (s *Service) send(ctx context.Context, o Order) provider.Answer {
	p, err := s.Providers.Find(o.Provider)
	if err != nil {
		return provider.Answer{Outcome: provider.SurelyNot, Class: provider.ClassConfig, Message: err.Error(), Retry: true}
	}
	submission := provider.Submission{
		AttemptID: o.AttemptID, Key: o.Key, Account: o.Account, Pool: o.Pool, Model: o.Model, Kind: o.Kind,
		Parameters: o.Parameters, Trace: o.Trace,
	}
	if s.CallbackURL != nil && p.Capabilities.Callback != provider.CallbackNone {
		submission.CallbackURL = s.CallbackURL(o.Provider, o.AttemptID, o.CallbackToken)
	}
	a := p.Adapter.Submit(ctx, submission)
	a.Raw = provider.Redact(a.Raw, []string{o.CallbackToken})
	return a
}
