package live

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"
	"golang.org/x/time/rate"

	"fairlane/control"
	"fairlane/control/monitor"
	"fairlane/policy/access"
)

// Config is what the hub needs. Zero numbers and durations take the defaults.
type Config struct {
	Feed         Feed
	Rights       Rights
	Sessions     Sessions
	Topics       map[string]access.Permission // the permission of each topic; "task" stands for task:<id>
	Objects      Objects                      // whose the object of such a topic is; nil: there are none
	Origins      []string                     // origins allowed beside the request's own host, such as https://console.example
	Meter        Meter                        // nil: nothing is counted
	Log          *slog.Logger
	Now          func() time.Time
	MaxSockets   int           // 5,000
	PerOperator  int           // 256
	UpgradeRate  float64       // upgrades a second, 200; bursts of the same
	QueueFrames  int           // of a socket, 32
	WriteTimeout time.Duration // 5 s
	SlowAfter    time.Duration // overflowing for so long without a pause closes with 4008; 10 s
	BeatEvery    time.Duration // 2 s
	CheckEvery   time.Duration // of rights and sessions, 2 s; at most 5 s
	Unsure       time.Duration // sockets stay open while rights or sessions cannot be read; 30 s
	PingEvery    time.Duration // 20 s
}

func (c *Config) complete() error {
	if c.Feed == nil || c.Rights == nil || c.Sessions == nil || c.Log == nil || len(c.Topics) == 0 {
		return errors.New("live: feed, rights, sessions, log and topics are all needed")
	}
	if c.CheckEvery > 5*time.Second {
		return errors.New("live: rights must be checked at least every 5 s")
	}
	number := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	span := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	number(&c.MaxSockets, 5000)
	number(&c.PerOperator, 256)
	number(&c.QueueFrames, 32)
	span(&c.WriteTimeout, 5*time.Second)
	span(&c.SlowAfter, 10*time.Second)
	span(&c.BeatEvery, 2*time.Second)
	span(&c.CheckEvery, 2*time.Second)
	span(&c.Unsure, 30*time.Second)
	span(&c.PingEvery, 20*time.Second)
	if c.UpgradeRate <= 0 {
		c.UpgradeRate = 200
	}
	if c.Meter == nil {
		c.Meter = uncounted{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return nil
}

type uncounted struct{}

func (uncounted) SocketOpened()       {}
func (uncounted) SocketClosed(int)    {}
func (uncounted) FrameWritten(string) {}

// Hub keeps every socket. Handle takes requests, Run beats and checks, Shutdown ends them all.
type Hub struct {
	cfg      Config
	upgrader websocket.Upgrader
	limit    *rate.Limiter
	topics   map[monitor.Topic]*topic
	detach   []func()
	singles  singles // topics of single objects

	life context.Context // of look-ups that a message has asked for
	end  context.CancelFunc

	mu      sync.Mutex
	closed  bool
	sockets map[*socket]struct{}
	places  int               // taken: open sockets and upgrades on their way
	count   map[uuid.UUID]int // the same by operator
	running sync.WaitGroup    // two goroutines for each socket
}

// New makes a hub and attaches it to the feed.
func New(cfg Config) (*Hub, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	h := &Hub{cfg: cfg, limit: rate.NewLimiter(rate.Limit(cfg.UpgradeRate), int(cfg.UpgradeRate)+1), topics: map[monitor.Topic]*topic{},
		sockets: map[*socket]struct{}{}, count: map[uuid.UUID]int{}}
	h.life, h.end = context.WithCancel(context.Background())
	h.upgrader = websocket.Upgrader{
		HandshakeTimeout: 5 * time.Second, ReadBufferSize: 1024, WriteBufferSize: 1024, WriteBufferPool: &sync.Pool{},
		CheckOrigin: h.originAllowed, EnableCompression: true,
	}
	for _, name := range monitor.Topics {
		t := newTopic(name, cfg.Log, cfg.Now)
		detach, ok := cfg.Feed.Attach(name, t.update)
		if !ok {
			continue
		}
		h.topics[name] = t
		h.detach = append(h.detach, detach)
	}
	return h, nil
}

// take acts on a message; a code other than 0 closes the socket.
func (h *Hub) take(s *socket, m message) (code int, reason string) {
	if m.Hello != nil {
		rights, err := h.cfg.Rights.Rights(s.operator)
		if err != nil {
			return CloseRestart, "rights cannot be read"
		}
		for _, want := range m.Hello.Topics {
			n, ok, err := h.need(want.Topic)
			switch {
			case !ok:
				return websocket.ClosePolicyViolation, "unknown topic"
			case control.CodeOf(err) == control.CodeNotFound || err == nil && !n.granted(rights, want.Topic):
				return CloseForbidden, "forbidden" // what is out of reach looks as if it were not there
			case err != nil:
				return CloseRestart, "rights cannot be read"
			}
			if !s.subscribe(want.Topic, n, want.Epoch, want.Seq) {
				return websocket.CloseTryAgainLater, "too many objects are looked at"
			}
		}
		return 0, ""
	}
	for _, name := range m.Resync {
		t := s.followed(name)
		if t == nil {
			return websocket.ClosePolicyViolation, "not subscribed"
		}
		s.resnap(t)
	}
	return 0, ""
}

// subscribe is false when the topic cannot be opened.
func (s *socket) subscribe(name monitor.Topic, n need, epoch string, seq int64) bool {
	t := s.followed(name)
	if t == nil {
		fixed, ok := s.hub.topics[name]
		forget := func() {}
		if t = fixed; !ok {
			if t, forget = s.hub.singles.open(s.hub, name); t == nil {
				return false
			}
		}
		release := s.hub.cfg.Feed.Watch(t.name)
		s.mu.Lock()
		s.topics[t], s.needs[t] = func() { release(); forget() }, n
		s.mu.Unlock()
	}
	t.join(s, epoch, seq)
	return true
}

// followed is the topic of that name if the socket has subscribed to it.
func (s *socket) followed(name monitor.Topic) *topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.topics {
		if t.name == name {
			return t
		}
	}
	return nil
}

// leave takes the socket out of everything; it is called once, by the goroutine that reads.
func (h *Hub) leave(s *socket) {
	s.mu.Lock()
	topics := s.topics
	s.topics = map[*topic]func(){}
	code := s.code
	s.mu.Unlock()
	for t, release := range topics {
		t.leave(s)
		release()
	}
	h.mu.Lock()
	delete(h.sockets, s)
	h.free(s.operator)
	h.mu.Unlock()
	h.cfg.Meter.SocketClosed(max(code, 0))
}

// Open returns how many sockets are open.
func (h *Hub) Open() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sockets)
}

func (h *Hub) all() []*socket {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*socket, 0, len(h.sockets))
	for s := range h.sockets {
		list = append(list, s)
	}
	return list
}

// Shutdown tells every client to come back later and waits for all sockets; when ctx ends first, the
// connections are cut. No socket is opened after it was called.
func (h *Hub) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end()
	for _, s := range h.all() {
		s.close(CloseRestart, "restart")
	}
	gone := make(chan struct{})
	go func() { h.running.Wait(); close(gone) }()
	var err error
	select {
	case <-gone:
	case <-ctx.Done():
		err = ctx.Err()
		for _, s := range h.all() {
			_ = s.conn.NetConn().Close()
		}
		<-gone
	}
	for _, detach := range h.detach {
		detach()
	}
	return err
}
