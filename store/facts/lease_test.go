package facts_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairlane/control"
	"fairlane/store/facts"
	"fairlane/store/storetest"
)

func openDB(t *testing.T, url string) *facts.DB {
	t.Helper()
	db, err := facts.Open(t.Context(), url, "test", 16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func TestLeaseHasOneHolderAndRisingTerms(t *testing.T) {
	t.Parallel()
	leases := facts.NewLeases(openDB(t, storetest.New(t).URL))
	ctx := t.Context()

	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			_, held, err := leases.Acquire(ctx, "loop", string(rune('a'+i)), time.Minute)
			if err != nil {
				t.Error(err)
			}
			if held {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d of 12 hold the lease", won.Load())
	}

	rows, err := leases.List(ctx)
	if err != nil || len(rows) != 1 || !rows[0].Held {
		t.Fatalf("list: %+v, %v", rows, err)
	}
	holder := rows[0].Holder
	if kept, err := leases.Renew(ctx, "loop", holder, rows[0].Term+1, time.Minute); kept || err != nil {
		t.Errorf("renewed under a term that was never given: %v, %v", kept, err)
	}
	if err := leases.Release(ctx, "loop", holder, rows[0].Term); err != nil {
		t.Fatal(err)
	}
	term, held, err := leases.Acquire(ctx, "loop", "next", time.Minute)
	if err != nil || !held || term <= rows[0].Term {
		t.Fatalf("after a release: term %d held %v err %v, was %d", term, held, err, rows[0].Term)
	}
	if kept, err := leases.Renew(ctx, "loop", holder, rows[0].Term, time.Minute); kept || err != nil {
		t.Errorf("the old holder renewed: %v, %v", kept, err)
	}
}

// The database's clock decides: what the process believes about the time plays no part.
func TestTrap_D17_LeaseRunsOutOnTheDatabasesClock(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	leases := facts.NewLeases(openDB(t, db.URL))
	ctx := t.Context()
	if _, held, err := leases.Acquire(ctx, "loop", "a", time.Hour); !held || err != nil {
		t.Fatalf("%v, %v", held, err)
	}
	if _, held, _ := leases.Acquire(ctx, "loop", "b", time.Hour); held {
		t.Fatal("stolen early")
	}
	if _, err := db.Pool.Exec(ctx, `UPDATE lease SET expires_at = clock_timestamp() - interval '1 microsecond'`); err != nil {
		t.Fatal(err)
	}
	if _, held, err := leases.Acquire(ctx, "loop", "b", time.Hour); !held || err != nil {
		t.Fatalf("a lease that ran out is immortal: %v, %v", held, err)
	}
}

func TestListenerHandsOnHintsAndSaysLookAfterAReconnect(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	l := facts.NewListener(db.URL, slog.New(slog.DiscardHandler), control.NotifyQueue, control.NotifyPolicy)
	queue := l.Subscribe(control.NotifyQueue)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()

	await := func(want string) {
		t.Helper()
		for {
			select {
			case got := <-queue:
				if got == want {
					return
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("no hint %q", want)
			}
		}
	}
	await("")
	if _, err := db.Pool.Exec(ctx, `SELECT pg_notify($1, 'default')`, control.NotifyQueue); err != nil {
		t.Fatal(err)
	}
	await("default")
	if _, err := db.Pool.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'fairlane-listen'`); err != nil {
		t.Fatal(err)
	}
	await("")
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
