package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"fairlane/control/simulate"
	"fairlane/control/simulate/workload"
)

// Simulations says what to simulate.
type Simulations struct {
	PerHour int // tasks an hour of the first measurement
	Lines   int // tasks of the last; 0: leave it out
	Seed    uint64
}

// Simulate measures the simulator over the embedded trace: simulated seconds in one second at so many
// tasks an hour, the time that a whole day at load 0.95 takes, and memory over many lines in overload.
func Simulate(ctx context.Context, s Simulations, out io.Writer) error {
	source, err := workload.Embedded()
	if err != nil {
		return err
	}
	const day = 24
	full, err := workload.Derive(source, workload.Fair(), workload.Options{Hours: day, Load: 1, Seed: s.Seed})
	if err != nil {
		return err
	}
	load := float64(s.PerHour) * day / float64(len(full.Arrivals))
	r, _, err := simulated(ctx, source, workload.Options{Hours: day, Load: load, Seed: s.Seed})
	if err != nil {
		return err
	}
	r.Unit, r.Baseline, r.BaselineValue = "simulated seconds per second", "real time", 1
	r.Value = day * 3600 / r.Value
	r.Ratio = r.Value
	if err := r.Write(out); err != nil {
		return err
	}
	if r, _, err = simulated(ctx, source, workload.Options{Hours: day, Load: 0.95, Seed: s.Seed}); err != nil {
		return err
	}
	r.Unit = "seconds for 24 h of the ServeGen trace"
	if err := r.Write(out); err != nil {
		return err
	}
	if s.Lines == 0 {
		return nil
	}
	const week = 7 * day
	r, heap, err := simulated(ctx, source, workload.Options{Hours: week, Load: float64(s.Lines) / week * day / float64(len(full.Arrivals)), Seed: s.Seed})
	if err != nil {
		return err
	}
	r.Params["seconds"] = r.Value
	r.Value, r.Unit = float64(heap)/(1<<20), "MB of heap at most, trace and result included"
	return r.Write(out)
}

// simulated plays a trace; the result's value is the seconds that it took, heap the most that was in use.
func simulated(ctx context.Context, source *workload.Source, o workload.Options) (r Result, heap uint64, err error) {
	doc := workload.Fair()
	trace, err := workload.Derive(source, doc, o)
	if err != nil {
		return r, 0, fmt.Errorf("trace: %w", err)
	}
	runtime.GC()
	looked := time.Now()
	look := func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heap, looked = max(heap, m.HeapAlloc), time.Now()
	}
	look()
	began := time.Now()
	result, err := simulate.Run(ctx, simulate.Config{Trace: trace, Document: doc, Admission: true, Progress: func(simulate.Progress) {
		if time.Since(looked) > 100*time.Millisecond {
			look()
		}
	}})
	if err != nil {
		return r, 0, err
	}
	took := time.Since(began)
	look()
	return Result{Name: "simulate", Value: took.Seconds(), Params: map[string]any{
		"tasks": result.Tasks, "started": result.Started, "hours": o.Hours, "load": o.Load, "plans": result.Plans,
		"tasks_per_hour": float64(result.Tasks) / o.Hours, "tasks_per_second": float64(result.Tasks) / took.Seconds(),
	}}, heap, nil
}
