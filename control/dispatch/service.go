package dispatch

import (
	"context"
	"sync"
	"time"

	"fairlane/control"
	"fairlane/control/crashpoint"
	"fairlane/control/provider"
)

// Service submits, tracks and ends attempts. One per process; several processes over one database
// share the work.
type Service struct {
	Config
	pace    pace
	counts  counters
	moves   *collector[Move]
	notes   *collector[Note]
	endings *collector[Ending]
	lanes   *gate
	pools   *gate
	checks  *gate
	looked  chan struct{} // a hint that something is due
	called  chan struct{} // a hint that a callback was stored
}

// New makes a service, or names what is wrong with the config.
func New(cfg Config) (*Service, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Service{
		Config: cfg, pace: pace{cfg.Speed},
		lanes: newGate(cfg.LaneSubmits), pools: newGate(cfg.PoolSubmits), checks: newGate(cfg.CheckingEach),
		looked: make(chan struct{}, 1), called: make(chan struct{}, 1),
	}
	s.moves = newCollector("moves", 3*time.Millisecond, cfg.Log, s.writeMoves)
	s.moves.spoiled = s.moveSpoiled
	s.notes = newCollector("notes", 50*time.Millisecond, cfg.Log, func(ctx context.Context, batch []Note) error {
		return s.Attempts.Note(ctx, batch, s.Lease)
	})
	s.endings = newCollector("endings", 40*time.Millisecond, cfg.Log, s.writeEndings)
	s.endings.spoiled = s.endingSpoiled
	return s, nil
}

// lastWrites is the time for what is still to be written when stopping, after the grace.
const lastWrites = 1500 * time.Millisecond

// bounds are the ends of a run: ctx takes nothing new, sending abandons submits in flight, and hard
// gives up what is not written by then.
type bounds struct{ ctx, sending, hard context.Context }

// Run works until ctx ends; a transport that has a Run of its own is run with it. Then it takes nothing new, gives submits in flight a short grace, records
// what came of them (an answer that was not awaited is unknown) and returns after Grace and 1.5 s at most.
func (s *Service) Run(ctx context.Context) error {
	sending, abandon := context.WithCancel(context.WithoutCancel(ctx))
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	hard, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	defer giveUp()
	defer stopWriting()

	var writers, loops sync.WaitGroup
	for _, run := range []func(ctx, hard context.Context){s.moves.run, s.notes.run, s.endings.run} {
		writers.Go(func() { run(writing, hard) })
	}
	loops.Go(func() { s.work(bounds{ctx, sending, hard}) })
	loops.Go(func() { s.track(ctx) })
	loops.Go(func() { s.handleCallbacks(ctx) })
	loops.Go(func() { s.sweep(ctx) })
	if own, ok := s.Transport.(interface{ Run(context.Context) error }); ok {
		loops.Go(func() {
			if err := own.Run(ctx); err != nil && ctx.Err() == nil {
				s.Log.Error("transport ended", "error", err)
			}
		})
	}
	done := make(chan struct{})
	go func() { loops.Wait(); stopWriting(); writers.Wait(); close(done) }()

	<-ctx.Done()
	grace := time.NewTimer(s.Grace)
	defer grace.Stop()
	last := time.NewTimer(s.Grace + lastWrites)
	defer last.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-grace.C:
			abandon()
		case <-last.C:
			giveUp()
		}
	}
}

// sweep writes dispatch events again that got lost on the way.
func (s *Service) sweep(ctx context.Context) {
	for {
		n, err := s.Checks.Reemit(ctx, s.Undispatched, 500)
		switch {
		case err != nil && ctx.Err() == nil:
			s.Log.Warn("sweep of undispatched attempts failed", "error", err)
		case n > 0:
			s.counts.reemitted.Add(int64(n))
			s.Log.Warn("dispatch events written again", "count", n)
		}
		if !sleep(ctx, s.Undispatched/3) {
			return
		}
	}
}

func (s *Service) writeMoves(ctx context.Context, batch []Move) error {
	applied, err := s.Attempts.Move(ctx, batch)
	if err != nil {
		return err
	}
	for i, ok := range applied {
		if ok {
			s.counts.moved(batch[i].To)
		}
	}
	crashpoint.Hit("submit.recorded")
	return nil
}

// moveSpoiled: the provider named a job that belongs to another attempt. What it holds for this one is
// not known.
func (s *Service) moveSpoiled(ctx context.Context, m Move, _ error) {
	if m.To != control.AttemptAccepted {
		return
	}
	m.To, m.Class, m.Code, m.JobID, m.Raw = control.AttemptUnknown, provider.ClassBadAnswer, "JOB_ID_TAKEN", "", ""
	m.Next = s.pace.unknown(1, s.Rand())
	if err := s.writeMoves(ctx, []Move{m}); err != nil {
		s.Log.Error("attempt could not be made unknown", "attempt", m.AttemptID, "error", err)
	}
}

func (s *Service) writeEndings(ctx context.Context, batch []Ending) error {
	crashpoint.Hit("end.before")
	ended, err := s.Ender.End(ctx, batch)
	if err != nil {
		return err
	}
	crashpoint.Hit("end.after")
	for i, e := range ended {
		if e.Applied {
			s.counts.moved(batch[i].State)
		}
	}
	return nil
}

// endingSpoiled ends the attempt without what the provider said in words of its own.
func (s *Service) endingSpoiled(ctx context.Context, e Ending, _ error) {
	e.RawAnswer, e.ErrorMessage = "", ""
	if e.Result != nil {
		e.Result = []byte(`{"unreadable":true}`)
	}
	if err := s.writeEndings(ctx, []Ending{e}); err != nil {
		s.Log.Error("attempt could not be ended", "attempt", e.AttemptID, "error", err)
	}
}

// sleep waits; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
