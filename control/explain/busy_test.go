package explain

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"

	"fairlane/control"
)

// slow is a store that answers when it is let go.
type slow struct {
	Store
	entered chan struct{}
	goOn    chan struct{}
}

func (s *slow) Waits(ctx context.Context, _ uuid.UUID) (Facts, error) {
	s.entered <- struct{}{}
	select {
	case <-s.goOn:
	case <-ctx.Done():
	}
	return Facts{}, control.Errorf(control.CodeNotFound, "none waits")
}

// Whoever asks for many explanations at once takes the connections of a few.
func TestOnlyAFewExplanationsAreMadeAtOnce(t *testing.T) {
	t.Parallel()
	store := &slow{entered: make(chan struct{}, 10*atOnce), goOn: make(chan struct{})}
	s := New(store, nil, nil, nil)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() { _, _ = s.Explain(context.Background(), uuid.Nil) })
	}
	for range atOnce {
		<-store.entered
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Explain(gone, uuid.Nil); control.CodeOf(err) != control.CodeUnavailable || len(store.entered) > 0 {
		t.Errorf("one more than %d: %v", atOnce, err)
	}
	close(store.goOn)
	all.Wait()
	if _, err := s.Explain(t.Context(), uuid.Nil); control.CodeOf(err) != control.CodeNotFound {
		t.Errorf("afterwards: %v", err)
	}
}
