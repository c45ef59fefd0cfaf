package speed_test

import (
	"log/slog"
	"testing"
	"time"

	"fairlane/control/queue/queuetest"
	"fairlane/store/speed"
	"fairlane/store/storetest"
)

// index is an index of the test's own on the shared server.
func index(t *testing.T) *speed.QueueIndex {
	t.Helper()
	space := storetest.Redis(t)
	client, err := speed.Open(space.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return speed.NewQueueIndex(client, space.Prefix, slog.New(slog.DiscardHandler), nil)
}

// built is a queue over an index that has just been built, empty.
func built(t *testing.T, x *speed.QueueIndex, group string) *speed.Queue {
	t.Helper()
	build(t, x, group)
	return open(t, x, group)
}

func build(t *testing.T, x *speed.QueueIndex, group string) {
	t.Helper()
	if err := x.Begin(t.Context(), group, false); err != nil {
		t.Fatal(err)
	}
	if err := x.Finish(t.Context(), group); err != nil {
		t.Fatal(err)
	}
}

// open begins a term; the queue must still be good at the end of the test.
func open(t *testing.T, x *speed.QueueIndex, group string) *speed.Queue {
	t.Helper()
	q := begin(t, x, group)
	t.Cleanup(func() {
		if err := q.Err(); err != nil {
			t.Error(err)
		}
	})
	return q
}

// begin begins a term whose queue may end.
func begin(t *testing.T, x *speed.QueueIndex, group string) *speed.Queue {
	t.Helper()
	q, err := x.Open(t.Context(), group, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestQueueKeepsThePromisesOfThePort(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, func(t *testing.T) queuetest.Queue { return built(t, index(t), "G") })
}

// The same with next to nothing in the process: every read goes on to the server.
func TestQueueThatHoldsOneTaskOfALineKeepsThem(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, func(t *testing.T) queuetest.Queue { return built(t, speed.Small(index(t)), "G") })
}
