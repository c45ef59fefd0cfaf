package transporttest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/dispatch"
)

// Harness is one transport under test with nothing in it.
type Harness struct {
	Transport dispatch.Transport
	Hold      time.Duration // after which a message that was taken and not answered for comes again
	// Send puts messages in as the outbox of a claim does.
	Send func(t *testing.T, messages []Message)
}

// Message is what is sent.
type Message struct {
	ID      uuid.UUID
	Group   string
	Payload string // JSON
}

// bound ends every wait of the suite.
const bound = 30 * time.Second

// Run holds the transports that fresh makes to the contract.
func Run(t *testing.T, fresh func(t *testing.T) Harness) {
	for name, test := range map[string]func(*testing.T, Harness){
		"what is acknowledged never comes again": acknowledged,
		"what is not answered for comes again":   redelivered,
		"what is put back comes again, later":    putBack,
		"each group gets what it asked for":      groups,
		"nothing is lost in any order":           unordered,
		"two takers share and do not overlap":    shared,
		"a poison message stops no other":        poisoned,
		"a slow consumer harms nobody":           slow,
		"a send wakes":                           woken,
		"ids and payloads arrive as they were":   intact,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, fresh(t))
		})
	}
}

func send(t *testing.T, h Harness, group string, n int) map[uuid.UUID]bool {
	t.Helper()
	messages, ids := make([]Message, n), map[uuid.UUID]bool{}
	for i := range messages {
		messages[i] = Message{ID: uuid.Must(uuid.NewV7()), Group: group, Payload: fmt.Sprintf(`{"n":%d}`, i)}
		ids[messages[i].ID] = true
	}
	h.Send(t, messages)
	return ids
}

func take(t *testing.T, h Harness, wants ...dispatch.Want) []dispatch.Delivery {
	t.Helper()
	got, err := h.Transport.Take(t.Context(), wants)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// takeUntil takes until n messages are there.
func takeUntil(t *testing.T, h Harness, n int, wants ...dispatch.Want) []dispatch.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	var all []dispatch.Delivery
	for {
		if all = append(all, take(t, h, wants...)...); len(all) >= n {
			return all
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%d of %d messages came within %v", len(all), n, bound)
		case <-ticker.C:
		}
	}
}

func ack(t *testing.T, h Harness, list ...dispatch.Delivery) {
	t.Helper()
	if err := h.Transport.Ack(t.Context(), list); err != nil {
		t.Fatal(err)
	}
}

func nothing(t *testing.T, h Harness, group string) {
	t.Helper()
	if got := take(t, h, dispatch.Want{Group: group, Max: 100}); len(got) != 0 {
		t.Fatalf("%d messages came, want none; the first for the %d. time", len(got), got[0].Count)
	}
}

