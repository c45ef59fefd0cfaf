package monitor

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"fairlane/control"
)

// Metrics are what /metrics shows: counters that the rooms feed, and gauges read from the State at each
// scrape. Labels are enums, lanes and route templates, never ids of tenants or tasks.
type Metrics struct {
	Registry *prometheus.Registry

	tasks        *prometheus.CounterVec
	admissions   *prometheus.CounterVec
	claims       *prometheus.CounterVec
	claimSeconds prometheus.Histogram
	cycleSeconds prometheus.Histogram
	httpSeconds  *prometheus.HistogramVec
	sockets      prometheus.Gauge
	frames       *prometheus.CounterVec
	parked       *prometheus.GaugeVec
	closes       *prometheus.CounterVec
	estimates    *estimateMetrics
}

// NewMetrics makes a registry of its own with the process's and the runtime's metrics.
func NewMetrics() *Metrics {
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		tasks: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fairlane_task_total",
			Help: "Tasks of the whole platform that entered a state since this process started; every replica counts all."}, []string{"state"}),
		admissions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fairlane_admission_total",
			Help: "Submissions that this process decided on, by decision."}, []string{"decision"}),
		claims: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fairlane_claim_total",
			Help: "Starts asked of the claim, by result: claimed, or the condition that refused."}, []string{"result"}),
		claimSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "fairlane_claim_batch_seconds",
			Help: "Time of one claim transaction.", Buckets: []float64{.002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5}}),
		cycleSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "fairlane_schedule_cycle_seconds",
			Help: "Time of one scheduling cycle, claim included.", Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5}}),
		httpSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "fairlane_http_request_seconds",
			Help: "Time to answer, by route template and class of status.", Buckets: []float64{.002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}}, []string{"route", "method", "status"}),
		sockets: prometheus.NewGauge(prometheus.GaugeOpts{Name: "fairlane_live_sockets",
			Help: "Open sockets of live views."}),
		frames: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fairlane_live_frames_total",
			Help: "Frames written to sockets, by kind: snapshot, patch, beat."}, []string{"kind"}),
		parked: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "fairlane_queue_parked_tasks",
			Help: "Queued tasks whose rows cannot be right, so that nothing schedules them, by pool group; set by the process that plans the group."}, []string{"pool_group"}),
		closes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fairlane_live_closes_total",
			Help: "Sockets closed by the server, by close code."}, []string{"code"}),
	}
	m.Registry.MustRegister(m.tasks, m.admissions, m.claims, m.claimSeconds, m.cycleSeconds, m.httpSeconds, m.sockets, m.frames, m.closes, m.parked,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.estimates = newEstimateMetrics(m.Registry)
	for _, s := range control.TaskStates {
		m.tasks.WithLabelValues(string(s))
	}
	return m
}

// TasksMoved counts tasks that entered a state.
func (m *Metrics) TasksMoved(state control.TaskState, n int64) {
	m.tasks.WithLabelValues(string(state)).Add(float64(n))
}

// Admitted counts one decision of the gate, a refusal too.
func (m *Metrics) Admitted(decision string) { m.admissions.WithLabelValues(decision).Inc() }

// Claimed counts one claim transaction: how many starts it granted, how many each condition refused.
func (m *Metrics) Claimed(took time.Duration, granted int, refused map[string]int) {
	m.claimSeconds.Observe(took.Seconds())
	m.claims.WithLabelValues("claimed").Add(float64(granted))
	for why, n := range refused {
		m.claims.WithLabelValues(why).Add(float64(n))
	}
}

// Parked sets how many queued tasks of a pool group cannot be scheduled.
func (m *Metrics) Parked(group string, tasks int) {
	m.parked.WithLabelValues(group).Set(float64(tasks))
}

// Cycled counts one scheduling cycle.
func (m *Metrics) Cycled(took time.Duration) { m.cycleSeconds.Observe(took.Seconds()) }

// Served counts one answered request by its route template ("" for none), method and status.
func (m *Metrics) Served(route, method string, status int, took time.Duration) {
	if route == "" {
		route = "none"
	}
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
	default:
		method = "other"
	}
	m.httpSeconds.WithLabelValues(route, method, strconv.Itoa(status/100)+"xx").Observe(took.Seconds())
}

// SocketOpened and SocketClosed count live sockets; code 0: the client went.
func (m *Metrics) SocketOpened() { m.sockets.Inc() }

// SocketClosed counts a socket that is gone; code is the close code the server sent, 0 for none.
func (m *Metrics) SocketClosed(code int) {
	m.sockets.Dec()
	if code != 0 {
		m.closes.WithLabelValues(strconv.Itoa(code)).Inc()
	}
}

// FrameWritten counts one frame that went out.
func (m *Metrics) FrameWritten(kind string) { m.frames.WithLabelValues(kind).Inc() }

// Show adds the gauges that are read from the monitor's state at each scrape.
func (m *Metrics) Show(mon *Monitor) {
	m.Registry.MustRegister(stateCollector{mon})
}
