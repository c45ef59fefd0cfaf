package workload

import (
	"math"
	"math/rand/v2"
)

// stream is a client's requests: a renewal process in operational time, which passes at the client's rate.
// Gaps have mean 1 and the distribution of the window in which they begin, so that the rates of windows
// hold exactly, whatever the burstiness.
type stream struct {
	*Client
	windows []*Window // by place in the published trace; nil: nobody asks
	from    float64   // seconds into the published trace
	expect  float64   // requests
	size    float64   // of its work, over the mean of all requests
}

func newStream(c *Client, span, from float64) *stream {
	s := &stream{Client: c, windows: make([]*Window, max(1, int(math.Ceil(span/windowSeconds)))), from: from}
	for i := range c.Windows {
		s.windows[int(c.Windows[i].Start)/windowSeconds] = &c.Windows[i]
	}
	return s
}

// at is the window at a time; the published trace begins again after its end.
func (s *stream) at(now float64) *Window {
	return s.windows[int((s.from+now)/windowSeconds)%len(s.windows)]
}

// edge is the end of the window at a time.
func (s *stream) edge(now float64) float64 {
	edge := (math.Floor((s.from+now)/windowSeconds)+1)*windowSeconds - s.from
	if edge <= now { // the sum was rounded down to the edge that is meant to be passed
		edge = now + windowSeconds
	}
	return edge
}

// requests is how many are expected by a time.
func (s *stream) requests(end float64) float64 {
	sum := 0.0
	for now := 0.0; now < end; now = s.edge(now) {
		if w := s.at(now); w != nil {
			sum += w.Rate * (min(s.edge(now), end) - now)
		}
	}
	return sum
}

// play adds the requests up to a time, with every rate multiplied by scale.
func (s *stream) play(scale, end float64, chance *rand.Rand, add func(at float64)) {
	now, first := 0.0, true
	for {
		w := s.at(now)
		for w == nil {
			if now = s.edge(now); now >= end {
				return
			}
			w = s.at(now)
		}
		left := w.gap
		if first {
			left, first = w.firstGap, false
		}
		now = s.advance(now, left(chance)/scale, end)
		if now >= end {
			return
		}
		add(now)
	}
}

// advance moves on until so much operational time has passed.
func (s *stream) advance(now, operational, end float64) float64 {
	for now < end {
		w, edge := s.at(now), s.edge(now)
		if w != nil {
			if passes := (edge - now) * w.Rate; passes > operational {
				return now + operational/w.Rate
			} else {
				operational -= passes
			}
		}
		now = edge
	}
	return now
}

// flatten spreads the client's requests evenly over the published trace; its distributions take turns.
func (s *stream) flatten(span float64) {
	requests := 0.0
	for i := range s.Windows {
		requests += s.Windows[i].Rate * windowSeconds
	}
	for i := range s.windows {
		w := s.Windows[i%len(s.Windows)]
		w.Rate = requests / span
		s.windows[i] = &w
	}
}
