package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"fairlane/control/simulate"
)

func TestTry(t *testing.T) {
	src, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	doc := Fair()
	for _, load := range []float64{0.7, 0.95, 1.3} {
		began := time.Now()
		tr, err := Derive(src, doc, Options{Hours: 24, Load: load, Seed: 1, Endless: nil})
		if err != nil {
			t.Fatal(err)
		}
		if err := simulate.Validate(tr, doc, nil); err != nil {
			b, _ := json.Marshal(err)
			t.Fatal(err, string(b))
		}
		fmt.Println("derive", len(tr.Arrivals), time.Since(began))
		for _, mode := range []simulate.Mode{simulate.Fairlane, simulate.FIFO, simulate.RoundRobin} {
			began = time.Now()
			r, err := simulate.Run(context.Background(), simulate.Config{Trace: tr, Document: doc, Mode: mode, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println(load, mode, time.Since(began), "tasks", r.Tasks, "started", r.Started, "rej", r.Rejected, r.Reasons, "never", r.NeverStart, "plans", r.Plans, "refused", r.Refusals, "util", r.Groups[0], "wait", r.Wait, "jain", r.Jain, "mean", r.MeanService)
			for _, x := range r.Tenants {
				if x.LongestHours > 2 {
					fmt.Printf("   %s w%d arr %d started %d back %.3f got %.0f owed %.0f err %.4f long %.2fh %.4f factor %.3f p95 %v\n", x.Tenant, x.Weight, x.Arrivals, x.Started, x.Backlogged, x.Got, x.Owed, x.Error, x.LongestHours, x.LongestError, x.Factor, x.Wait.P95)
				}
			}
		}
	}
}
