package dispatch

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"fairlane/control/provider"
)

// Config is what dispatch is made of. Settings of zero take their defaults.
type Config struct {
	Attempts  Attempts
	Checks    Checks
	Callbacks CallbackStore
	Ender     Ender
	Transport Transport
	Providers *provider.Registry
	Lanes     func() []string // lanes whose messages this process takes; asked again every round
	// CallbackURL is where a provider calls back for an attempt; nil for no callbacks.
	CallbackURL func(providerCode string, attempt uuid.UUID, token string) string
	Log         *slog.Logger
	Rand        func() float64   // in [0, 1)
	Now         func() time.Time // for the age of a callback's signature only
	Settings
}

// Settings are the bounds and intervals of dispatch.
type Settings struct {
	Speed         float64       // divides intervals of polling and retries, not time-outs; default 1
	LaneSubmits   int           // in flight per lane; default 32
	PoolSubmits   int           // in flight per provider, account and model; default 8
	SubmitTimeout time.Duration // of one submit; default 30 s
	SubmitMargin  time.Duration // added to it before a worker that did not say what came of its submit is taken for dead; default 5 s
	ReadTimeout   time.Duration // of one read, look-up or cancel; default 10 s
	Checking      int           // checks in flight; default 64
	CheckingEach  int           // checks in flight per provider; default 32
	Lease         time.Duration // by which an answer extends what an attempt holds; default 10 min
	Undispatched  time.Duration // age at which a CREATED attempt's message is written again; default 30 s
	Poll          time.Duration // longest sleep of every loop; default 500 ms
	Grace         time.Duration // for submits in flight when stopping; default 1 s
}

func (c *Config) complete() error {
	for name, missing := range map[string]bool{
		"Attempts": c.Attempts == nil, "Checks": c.Checks == nil, "Callbacks": c.Callbacks == nil, "Ender": c.Ender == nil,
		"Transport": c.Transport == nil, "Providers": c.Providers == nil, "Lanes": c.Lanes == nil, "Log": c.Log == nil,
	} {
		if missing {
			return fmt.Errorf("dispatch: %s is missing", name)
		}
	}
	if c.Speed == 0 {
		c.Speed = 1
	}
	if !(c.Speed >= 0.01 && c.Speed <= 10_000) || math.IsNaN(c.Speed) {
		return fmt.Errorf("dispatch: speed %v is not between 0.01 and 10000", c.Speed)
	}
	for _, d := range []struct {
		name  string
		value *int
		usual int
	}{
		{"LaneSubmits", &c.LaneSubmits, 32}, {"PoolSubmits", &c.PoolSubmits, 8},
		{"Checking", &c.Checking, 64}, {"CheckingEach", &c.CheckingEach, 32},
	} {
		if *d.value == 0 {
			*d.value = d.usual
		}
		if *d.value < 1 || *d.value > 10_000 {
			return fmt.Errorf("dispatch: %s %d is not between 1 and 10000", d.name, *d.value)
		}
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		usual time.Duration
	}{
		{"SubmitTimeout", &c.SubmitTimeout, 30 * time.Second}, {"SubmitMargin", &c.SubmitMargin, 5 * time.Second}, {"ReadTimeout", &c.ReadTimeout, 10 * time.Second},
		{"Lease", &c.Lease, 10 * time.Minute}, {"Undispatched", &c.Undispatched, 30 * time.Second},
		{"Poll", &c.Poll, 500 * time.Millisecond}, {"Grace", &c.Grace, time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.usual
		}
		if *d.value < time.Millisecond || *d.value > 24*time.Hour {
			return fmt.Errorf("dispatch: %s %v is not between 1 ms and 24 h", d.name, *d.value)
		}
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return nil
}
