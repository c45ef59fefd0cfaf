package lead

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table is a lease table on the bubble's clock; cut makes it unreachable.
type table struct {
	mu      sync.Mutex
	holder  string
	term    int64
	expires time.Time
	cut     bool
	slow    time.Duration // between taking the lease and the answer to it
}

func (t *table) Acquire(_ context.Context, _, holder string, ttl time.Duration) (int64, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut {
		return 0, false, context.DeadlineExceeded
	}
	if time.Now().Before(t.expires) {
		return 0, false, nil
	}
	t.holder, t.term, t.expires = holder, t.term+1, time.Now().Add(ttl)
	time.Sleep(t.slow)
	return t.term, true, nil
}

func (t *table) Renew(_ context.Context, _, holder string, term int64, ttl time.Duration) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut {
		return false, context.DeadlineExceeded
	}
	if t.holder != holder || t.term != term {
		return false, nil
	}
	t.expires = time.Now().Add(ttl)
	return true, nil
}

func (t *table) Release(_ context.Context, _, holder string, term int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder == holder && t.term == term {
		t.expires = time.Time{}
	}
	return nil
}

func (t *table) set(fn func()) { t.mu.Lock(); defer t.mu.Unlock(); fn() }

// spell is one stretch of leased work.
type spell struct {
	holder     string
	term       int64
	start, end time.Time
	cause      error
}

func recorder(holder string, log *[]spell, mu *sync.Mutex) func(context.Context, int64) error {
	return func(ctx context.Context, term int64) error {
		s := spell{holder: holder, term: term, start: time.Now()}
		<-ctx.Done()
		s.end, s.cause = time.Now(), context.Cause(ctx)
		mu.Lock()
		defer mu.Unlock()
		*log = append(*log, s)
		return nil
	}
}

func TestOneHolderAtATimeAndTermsRise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := &table{}
		var mu sync.Mutex
		var log []spell
		ctx, stop := context.WithCancel(t.Context())
		first, stopFirst := context.WithCancel(ctx)
		var done sync.WaitGroup
		for name, c := range map[string]context.Context{"a": first, "b": ctx} {
			done.Go(func() { _ = New(Config{Name: "x", Holder: name}, tab, recorder(name, &log, &mu)).Run(c) })
		}
		time.Sleep(time.Minute)
		stopFirst()
		time.Sleep(time.Minute)
		stop()
		done.Wait()
		for i := 1; i < len(log); i++ {
			if log[i].start.Before(log[i-1].end) {
				t.Errorf("%s ran while %s still did", log[i].holder, log[i-1].holder)
			}
			if log[i].term <= log[i-1].term {
				t.Errorf("term %d after term %d", log[i].term, log[i-1].term)
			}
		}
		if len(log) == 0 || log[len(log)-1].holder != "b" {
			t.Fatalf("b never ran: %v", log)
		}
	})
}

func TestCutOffHolderStopsBeforeItsLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := &table{}
		var mu sync.Mutex
		var log []spell
		ctx, stop := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { _ = New(Config{Name: "x", Holder: "a"}, tab, recorder("a", &log, &mu)).Run(ctx) })
		time.Sleep(20 * time.Second)
		var expires time.Time
		tab.set(func() { tab.cut, expires = true, tab.expires })
		time.Sleep(20 * time.Second)
		mu.Lock()
		if len(log) != 1 || log[0].cause != ErrLost {
			t.Errorf("want one spell ended by the loss of the lease, got %v", log)
		} else if !log[0].end.Before(expires) {
			t.Errorf("worked until %v, the lease ended at %v", log[0].end, expires)
		}
		mu.Unlock()
		stop()
		done.Wait()
	})
}

func TestLeaseThatWasGivenLateEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := &table{slow: 2 * time.Second}
		var mu sync.Mutex
		var log []spell
		ctx, stop := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { _ = New(Config{Name: "x", Holder: "a"}, tab, recorder("a", &log, &mu)).Run(ctx) })
		time.Sleep(2100 * time.Millisecond)
		var expires time.Time
		tab.set(func() { tab.cut, expires = true, tab.expires })
		time.Sleep(5 * time.Second)
		mu.Lock()
		if len(log) != 1 || log[0].cause != ErrLost {
			t.Errorf("want one spell ended by the loss of the lease, got %v", log)
		} else if !log[0].end.Before(expires) {
			t.Errorf("worked until %v, the lease ended at %v", log[0].end, expires)
		}
		mu.Unlock()
		stop()
		done.Wait()
	})
}

func TestReplacedHolderStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := &table{}
		var mu sync.Mutex
		var log []spell
		ctx, stop := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { _ = New(Config{Name: "x", Holder: "a"}, tab, recorder("a", &log, &mu)).Run(ctx) })
		time.Sleep(20 * time.Second)
		tab.set(func() { tab.holder, tab.term, tab.expires = "z", tab.term+1, time.Now().Add(time.Hour) })
		time.Sleep(3 * time.Second)
		mu.Lock()
		if len(log) != 1 || log[0].cause != ErrLost {
			t.Errorf("want the work stopped by the loss of the lease, got %v", log)
		}
		mu.Unlock()
		stop()
		done.Wait()
	})
}
