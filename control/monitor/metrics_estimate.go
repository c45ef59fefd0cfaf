package monitor

import (
	"github.com/prometheus/client_golang/prometheus"

	"fairlane/control"
	"fairlane/control/estimate"
)

// estimateMetrics compare what attempts used with what was expected of them.
type estimateMetrics struct {
	ratio   *prometheus.HistogramVec
	settled *prometheus.CounterVec
	late    *prometheus.CounterVec
	debt    *prometheus.CounterVec
}

func newEstimateMetrics(r prometheus.Registerer) *estimateMetrics {
	m := &estimateMetrics{
		ratio: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "fairlane_estimate_ratio",
			Help:    "What successful attempts used over what was expected of them, of seconds of the provider's work and of fairness units.",
			Buckets: []float64{.1, .25, .5, .75, .9, 1.1, 1.33, 2, 4, 10}}, []string{"what", "kind"}),
		settled: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fairlane_settled_total",
			Help: "Ended attempts by what their use is known by: whole (a success), part (it ran, or never did), estimate (nobody knows)."}, []string{"known", "kind"}),
		late: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fairlane_estimate_above_p95_total",
			Help: "Successful attempts that held their slot longer than the 95 % that were expected."}, []string{"kind"}),
		debt: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fairlane_debt_milli_total",
			Help: "Fairness milli-units by which ends of attempts have moved debts: more owed (debit), less (credit)."}, []string{"direction"}),
	}
	for _, kind := range []control.Kind{control.KindImage, control.KindVideo} {
		m.late.WithLabelValues(string(kind))
		for _, known := range []string{"whole", "part", "estimate"} {
			m.settled.WithLabelValues(known, string(kind))
		}
	}
	m.debt.WithLabelValues("debit")
	m.debt.WithLabelValues("credit")
	r.MustRegister(m.ratio, m.settled, m.late, m.debt)
	return m
}

// Settled counts one attempt that has ended.
func (m *Metrics) Settled(s *estimate.Settlement) { m.estimates.settle(s) }

func (m *estimateMetrics) settle(s *estimate.Settlement) {
	kind, known := string(s.Kind), "estimate"
	switch {
	case s.Whole:
		known = "whole"
		m.ratio.WithLabelValues("seconds", kind).Observe(s.Seconds / s.ExpectedSeconds)
		m.ratio.WithLabelValues("units", kind).Observe(float64(s.UsedMilli) / float64(s.ChargedMilli))
		if s.HeldSeconds > s.P95Seconds {
			m.late.WithLabelValues(kind).Inc()
		}
	case s.Known:
		known = "part"
	}
	m.settled.WithLabelValues(known, kind).Inc()
	if s.DebtMilli > 0 {
		m.debt.WithLabelValues("debit").Add(float64(s.DebtMilli))
	} else {
		m.debt.WithLabelValues("credit").Add(-float64(s.DebtMilli))
	}
}
