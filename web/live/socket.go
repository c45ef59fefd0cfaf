package live

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"fairlane/policy/access"
)

// Close codes.
const (
	CloseSession   = 4001
	CloseForbidden = 4003
	CloseSlow      = 4008
	CloseRestart   = websocket.CloseServiceRestart
)

// socket is one client. Frames reach it by push and resnap, which never block; one goroutine writes.
type socket struct {
	hub      *Hub
	conn     *websocket.Conn
	operator uuid.UUID
	session  string

	mu      sync.Mutex
	topics  map[*topic]func() // subscribed, with the release of the watch
	needs   map[*topic]need
	pending []queued
	stale   []*topic // wait for a snapshot, oldest first
	beat    *frame   // the latest one not yet written
	slow    time.Time
	code    int
	reason  string

	wake chan struct{}
	quit chan struct{} // closed once code is set
}

type queued struct {
	topic *topic
	frame *frame
}

func newSocket(h *Hub, conn *websocket.Conn, who access.Subject) *socket {
	return &socket{hub: h, conn: conn, operator: who.Operator, session: who.Session, topics: map[*topic]func(){},
		needs: map[*topic]need{}, wake: make(chan struct{}, 1), quit: make(chan struct{})}
}

// push queues a frame. When the queue is full the topic's frames make room for one fresh snapshot.
func (s *socket) push(t *topic, f *frame) {
	s.mu.Lock()
	switch {
	case s.isStale(t): // the snapshot to come holds it
	case len(s.pending) >= s.hub.cfg.QueueFrames:
		s.drop(t)
		s.stale = append(s.stale, t)
		if s.slow.IsZero() {
			s.slow = s.hub.cfg.Now()
		}
	default:
		s.pending = append(s.pending, queued{t, f})
	}
	s.mu.Unlock()
	s.signal()
}

// resnap makes the topic's next frame a snapshot.
func (s *socket) resnap(t *topic) {
	s.mu.Lock()
	if !s.isStale(t) {
		s.drop(t)
		s.stale = append(s.stale, t)
	}
	s.mu.Unlock()
	s.signal()
}

// caughtUp is called under the topic's lock with its snapshot in hand.
func (s *socket) caughtUp(t *topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(t)
	for i, x := range s.stale {
		if x == t {
			s.stale = append(s.stale[:i], s.stale[i+1:]...)
			break
		}
	}
}

func (s *socket) setBeat(f *frame) {
	s.mu.Lock()
	s.beat = f
	s.mu.Unlock()
	s.signal()
}

func (s *socket) isStale(t *topic) bool {
	for _, x := range s.stale {
		if x == t {
			return true
		}
	}
	return false
}

func (s *socket) drop(t *topic) {
	kept := s.pending[:0]
	for _, q := range s.pending {
		if q.topic != t {
			kept = append(kept, q)
		}
	}
	clear(s.pending[len(kept):])
	s.pending = kept
}

func (s *socket) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// next takes what is to be written; nil when there is nothing.
func (s *socket) next() *frame {
	s.mu.Lock()
	if len(s.pending) > 0 {
		f := s.pending[0].frame
		s.pending[0] = queued{}
		s.pending = s.pending[1:]
		s.mu.Unlock()
		return f
	}
	s.pending = nil
	stale := append([]*topic(nil), s.stale...)
	s.mu.Unlock()
	for _, t := range stale {
		if f := t.catchUp(s); f != nil {
			return f
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) > 0 { // queued meanwhile; the wake that came with it leads back here
		return nil
	}
	s.slow = time.Time{}
	f := s.beat
	s.beat = nil
	return f
}

// slowSince is when the queue last overflowed without having been drained since; zero: it keeps up.
func (s *socket) slowSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slow
}

// close ends the socket with that code; the first one stands.
func (s *socket) close(code int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.code != 0 {
		return
	}
	s.code, s.reason = code, reason
	_ = s.conn.NetConn().SetWriteDeadline(s.deadline(time.Second)) // a write that hangs must not hold the end up
	close(s.quit)
}

func (s *socket) closing() (int, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.code, s.reason
}

// write is the only writer. It ends when the socket is closed or a write fails or takes too long.
func (s *socket) write() {
	defer s.conn.Close() //nolint:errcheck // nothing is left to do with it
	ping := time.NewTicker(s.hub.cfg.PingEvery)
	defer ping.Stop()
	for {
		select {
		case <-s.quit:
			code, reason := s.closing()
			if code > 0 {
				_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), s.deadline(time.Second))
			}
			return
		case <-ping.C:
			if s.conn.WriteControl(websocket.PingMessage, nil, s.deadline(s.hub.cfg.WriteTimeout)) != nil {
				return
			}
		case <-s.wake:
			for f := s.next(); f != nil && !s.quitting(); f = s.next() {
				_ = s.conn.SetWriteDeadline(s.deadline(s.hub.cfg.WriteTimeout))
				s.conn.EnableWriteCompression(f.size >= compressFrom)
				if err := s.conn.WritePreparedMessage(f.msg); err != nil {
					code := -1
					if errors.Is(err, os.ErrDeadlineExceeded) {
						code = CloseSlow // a stalled connection cannot be told; it is counted
					}
					s.close(code, "too slow")
					return
				}
				s.hub.cfg.Meter.FrameWritten(f.kind)
			}
		}
	}
}

func (s *socket) quitting() bool {
	select {
	case <-s.quit:
		return true
	default:
		return false
	}
}

func (s *socket) deadline(d time.Duration) time.Time { return s.hub.cfg.Now().Add(d) }
