package bench

import (
	"encoding/json"
	"io"
	"slices"
	"time"
)

// Result is one line of a benchmark's output.
type Result struct {
	Name          string         `json:"name"`
	Value         float64        `json:"value"`
	Unit          string         `json:"unit"`
	Baseline      string         `json:"baseline,omitempty"`
	BaselineValue float64        `json:"baseline_value,omitempty"`
	Ratio         float64        `json:"ratio,omitempty"` // value / baseline_value
	Params        map[string]any `json:"params,omitempty"`
}

// Write prints r as one JSON line.
func (r Result) Write(out io.Writer) error { return json.NewEncoder(out).Encode(r) }

// percentile returns the p-th of the times, in milliseconds; it sorts them.
func percentile(times []time.Duration, p float64) float64 {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	i := min(len(times)-1, int(p*float64(len(times))))
	return float64(times[i].Microseconds()) / 1000
}
