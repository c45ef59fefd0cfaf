package live

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"fairlane/control/monitor"
	"fairlane/policy/access"
)

// Run beats and checks until ctx ends.
func (h *Hub) Run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { h.beats(ctx) })
	both.Go(func() { h.checks(ctx) })
	both.Wait()
	return nil
}

func (h *Hub) beats(ctx context.Context) {
	tick := time.NewTicker(h.cfg.BeatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		h.beat()
	}
}

// beat tells everybody how old the facts are and which numbers are the latest, and ends who cannot follow.
func (h *Hub) beat() {
	now := h.cfg.Now()
	topics, epoch := map[monitor.Topic]topicBeat{}, ""
	for name, t := range h.topics {
		topics[name] = t.beat()
		epoch = t.epoch()
	}
	f, err := beatFrame(epoch, topics, now)
	if err != nil {
		h.cfg.Log.Error("beat cannot be framed", "error", err)
		return
	}
	for _, s := range h.all() {
		s.setBeat(h.beatOf(s, f, topics, epoch, now))
		if since := s.slowSince(); !since.IsZero() && now.Sub(since) > h.cfg.SlowAfter {
			s.close(CloseSlow, "too slow")
		}
	}
}

// checks looks at rights and sessions every CheckEvery, and at once when the access version moves.
func (h *Hub) checks(ctx context.Context) {
	tick := time.NewTicker(h.cfg.CheckEvery / 4)
	defer tick.Stop()
	sure, version, checked := h.cfg.Now(), h.cfg.Rights.Version(), h.cfg.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if v := h.cfg.Rights.Version(); v == version && h.cfg.Now().Sub(checked) < h.cfg.CheckEvery {
			continue
		}
		version, checked = h.cfg.Rights.Version(), h.cfg.Now()
		look, cancel := context.WithTimeout(ctx, h.cfg.CheckEvery)
		err := h.checkAll(look)
		cancel()
		switch {
		case err == nil:
			sure = h.cfg.Now()
		case ctx.Err() != nil:
			return
		case h.cfg.Now().Sub(sure) > h.cfg.Unsure:
			h.cfg.Log.Warn("rights of open sockets unknown for too long, they are closed", "error", err, "sockets", h.Open())
			for _, s := range h.all() {
				s.close(CloseRestart, "rights cannot be read")
			}
		}
	}
}

func (h *Hub) checkAll(ctx context.Context) error {
	sockets := h.all()
	if len(sockets) == 0 {
		return nil
	}
	ids, seen := make([]string, 0, len(sockets)), map[string]bool{}
	for _, s := range sockets {
		if !seen[s.session] {
			seen[s.session] = true
			ids = append(ids, s.session)
		}
	}
	living, sessionErr := h.cfg.Sessions.Alive(ctx, ids)
	h.lookAgain(ctx, sockets)
	rights, rightsErr := map[uuid.UUID]access.Rights{}, error(nil)
	for _, s := range sockets {
		if sessionErr == nil && !living[s.session] {
			s.close(CloseSession, "session ended")
			continue
		}
		r, known := rights[s.operator]
		if !known {
			var err error
			if r, err = h.cfg.Rights.Rights(s.operator); err != nil {
				rightsErr = err
				continue
			}
			rights[s.operator] = r
		}
		if !s.stillMay(r) {
			s.close(CloseForbidden, "forbidden")
		}
	}
	if sessionErr != nil {
		return sessionErr
	}
	return rightsErr
}

func (s *socket) stillMay(r access.Rights) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t, n := range s.needs {
		if !n.granted(r, t.name) {
			return false
		}
	}
	return r.May(access.SelfUse)
}
