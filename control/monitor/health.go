package monitor

import (
	"sort"
	"sync"
	"time"

	"fairlane/control/lead"
)

// Codes of what is wrong with a part; each is a message of the catalogue under "health".
const (
	HealthDown    = "down"
	HealthExpired = "expired"
	HealthLate    = "late"
	HealthBehind  = "behind"
	HealthGone    = "gone"
	HealthFailed  = "failed"
	HealthLimited = "limited"
	HealthStarved = "starved"
	HealthIdle    = "idle" // good: a lease that is held only while a pass runs, and none does
)

// Codes of degraded modes; each is a message of the catalogue under "degraded".
const (
	DegradedPostgres = "postgres"      // the facts cannot be read
	DegradedRealtime = "realtime"      // no hints between replicas; views follow at the floor
	DegradedPolicy   = "policy_behind" // the policy in force here is not the one wanted
	DegradedQueue    = "queue"         // a group is planned from PostgreSQL in the limited form
	DegradedEviction = "eviction"      // Redis may drop keys under memory pressure
)

// lateOutbox is how long an undelivered row may lie before the outbox counts as late.
const lateOutbox = 30 * time.Second

// Run is what a reconciler did last.
type Run struct {
	At       time.Time
	Found    int64 // differences
	Repaired int64
	Error    string
}

// reports holds what the rooms of this process tell about themselves.
type reports struct {
	mu       sync.Mutex
	degraded map[string]time.Time
	runs     map[string]Run
	stores   map[string]bool
	queues   queuePlaces
}

func newReports() *reports {
	return &reports{degraded: map[string]time.Time{}, runs: map[string]Run{}, stores: map[string]bool{},
		queues: queuePlaces{places: map[string]QueuePlace{}, parked: map[string]int{}}}
}

// set enters or leaves a mode; it tells whether that changed anything.
func (r *reports) set(code string, on bool, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, was := r.degraded[code]
	switch {
	case on && !was:
		r.degraded[code] = now
	case !on && was:
		delete(r.degraded, code)
	}
	return on != was
}

func (r *reports) modes() []Degraded {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Degraded, 0, len(r.degraded))
	for code, since := range r.degraded {
		out = append(out, Degraded{Code: code, Since: since})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Code < out[j].Code })
	return out
}

func (r *reports) ran(name string, run Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[name] = run
}

func (r *reports) store(name string, up bool) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, known := r.stores[name]
	r.stores[name] = up
	return !known || was != up
}

// rows lists stores and reconcilers by name.
func (r *reports) rows() []HealthRow {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.queues.rows()
	for name, up := range r.stores {
		h := HealthRow{Kind: "store", Name: name, Good: up}
		if !up {
			h.Code = HealthDown
		}
		out = append(out, h)
	}
	for name, run := range r.runs {
		h := HealthRow{Kind: "reconciler", Name: name, Good: run.Error == "", Text: run.Error, Number: run.Repaired, Since: run.At}
		if !h.Good {
			h.Code = HealthFailed
		}
		out = append(out, h)
	}
	return out
}

// foldMachine sets the health rows, by kind and name.
func (s *State) foldMachine(m Machine, local []HealthRow, wanted int64, at time.Time) {
	rows := append([]HealthRow{}, local...)
	for _, l := range m.Leases {
		h := HealthRow{Kind: "lease", Name: l.Name, Text: l.Holder, Number: l.Term, Until: l.ExpiresAt, Good: l.Live}
		switch {
		case l.Live:
		case lead.Brief(l.Name):
			h.Good, h.Code = true, HealthIdle
		default:
			h.Code = HealthExpired
		}
		rows = append(rows, h)
	}
	for _, o := range m.Outbox {
		h := HealthRow{Kind: "outbox", Name: o.Topic, Number: o.Rows, Since: o.OldestAt, Good: o.OldestAt.IsZero() || at.Sub(o.OldestAt) < lateOutbox}
		if !h.Good {
			h.Code = HealthLate
		}
		rows = append(rows, h)
	}
	for _, r := range m.Replicas {
		h := HealthRow{Kind: "replica", Name: r.Name, Text: r.Error, Number: r.Version, Since: r.SeenAt, Good: true}
		switch {
		case !r.Fresh:
			h.Good, h.Code = false, HealthGone
		case r.Error != "":
			h.Good, h.Code = false, HealthFailed
		case r.Version < wanted:
			h.Good, h.Code = false, HealthBehind
		}
		rows = append(rows, h)
	}
	looked := HealthRow{Kind: "sum", Name: "starvation", Good: true}
	for _, l := range m.Starvation {
		looked.Number += l.Tenants + l.Capped
		if l.CheckedAt.After(looked.Since) {
			looked.Since = l.CheckedAt
		}
		h := HealthRow{Kind: "starvation", Name: l.Lane, Text: l.Exempt, Number: l.Tenants, Since: l.OldestAt, Good: l.Tenants == 0}
		if l.Exempt == "" {
			h.Bound = l.BoundSeconds
		}
		if !h.Good {
			h.Code = HealthStarved
		}
		rows = append(rows, h)
	}
	if len(m.Starvation) > 0 {
		rows = append(rows, looked)
	}
	sort.Slice(rows, func(i, j int) bool {
		if a, b := healthOrder[rows[i].Kind], healthOrder[rows[j].Kind]; a != b {
			return a < b
		}
		return rows[i].Name < rows[j].Name
	})
	s.Replicas, s.Health, s.HealthAt = m.Replicas, rows, at
	s.Starvation, s.Schedulers, s.SampledAt = m.Starvation, m.Schedulers, m.SampledAt
}

var healthOrder = map[string]int{"store": 0, "replica": 1, "lease": 2, "outbox": 3, "reconciler": 4, "starvation": 5, "sum": 6}
