package web

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Condition is what every page says about the platform: the policy in force in this process, the newest
// one published, and what is switched off, paused or degraded.
type Condition struct {
	InForce           int64
	Wanted            int64
	AdmissionClosed   bool
	SchedulingStopped bool
	PausedLanes       []string
	ClosedLanes       []string
	PausedPools       []string
	Degraded          []Mode
}

// Mode is a degraded mode; Name is a word of the catalogue's family "mode".
type Mode struct {
	Name  string
	Since time.Time
}

// Conditions tells the condition of the platform. It is asked on every page and every second by every
// open one, so it answers from memory.
type Conditions interface {
	Condition(ctx context.Context) (Condition, error)
}

// Preferences keeps an operator's choice of language and theme; nil leaves one as it is.
type Preferences interface {
	SavePreference(ctx context.Context, operator uuid.UUID, language, theme *string) error
}
