package audit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairlane/audit"
	"fairlane/control"
)

type notebook struct {
	mu     sync.Mutex
	events []audit.Event
	fail   bool
}

func (n *notebook) Append(_ context.Context, e audit.Event) (int64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fail {
		return 0, errors.New("away")
	}
	n.events = append(n.events, e)
	return int64(len(n.events)), nil
}

func (n *notebook) written() (rows int, attempts int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.events {
		attempts += e.Params["count"].(int64)
	}
	return len(n.events), attempts
}

func denials(t *testing.T, n *notebook) (d *audit.Denials, stop func()) {
	t.Helper()
	d = audit.NewDenials(n, audit.DenialsConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- d.Run(ctx) }()
	return d, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestDeniedAttemptsAreWrittenAtOnceThenCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &notebook{}
		d, stop := denials(t, n)
		who := control.Actor{Name: "viewer", SourceAddress: "10.0.0.1", RequestID: "r1"}
		d.Denied(t.Context(), who, "policy.edit", "POST /pools/:key")
		synctest.Wait()
		if rows, attempts := n.written(); rows != 1 || attempts != 1 || n.events[0].Actor != who || n.events[0].Result != audit.Denied {
			t.Fatalf("%d rows, %d attempts: %+v", rows, attempts, n.events)
		}
		for range 1_000 {
			d.Denied(t.Context(), who, "policy.edit", "POST /pools/:key")
		}
		d.Denied(t.Context(), who, "policy.edit", "POST /lanes/:code")
		synctest.Wait()
		if rows, attempts := n.written(); rows != 2 || attempts != 2 {
			t.Fatalf("%d rows, %d attempts in the minute", rows, attempts)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if rows, attempts := n.written(); rows != 3 || attempts != 1_002 || n.events[2].Actor.RequestID != "" || n.events[2].Params["seconds"] != int64(60) {
			t.Fatalf("%d rows, %d attempts after the minute: %+v", rows, attempts, n.events)
		}
		d.Denied(t.Context(), who, "policy.edit", "POST /pools/:key")
		synctest.Wait()
		if rows, _ := n.written(); rows != 4 {
			t.Errorf("%d rows: a new window begins with a record", rows)
		}
		d.Denied(t.Context(), who, "policy.edit", "POST /pools/:key")
		stop()
		if rows, attempts := n.written(); rows != 5 || attempts != 1_004 {
			t.Errorf("%d rows, %d attempts after the stop", rows, attempts)
		}
	})
}

func TestAFloodOfDifferentAttemptsIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &notebook{}
		d, stop := denials(t, n)
		for i := range 500 {
			d.Denied(t.Context(), control.Actor{Name: "viewer"}, "p", fmt.Sprintf("GET /%d", i))
		}
		for i := range 20_000 {
			d.Denied(t.Context(), control.Actor{SourceAddress: fmt.Sprintf("10.0.%d.%d", i/250, i%250)}, "p", "GET /")
		}
		stop()
		rows, attempts := n.written()
		if attempts != 20_500 || rows > 10_001 {
			t.Errorf("%d rows of %d attempts", rows, attempts)
		}
		own := 0
		for _, e := range n.events {
			if e.Actor.Name == "viewer" {
				own++
			}
		}
		if own != 21 {
			t.Errorf("%d rows of one actor, want 20 and one for the rest", own)
		}
	})
}

func TestAttemptsOutliveAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &notebook{fail: true}
		d, stop := denials(t, n)
		for range 3 {
			d.Denied(t.Context(), control.Actor{Name: "viewer"}, "p", "GET /a")
			d.Denied(t.Context(), control.Actor{Name: "viewer"}, "p", "GET /b")
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		n.mu.Lock()
		n.fail = false
		n.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, attempts := n.written(); attempts != 6 {
			t.Errorf("%d attempts", attempts)
		}
		stop()
	})
}