func after(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

func acknowledged(t *testing.T, h Harness) {
	send(t, h, "g", 5)
	got := takeUntil(t, h, 5, dispatch.Want{Group: "g", Max: 5})
	nothing(t, h, "g") // they are in our hands
	ack(t, h, got...)
	ack(t, h, got...) // again is harmless
	after(t, h.Hold+h.Hold/2)
	nothing(t, h, "g")
}

func redelivered(t *testing.T, h Harness) {
	ids := send(t, h, "g", 3)
	for _, d := range takeUntil(t, h, 3, dispatch.Want{Group: "g", Max: 3}) {
		if d.Count != 1 {
			t.Errorf("first delivery counted as %d", d.Count)
		}
	}
	for _, d := range takeUntil(t, h, 3, dispatch.Want{Group: "g", Max: 3}) { // the taker died
		if !ids[d.ID] || d.Count != 2 {
			t.Errorf("%v came for the %d. time", d.ID, d.Count)
		}
	}
}

func putBack(t *testing.T, h Harness) {
	send(t, h, "g", 1)
	got := takeUntil(t, h, 1, dispatch.Want{Group: "g", Max: 1})
	wait := h.Hold * 2
	waited := time.NewTimer(wait - 5*time.Millisecond)
	defer waited.Stop()
	if err := h.Transport.Nack(t.Context(), got, wait); err != nil {
		t.Fatal(err)
	}
	again := takeUntil(t, h, 1, dispatch.Want{Group: "g", Max: 1})
	select {
	case <-waited.C:
	default:
		t.Errorf("it came again before %v were over", wait)
	}
	if again[0].ID != got[0].ID {
		t.Errorf("%v came, want %v", again[0].ID, got[0].ID)
	}
	if err := h.Transport.Nack(t.Context(), again, 0); err != nil {
		t.Fatal(err)
	}
	ack(t, h, takeUntil(t, h, 1, dispatch.Want{Group: "g", Max: 1})...)
	nothing(t, h, "g")
}

func groups(t *testing.T, h Harness) {
	send(t, h, "a", 10)
	send(t, h, "b", 10)
	got := takeUntil(t, h, 4, dispatch.Want{Group: "a", Max: 3}, dispatch.Want{Group: "b", Max: 1})
	count := map[string]int{}
	for _, d := range got {
		count[d.Group]++
	}
	if count["a"] != 3 || count["b"] != 1 {
		t.Errorf("%v", count)
	}
	if got := take(t, h); len(got) != 0 {
		t.Errorf("%d messages for nobody", len(got))
	}
	nothing(t, h, "other")
}

func unordered(t *testing.T, h Harness) {
	want := send(t, h, "g", 250)
	for len(want) > 0 {
		for i, d := range takeUntil(t, h, 1, dispatch.Want{Group: "g", Max: 20}) {
			if i%3 == 0 && d.Count == 1 { // a third goes around once more, behind what was sent later
				if err := h.Transport.Nack(t.Context(), []dispatch.Delivery{d}, 0); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if !want[d.ID] {
				t.Fatalf("%v came twice though it was acknowledged", d.ID)
			}
			delete(want, d.ID)
			ack(t, h, d)
		}
	}
	nothing(t, h, "g")
}

func shared(t *testing.T, h Harness) {
	const n = 200
	send(t, h, "g", n)
	var mu sync.Mutex
	seen := map[uuid.UUID]int{}
	var takers sync.WaitGroup
	for range 4 {
		takers.Go(func() {
			for range n {
				got, err := h.Transport.Take(t.Context(), []dispatch.Want{{Group: "g", Max: 7}})
				if err != nil {
					t.Error(err)
					return
				}
				if len(got) == 0 {
					return
				}
				mu.Lock()
				for _, d := range got {
					seen[d.ID]++
				}
				mu.Unlock()
				if err := h.Transport.Ack(t.Context(), got); err != nil {
					t.Error(err)
				}
			}
		})
	}
	takers.Wait()
	for _, d := range take(t, h, dispatch.Want{Group: "g", Max: n}) { // skipped while another looked at it
		seen[d.ID]++
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("%v came %d times", id, times)
		}
	}
	if len(seen) != n {
		t.Errorf("%d of %d came", len(seen), n)
	}
}

func poisoned(t *testing.T, h Harness) {
	bad := uuid.Must(uuid.NewV7())
	h.Send(t, []Message{{ID: bad, Group: "g", Payload: `"poison"`}})
	good := send(t, h, "g", 20)
	deliveries := 0
	for len(good) > 0 || deliveries < 3 {
		for _, d := range takeUntil(t, h, 1, dispatch.Want{Group: "g", Max: 1}) {
			if d.ID == bad {
				if deliveries++; d.Count < deliveries {
					t.Errorf("delivery %d is counted as %d", deliveries, d.Count)
				}
				if err := h.Transport.Nack(t.Context(), []dispatch.Delivery{d}, time.Millisecond); err != nil {
					t.Fatal(err)
				}
				continue
			}
			delete(good, d.ID)
			ack(t, h, d)
		}
	}
}

func slow(t *testing.T, h Harness) {
	send(t, h, "g", 1)
	first := takeUntil(t, h, 1, dispatch.Want{Group: "g", Max: 1})[0]
	second := takeUntil(t, h, 1, dispatch.Want{Group: "g", Max: 1})[0] // the first is still at work
	if first.ID != second.ID || second.Count != 2 {
		t.Fatalf("%+v, then %+v", first, second)
	}
	// What the slow one says now concerns a delivery that is over.
	ack(t, h, first)
	if err := h.Transport.Nack(t.Context(), []dispatch.Delivery{first}, 0); err != nil {
		t.Fatal(err)
	}
	nothing(t, h, "g")
	third := takeUntil(t, h, 1, dispatch.Want{Group: "g", Max: 1})[0]
	if third.ID != first.ID || third.Count != 3 {
		t.Errorf("%+v: the slow consumer removed or freed what another holds", third)
	}
	ack(t, h, third)
	after(t, h.Hold+h.Hold/2)
	nothing(t, h, "g")
}

func woken(t *testing.T, h Harness) {
	for drained := false; !drained; {
		select {
		case <-h.Transport.Wake():
		default:
			drained = true
		}
	}
	send(t, h, "g", 1)
	select {
	case <-h.Transport.Wake():
	case <-time.After(bound):
		t.Fatal("nobody was woken")
	}
	ack(t, h, takeUntil(t, h, 1, dispatch.Want{Group: "g", Max: 1})...)
}

func intact(t *testing.T, h Harness) {
	payload := `{"任务":"<script>","n":[1,2.5,null]}`
	m := Message{ID: uuid.Must(uuid.NewV7()), Group: "车道 1", Payload: payload}
	h.Send(t, []Message{m})
	got := takeUntil(t, h, 1, dispatch.Want{Group: m.Group, Max: 1})[0]
	if got.ID != m.ID || got.Group != m.Group || got.Type != control.EventDispatchRequest || !sameJSON(t, got.Payload, payload) {
		t.Errorf("sent %+v, got %+v %s", m, got, got.Payload)
	}
}
