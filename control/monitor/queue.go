package monitor

import (
	"sync"
	"time"
)

// QueuePlace is where the queue of a pool group lies, as the process that plans the group says it.
type QueuePlace struct {
	Group   string    `json:"group"`
	Shared  bool      `json:"shared"`        // in the index on Redis; else in the process, read from PostgreSQL
	Limited bool      `json:"limited"`       // smaller batches, longer gaps, lanes paused that are marked so
	Why     string    `json:"why,omitempty"` // why not in Redis: a word of the family "queue_why"; details are logged
	Since   time.Time `json:"since"`
	Parked  int       `json:"parked"` // queued tasks whose rows cannot be right
}

// queuePlaces holds the groups that this process plans.
type queuePlaces struct {
	mu     sync.Mutex
	places map[string]QueuePlace
	parked map[string]int
}

// SetQueue tells where the queue of a group lies.
func (m *Monitor) SetQueue(p QueuePlace) {
	m.reports.queues.set(p.Group, &p)
	m.queueMoved()
}

// UnsetQueue tells that this process does not plan a group any more.
func (m *Monitor) UnsetQueue(group string) {
	m.reports.queues.set(group, nil)
	m.queueMoved()
}

// SetParked tells how many queued tasks of a group cannot be scheduled.
func (m *Monitor) SetParked(group string, tasks int) {
	m.reports.queues.mu.Lock()
	m.reports.queues.parked[group] = tasks
	m.reports.queues.mu.Unlock()
	signal(m.must)
}

// Queues lists the groups that this process plans.
func (m *Monitor) Queues() []QueuePlace { return m.reports.queues.list() }

func (m *Monitor) queueMoved() {
	limited := false
	for _, p := range m.reports.queues.list() {
		limited = limited || p.Limited
	}
	m.reports.set(DegradedQueue, limited, m.cfg.Now())
	signal(m.must)
}

func (q *queuePlaces) set(group string, p *QueuePlace) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p == nil {
		delete(q.places, group)
		delete(q.parked, group)
		return
	}
	q.places[group] = *p
}

func (q *queuePlaces) list() []QueuePlace {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]QueuePlace, 0, len(q.places))
	for _, p := range q.places {
		p.Parked = q.parked[p.Group]
		out = append(out, p)
	}
	return out
}

// rows are the queues among the stores.
func (q *queuePlaces) rows() []HealthRow {
	var out []HealthRow
	for _, p := range q.list() {
		h := HealthRow{Kind: "store", Name: "queue " + p.Group, Good: !p.Limited, Text: p.Why, Number: int64(p.Parked), Since: p.Since}
		if p.Limited {
			h.Code = HealthLimited
		}
		out = append(out, h)
	}
	return out
}
