package estimate

import (
	"encoding/json"
	"fmt"
	"math"
)

// Calibration compares estimates with what came of them, for one model.
type Calibration struct {
	seconds, units sketch // actual ÷ estimate
	late           moment // 1 for a task that held its slot longer than its P95, else 0
}

// Outcome is one task that succeeded, beside its estimate.
type Outcome struct {
	Seconds, ExpectedSeconds float64 // of the provider's work
	Held, P95Seconds         float64 // from claim to release
	Used, Charged            int64   // fairness milli-units
}

// Observe folds one outcome; one with an estimate that is not positive is left out.
func (c *Calibration) Observe(o Outcome) {
	if !positive(o.Seconds) || !positive(o.ExpectedSeconds) || !positive(o.P95Seconds) || o.Charged < 1 {
		return
	}
	c.seconds.add(o.Seconds / o.ExpectedSeconds)
	c.units.add(float64(o.Used) / float64(o.Charged))
	late := 0.0
	if o.Held > o.P95Seconds {
		late = 1
	}
	c.late.add(late)
}

// Quality is what a Calibration says: quantiles of actual ÷ estimate, 1 for a perfect one.
type Quality struct {
	Tasks                  float64 // weight of the tasks behind it, the newest 500 to 1,000
	SecondsP50, SecondsP95 float64
	UnitsP50, UnitsP95     float64
	AboveP95               float64 // share of tasks that took longer than their P95, 0.05 for a perfect one
}

// Quality is zero before the first outcome.
func (c *Calibration) Quality() Quality {
	return Quality{
		Tasks:      c.late.weight,
		SecondsP50: c.seconds.quantile(0.5), SecondsP95: c.seconds.quantile(0.95),
		UnitsP50: c.units.quantile(0.5), UnitsP95: c.units.quantile(0.95),
		AboveP95: c.late.mean(),
	}
}

type calibrationState struct {
	Seconds sketchState `json:"seconds"`
	Units   sketchState `json:"units"`
	Late    momentState `json:"late"`
}

// Save returns the state as JSON.
func (c *Calibration) Save() ([]byte, error) {
	return json.Marshal(calibrationState{c.seconds.save(), c.units.save(), c.late.save()})
}

// Restore puts back what Save returned.
func (c *Calibration) Restore(state []byte) error {
	var s calibrationState
	if err := json.Unmarshal(state, &s); err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	var got Calibration
	if !got.seconds.restore(s.Seconds) || !got.units.restore(s.Units) || !got.late.restore(s.Late) || math.IsNaN(got.late.mean()) {
		return fmt.Errorf("calibration: the state is no weights of observations")
	}
	*c = got
	return nil
}
