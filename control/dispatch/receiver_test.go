package dispatch_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control/dispatch"
	"fairlane/control/provider"
	"fairlane/control/provider/simulated"
)

type ctx = context.Context

// memory stands in for stores where a fuzzed parser needs no database behind it.
type memory struct {
	mu     sync.Mutex
	stored []dispatch.StoredCallback
}

func (m *memory) Store(_ ctx, c dispatch.StoredCallback) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stored = append(m.stored, c)
	return nil
}

func (m *memory) Open(ctx, int, time.Duration) ([]dispatch.OpenCallback, error) { return nil, nil }
func (m *memory) Settle(ctx, []dispatch.CallbackOutcome) error                  { return nil }

type nothing struct{}

func (nothing) Begin(ctx, []dispatch.Ref, time.Duration) ([]dispatch.Begun, error) { return nil, nil }
func (nothing) Move(ctx, []dispatch.Move) ([]bool, error)                          { return nil, nil }
func (nothing) Note(ctx, []dispatch.Note, time.Duration) error                     { return nil }
func (nothing) Due(ctx, []string, int, time.Duration) ([]dispatch.Check, error)    { return nil, nil }
func (nothing) Hasten(ctx, []uuid.UUID) error                                      { return nil }
func (nothing) Reemit(ctx, time.Duration, int) (int, error)                        { return 0, nil }
func (nothing) End(ctx, []dispatch.Ending) ([]dispatch.Ended, error)               { return nil, nil }
func (nothing) Take(ctx, []dispatch.Want) ([]dispatch.Delivery, error)             { return nil, nil }
func (nothing) Ack(ctx, []dispatch.Delivery) error                                 { return nil }
func (nothing) Nack(ctx, []dispatch.Delivery, time.Duration) error                 { return nil }
func (nothing) Wake() <-chan struct{}                                              { return nil }

// receiver is a service of which only Receive is used, for a provider that does not sign.
func receiver(t *testing.T) (*dispatch.Service, *[]dispatch.StoredCallback) {
	t.Helper()
	cfg := usual().provider
	cfg.Profiles[0].Signed = false
	client := provider.NewClient(provider.ClientConfig{})
	t.Cleanup(client.Close)
	adapter, err := simulated.NewAdapter("http://127.0.0.1:1", cfg, cfg.Profiles[0], client)
	if err != nil {
		t.Fatal(err)
	}
	registry, err := provider.NewRegistry(provider.Provider{Code: "p", Capabilities: cfg.Capabilities(cfg.Profiles[0]), Adapter: adapter})
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{}
	s, err := dispatch.New(dispatch.Config{
		Attempts: nothing{}, Checks: nothing{}, Callbacks: m, Ender: nothing{}, Transport: nothing{}, Providers: registry,
		Lanes: func() []string { return nil }, Log: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, &m.stored
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	registry, err := provider.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	good := func() dispatch.Config {
		return dispatch.Config{Attempts: nothing{}, Checks: nothing{}, Callbacks: &memory{}, Ender: nothing{}, Transport: nothing{}, Providers: registry,
			Lanes: func() []string { return nil }, Log: quiet}
	}
	if _, err := dispatch.New(good()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*dispatch.Config){
		"no store":         func(c *dispatch.Config) { c.Attempts = nil },
		"no log":           func(c *dispatch.Config) { c.Log = nil },
		"speed":            func(c *dispatch.Config) { c.Speed = -1 },
		"submits":          func(c *dispatch.Config) { c.LaneSubmits = -1 },
		"submits too many": func(c *dispatch.Config) { c.PoolSubmits = 1_000_000 },
		"time-out":         func(c *dispatch.Config) { c.SubmitTimeout = -time.Second },
		"lease":            func(c *dispatch.Config) { c.Lease = 48 * time.Hour },
	} {
		c := good()
		spoil(&c)
		if _, err := dispatch.New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
