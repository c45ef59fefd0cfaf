package policy_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairlane/policy"
)

// shelf is a source in memory whose reads can be made to fail.
type shelf struct {
	mu        sync.Mutex
	head      int64
	failReads int // so many reads of versions fail
	failHead  bool
	reads     int
	seen      []int64
	problems  []string
}

func (s *shelf) publish(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head = n
}

func (s *shelf) HeadNumber(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failHead {
		return 0, errors.New("away")
	}
	return s.head, nil
}

func (s *shelf) Version(_ context.Context, n int64) (policy.Version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.failReads > 0 {
		s.failReads--
		return policy.Version{}, errors.New("cut")
	}
	return policy.Version{Number: n, Document: policy.Default()}, nil
}

func (s *shelf) Seen(_ context.Context, _ string, n int64, problem string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.problems = append(s.seen, n), append(s.problems, problem)
	return nil
}

func follow(t *testing.T, s *shelf, hints <-chan string) *policy.Active {
	t.Helper()
	a := policy.NewActive(s, policy.ActiveConfig{Replica: "r1", Hints: hints})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return a
}

func TestActiveFollowsByPollingAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		a := follow(t, s, nil)
		synctest.Wait()
		if a.Current() != nil || a.Wanted() != 0 || a.Problem() == "" {
			t.Errorf("before the first version: %v, wanted %d, problem %q", a.Current(), a.Wanted(), a.Problem())
		}
		var told []int64
		var mu sync.Mutex
		a.Subscribe(func(v *policy.Version) { mu.Lock(); told = append(told, v.Number); mu.Unlock() })
		for n := int64(1); n <= 3; n++ {
			time.Sleep(123 * time.Millisecond)
			began := time.Now()
			s.publish(n)
			if err := a.Await(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(began); d > 500*time.Millisecond {
				t.Errorf("version %d in force after %v", n, d)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if len(told) != 3 || told[0] != 1 || told[2] != 3 {
			t.Errorf("subscribers heard of %v", told)
		}
	})
}

func TestActiveFollowsAHintAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hints := make(chan string, 1)
		s := &shelf{head: 1}
		a := follow(t, s, hints)
		synctest.Wait()
		s.publish(2)
		hints <- "2"
		synctest.Wait()
		if a.Current().Number != 2 {
			t.Errorf("version %d in force", a.Current().Number)
		}
		close(hints) // the listener is gone: polling goes on
		s.publish(3)
		time.Sleep(501 * time.Millisecond)
		synctest.Wait()
		if a.Current().Number != 3 {
			t.Errorf("version %d in force", a.Current().Number)
		}
	})
}

func TestTrap_D48_VersionIsNotInForceUntilItWasRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{head: 1}
		a := follow(t, s, nil)
		synctest.Wait()
		s.mu.Lock()
		s.head, s.failReads = 2, 1
		s.mu.Unlock()
		time.Sleep(501 * time.Millisecond) // the poll sees the number, the read fails
		synctest.Wait()
		if a.Wanted() != 2 || a.Current().Number != 1 || a.Problem() == "" {
			t.Errorf("wanted %d, in force %d, problem %q", a.Wanted(), a.Current().Number, a.Problem())
		}
		time.Sleep(51 * time.Millisecond) // one failed read does not cost another poll
		synctest.Wait()
		if a.Current().Number != 2 || a.Problem() != "" {
			t.Errorf("in force %d, problem %q", a.Current().Number, a.Problem())
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		want := []int64{1, 1, 2} // in force 1, still 1 with a problem, 2
		if len(s.seen) != 3 || s.seen[1] != want[1] || s.seen[2] != want[2] || s.problems[1] == "" || s.problems[2] != "" {
			t.Errorf("written down: %v %q", s.seen, s.problems)
		}
	})
}

func TestActiveOutlivesAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{head: 1}
		a := follow(t, s, nil)
		synctest.Wait()
		s.mu.Lock()
		s.failHead = true
		s.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if a.Current().Number != 1 || a.Problem() == "" {
			t.Errorf("in force %v, problem %q", a.Current(), a.Problem())
		}
		s.mu.Lock()
		s.failHead, s.head = false, 5
		s.mu.Unlock()
		time.Sleep(501 * time.Millisecond)
		synctest.Wait()
		if a.Current().Number != 5 || a.Problem() != "" {
			t.Errorf("in force %d, problem %q", a.Current().Number, a.Problem())
		}
	})
}

func TestSubscribersHearTheCurrentVersionAndCanLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{head: 1}
		a := policy.NewActive(s, policy.ActiveConfig{})
		if err := a.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		var told []int64
		leave := a.Subscribe(func(v *policy.Version) { told = append(told, v.Number) })
		s.publish(2)
		if err := a.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		leave()
		s.publish(3)
		if err := a.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(told) != 2 || told[0] != 1 || told[1] != 2 {
			t.Errorf("heard of %v", told)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := a.Await(ctx, 4); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("awaited a version that never came: %v", err)
		}
	})
}
