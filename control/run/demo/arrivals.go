package demo

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"

	"fairlane/control/simulate/workload"
)

// Arrival is one request of the trace.
type Arrival struct {
	At     time.Duration // virtual, since the start of the trace; goes on over its end
	Client int
}

// Arrivals draws requests with the trace's rates and burstiness. The same trace, scale and seed give the
// same requests.
//
// Per client they are a renewal process in operational time, which passes at the client's rate: gaps are
// Gamma with mean 1 and the coefficient of variation of the window in which they begin. So the rates of the
// windows hold exactly, whatever the burstiness. The first gap is drawn as seen from a moment at random
// (length-biased, then cut uniformly); an ordinary first gap would put a burst at the start of each client
// that is bursty.
type Arrivals struct {
	streams streams
}

// NewArrivals multiplies every rate by scale, which must be above 0, and begins at offset from.
func NewArrivals(trace *Trace, scale float64, seed uint64, from time.Duration) *Arrivals {
	a := &Arrivals{}
	for client := range trace.clients {
		s := &stream{
			client: client, windows: &trace.clients[client], scale: scale,
			chance: rand.New(rand.NewPCG(seed, uint64(client))), now: from.Seconds(),
		}
		cv := s.cv()
		s.advance(s.chance.Float64() * workload.Gamma(s.chance, 1/(cv*cv)+1) * cv * cv)
		a.streams = append(a.streams, s)
	}
	heap.Init(&a.streams)
	return a
}

// Next returns the next request; they never end.
func (a *Arrivals) Next() Arrival {
	s := a.streams[0]
	next := Arrival{At: time.Duration(s.now * float64(time.Second)), Client: s.client}
	cv := s.cv()
	s.advance(workload.Gamma(s.chance, 1/(cv*cv)) * cv * cv)
	heap.Fix(&a.streams, 0)
	return next
}

// stream is one client; now is the time of its next request in seconds.
type stream struct {
	client  int
	windows *[traceWindows]rate
	scale   float64
	chance  *rand.Rand
	now     float64
}

func (s *stream) window() int {
	return int(s.now/traceWindow.Seconds()) % traceWindows
}

func (s *stream) cv() float64 {
	if cv := s.windows[s.window()].cv; cv > 0 {
		return min(cv, 20)
	}
	return 1
}

// advance moves on until so much operational time has passed. A trace has requests in every client's day,
// so that a day always brings some.
func (s *stream) advance(operational float64) {
	for length := traceWindow.Seconds(); ; {
		end := (math.Floor(s.now/length) + 1) * length
		perSecond := s.windows[s.window()].perSecond * s.scale
		passes := (end - s.now) * perSecond
		if passes > operational {
			s.now += operational / perSecond
			return
		}
		operational -= passes
		s.now = end
	}
}

// streams is a heap by time, then client.
type streams []*stream

func (s streams) Len() int { return len(s) }
func (s streams) Less(i, j int) bool {
	return s[i].now < s[j].now || s[i].now == s[j].now && s[i].client < s[j].client
}
func (s streams) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *streams) Push(x any)   { *s = append(*s, x.(*stream)) }
func (s *streams) Pop() any {
	old := *s
	last := old[len(old)-1]
	*s = old[:len(old)-1]
	return last
}
