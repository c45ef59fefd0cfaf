package monitor

import (
	"time"

	"fairlane/control"
)

// RecentWindow is over how long ended tasks are counted.
const RecentWindow = 5 * time.Minute

// flowTail is how far back the latest seconds are counted again: moves commit a little after the
// time that they carry, so that a second is settled only when it lies this far back.
const flowTail = 15 * time.Second

// flow keeps the moves of tasks by second for RecentWindow. A second is replaced as a whole by what
// was read last, so that reading twice counts once.
type flow struct {
	seconds map[int64]map[string]int64
	readAt  time.Time
	settled int64 // seconds since 1970 up to which the moves are final and have been told; 0: not begun
}

func newFlow() *flow { return &flow{seconds: map[int64]map[string]int64{}} }

// since is from where to read next.
func (f *flow) since(now time.Time) time.Time {
	from := now.Add(-RecentWindow)
	if tail := f.readAt.Add(-flowTail); !f.readAt.IsZero() && tail.After(from) {
		from = tail
	}
	return from.Truncate(time.Second)
}

// put replaces every second from since on.
func (f *flow) put(now, since time.Time, counts []FlowCount) {
	for second := range f.seconds {
		if second >= since.Unix() || second < now.Add(-RecentWindow).Unix() {
			delete(f.seconds, second)
		}
	}
	for _, c := range counts {
		second := f.seconds[c.Second.Unix()]
		if second == nil {
			second = map[string]int64{}
			f.seconds[c.Second.Unix()] = second
		}
		second[c.State] += c.Tasks
	}
	f.readAt = now
}

// settle tells the moves that became final since it was last called: those of seconds that no later
// read can add to. What happened before the first call is not told.
func (f *flow) settle(now time.Time, tell func(state control.TaskState, n int64)) {
	final := now.Add(-flowTail).Unix() - 1
	if f.settled == 0 {
		f.settled = now.Unix()
	}
	for second, states := range f.seconds {
		if second <= f.settled || second > final {
			continue
		}
		for state, n := range states {
			tell(control.TaskState(state), n)
		}
	}
	f.settled = max(f.settled, final)
}

// count sums the tasks that entered a state within the last window.
func (f *flow) count(now time.Time, window time.Duration, state control.TaskState) int64 {
	var n int64
	for second, states := range f.seconds {
		if second > now.Add(-window).Unix() {
			n += states[string(state)]
		}
	}
	return n
}
