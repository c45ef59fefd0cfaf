package dispatch_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/dispatch"
	"fairlane/control/dispatch/transporttest"
	"fairlane/store/facts"
	"fairlane/store/storetest"
)

func TestPostgresTransport(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		base := storetest.New(t)
		db, err := facts.Open(t.Context(), base.URL, "test", 8)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		listener := facts.NewListener(base.URL, slog.New(slog.DiscardHandler), control.NotifyDispatch)
		const hold = 300 * time.Millisecond
		p := dispatch.NewPostgres(facts.NewOutbox(db), listener.Subscribe(control.NotifyDispatch), hold)
		running(t, listener.Run)
		running(t, p.Run)
		return transporttest.Harness{Transport: p, Hold: hold, Send: func(t *testing.T, messages []transporttest.Message) {
			t.Helper()
			tx, err := base.Pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
			for _, m := range messages {
				if _, err := tx.Exec(t.Context(), `INSERT INTO outbox_event (event_id, topic, group_key, event_type, aggregate_id, payload)
					VALUES ($1, $2, $3, $4, $5, $6)`, m.ID, control.TopicDispatch, m.Group, control.EventDispatchRequest, uuid.New(), m.Payload); err != nil {
					t.Fatal(err)
				}
			}
			// Another topic's rows are nobody's business here.
			if _, err := tx.Exec(t.Context(), `INSERT INTO outbox_event (event_id, topic, group_key, event_type, aggregate_id) VALUES ($1, 'queue', 'g', 'x', $1)`, uuid.New()); err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), `SELECT pg_notify($1, 'g')`, control.NotifyDispatch); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}}
	})
}

// running runs a loop until the test ends, and waits for it.
func running(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	over := false
	stop = func() {
		if over {
			return
		}
		over = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("loop: %v", err)
			}
		case <-time.After(30 * time.Second):
			t.Error("a loop does not stop")
		}
	}
	t.Cleanup(stop)
	return stop
}
