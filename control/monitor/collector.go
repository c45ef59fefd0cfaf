package monitor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// stateCollector turns the State into gauges at each scrape, so that a lane that is gone leaves no
// gauge behind and a scrape costs no query.
type stateCollector struct{ m *Monitor }

var (
	laneLabel    = []string{"lane"}
	descQueued   = prometheus.NewDesc("fairlane_queue_tasks", "Queued tasks by lane.", laneLabel, nil)
	descQueuedU  = prometheus.NewDesc("fairlane_queue_units", "Queued fairness units by lane.", laneLabel, nil)
	descOldest   = prometheus.NewDesc("fairlane_queue_oldest_seconds", "Wait of the oldest queued task by lane.", laneLabel, nil)
	descUsed     = prometheus.NewDesc("fairlane_slot_used_units", "Slot units in use by lane and account.", []string{"lane", "account"}, nil)
	descReserved = prometheus.NewDesc("fairlane_slot_reserved_units", "Slot units reserved by lane.", laneLabel, nil)
	descCapacity = prometheus.NewDesc("fairlane_slot_capacity_units", "Slot units of all pool groups.", nil, nil)
	descRunning  = prometheus.NewDesc("fairlane_task_running", "Tasks that hold a slot, by lane.", laneLabel, nil)
	descUnknown  = prometheus.NewDesc("fairlane_submit_unknown", "Attempts whose fate is not known.", nil, nil)
	descPolicy   = prometheus.NewDesc("fairlane_policy_version", "Policy version that is wanted, and active here.", []string{"which"}, nil)
	descOutbox   = prometheus.NewDesc("fairlane_outbox_oldest_seconds", "Age of the oldest undelivered event by topic.", []string{"topic"}, nil)
	descOutboxN  = prometheus.NewDesc("fairlane_outbox_rows", "Undelivered events by topic, counted up to 10,000.", []string{"topic"}, nil)
	descDegraded = prometheus.NewDesc("fairlane_degraded", "Degraded modes that hold.", []string{"mode"}, nil)
	descStarved  = prometheus.NewDesc("fairlane_starved_tenants", "Tenants whose oldest task waits longer than its bound, by lane.", laneLabel, nil)
	descBound    = prometheus.NewDesc("fairlane_wait_bound_seconds", "Bound of the longest wait by lane; lanes without one are left out.", laneLabel, nil)
	descChecked  = prometheus.NewDesc("fairlane_starvation_checked_seconds", "Time since the starvation detector looked.", nil, nil)
	descAge      = prometheus.NewDesc("fairlane_state_age_seconds", "Age of the facts behind these gauges.", nil, nil)
)

func (stateCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descQueued, descQueuedU, descOldest, descUsed, descReserved, descCapacity, descRunning,
		descUnknown, descPolicy, descOutbox, descOutboxN, descDegraded, descStarved, descBound, descChecked, descAge} {
		out <- d
	}
}

func (c stateCollector) Collect(out chan<- prometheus.Metric) {
	s, now := c.m.State(), c.m.cfg.Now()
	if s.AsOf.IsZero() {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, l := range s.Lanes {
		gauge(descQueued, float64(l.QueuedTasks), l.Lane)
		gauge(descQueuedU, float64(l.QueuedMilli)/1000, l.Lane)
		gauge(descOldest, age(now, l.OldestAt), l.Lane)
		gauge(descUsed, float64(l.Own), l.Lane, "own")
		gauge(descUsed, float64(l.Common), l.Lane, "common")
		gauge(descUsed, float64(l.Borrowed), l.Lane, "borrowed")
		gauge(descReserved, float64(l.Reserved), l.Lane)
		gauge(descRunning, float64(l.Running), l.Lane)
	}
	gauge(descCapacity, float64(s.Overview.Capacity))
	gauge(descUnknown, float64(s.Overview.Unknown))
	gauge(descPolicy, float64(s.Overview.PolicyWanted), "wanted")
	gauge(descPolicy, float64(s.Overview.PolicyActive), "active")
	for _, h := range s.Health {
		if h.Kind == "outbox" {
			gauge(descOutbox, age(now, h.Since), h.Name)
			gauge(descOutboxN, float64(h.Number), h.Name)
		}
	}
	for _, d := range s.Overview.Degraded {
		gauge(descDegraded, 1, d.Code)
	}
	var checked time.Time
	for _, l := range s.Starvation {
		gauge(descStarved, float64(l.Tenants), l.Lane)
		if l.Exempt == "" && l.BoundSeconds > 0 {
			gauge(descBound, float64(l.BoundSeconds), l.Lane)
		}
		if l.CheckedAt.After(checked) {
			checked = l.CheckedAt
		}
	}
	if !checked.IsZero() {
		gauge(descChecked, age(now, checked))
	}
	gauge(descAge, age(now, s.AsOf))
}

func age(now, at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(now.Sub(at).Seconds(), 0)
}
