package live

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"fairlane/control"
	"fairlane/control/monitor"
	"fairlane/policy/access"
)

// need is what a topic asks of those who follow it.
type need struct {
	permission access.Permission
	single     bool
	object     access.Object // of a single one
	lookedAt   time.Time     // when that was looked up
}

// granted decides on one topic. Rows of single tenants are for those who may see every tenant: others
// would see outsiders in more than sums (I13). A single object is for those whose reach holds it.
func (n need) granted(rights access.Rights, t monitor.Topic) bool {
	switch {
	case n.single:
		return rights.MayOn(n.permission, n.object)
	case t == monitor.TopicTenants:
		return rights.Reach(n.permission).All
	}
	return rights.May(n.permission)
}

const (
	lookWithin = 2 * time.Second
	lookAgain  = 10 * time.Second // a tenant may move to a lane that others see
)

// need finds what a topic asks for; ok is false for one that does not exist.
func (h *Hub) need(name monitor.Topic) (n need, ok bool, err error) {
	if _, fixed := h.topics[name]; fixed {
		n.permission, ok = h.cfg.Topics[string(name)]
		return n, ok, nil
	}
	prefix, _, ok := name.Object()
	if !ok || h.cfg.Objects == nil {
		return n, false, nil
	}
	if n.permission, ok = h.cfg.Topics[strings.TrimSuffix(prefix, ":")]; !ok {
		return n, false, nil
	}
	n.single = true
	ctx, cancel := context.WithTimeout(h.life, lookWithin)
	defer cancel()
	err = h.look(ctx, name, &n)
	return n, true, err
}

func (h *Hub) look(ctx context.Context, name monitor.Topic, n *need) (err error) {
	n.object, err = h.cfg.Objects.Object(ctx, name)
	n.lookedAt = h.cfg.Now()
	return err
}

// lookAgain looks up whose the followed objects are now. One that is gone is nobody's any more; what cannot
// be read stays as it was until the next time.
func (h *Hub) lookAgain(ctx context.Context, sockets []*socket) {
	known := map[monitor.Topic]need{}
	for _, s := range sockets {
		for t, n := range s.singles() {
			if h.cfg.Now().Sub(n.lookedAt) < lookAgain {
				continue
			}
			now, found := known[t.name]
			if !found {
				now = n
				switch err := h.look(ctx, t.name, &now); {
				case control.CodeOf(err) == control.CodeNotFound:
					now.object = access.Object{}
				case err != nil:
					now.object = n.object
				}
				known[t.name] = now
			}
			s.mu.Lock()
			if _, still := s.needs[t]; still {
				s.needs[t] = now
			}
			s.mu.Unlock()
		}
	}
}

// singles are the topics of single objects that the socket follows.
func (s *socket) singles() map[*topic]need {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out map[*topic]need
	for t, n := range s.needs {
		if n.single {
			if out == nil {
				out = map[*topic]need{}
			}
			out[t] = n
		}
	}
	return out
}

// beatOf is the beat of a socket: that of all, with the single objects that it follows.
func (h *Hub) beatOf(s *socket, all *frame, topics map[monitor.Topic]topicBeat, epoch string, now time.Time) *frame {
	own := s.singles()
	if len(own) == 0 {
		return all
	}
	topics = maps.Clone(topics)
	for t := range own {
		topics[t.name] = t.beat()
	}
	f, err := beatFrame(epoch, topics, now)
	if err != nil {
		h.cfg.Log.Error("beat cannot be framed", "error", err)
		return all
	}
	return f
}

// singles keeps the topics of single objects as long as a socket follows them. Its lock comes before
// those of the feed and of the topics.
type singles struct {
	mu     sync.Mutex
	topics map[monitor.Topic]*single
}

type single struct {
	*topic
	detach func()
	refs   int
}

// open takes part in the topic; it is nil when the feed does not have it. forget gives the part back.
func (x *singles) open(h *Hub, name monitor.Topic) (t *topic, forget func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.topics[name]
	if s == nil {
		s = &single{topic: newTopic(name, h.cfg.Log, h.cfg.Now)}
		detach, ok := h.cfg.Feed.Attach(name, s.update)
		if !ok {
			return nil, nil
		}
		s.detach = detach
		if x.topics == nil {
			x.topics = map[monitor.Topic]*single{}
		}
		x.topics[name] = s
	}
	s.refs++
	return s.topic, sync.OnceFunc(func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if s.refs--; s.refs == 0 {
			delete(x.topics, name)
			s.detach()
		}
	})
}
