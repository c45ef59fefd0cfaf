package admit

import (
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"fairlane/control/estimate"
	"fairlane/policy"
)

func view7(d *desk) *view { return newView(&policy.Version{Number: 7, Document: d.doc}) }

var oneUnit = estimate.Estimate{SlotUnits: 1, MeanSeconds: 30, P95Seconds: 60, FairnessMilli: 1_000}

// (B_i + Σ min(B_j, B_i·w_j/w_i)) / μ. With 100 own slot units, 0.75 and 30 s a unit: 2.5 units/s.
func TestExpectedWaitFormula(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		arrange func(*desk)
		weight  int64
		seconds float64
	}{
		{"alone", func(*desk) {}, 1, 1 / 2.5},
		{"own backlog counts in full", func(d *desk) { d.queue("MAIN", me, 1, 10, 249) }, 1, 100},
		{"a whale counts as far as its share", func(d *desk) { d.queue("MAIN", whale, 1, 100, 1_000_000) }, 1, 2 / 2.5},
		{"a heavier whale goes first more often", func(d *desk) { d.queue("MAIN", whale, 4, 100, 1_000_000) }, 1, 5 / 2.5},
		{"a heavier tenant waits less", func(d *desk) { d.queue("MAIN", whale, 1, 100, 1_000_000) }, 4, 1.25 / 2.5},
		{"a small neighbour counts once", func(d *desk) { d.queue("MAIN", me, 1, 9, 99); d.queue("MAIN", whale, 1, 1, 10) }, 1, 110 / 2.5},
		// 50 common units now, alone among waiting lanes: (100 + 50) × 0.75 / 30.
		{"common capacity is the lane's while nobody else waits", func(d *desk) { d.doc.Pools[0].CapacityUnits = 140 }, 1, 1 / 3.75},
		{"and shared by weight when another lane waits", func(d *desk) {
			d.doc.Pools[0].CapacityUnits = 140
			d.queue("COSTLY", whale, 1, 10, 10)
		}, 1, 1 / 3.125},
		{"the group's own cap is what counts", func(d *desk) { d.doc.PoolGroups[0].CapacityUnits = 50 }, 1, 1 / 1.25},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk()
			tc.arrange(d)
			v := view7(d)
			w := v.wait(d.load, me, tc.weight, &v.doc.Lanes[0], "video", oneUnit)
			if !w.known || math.Abs(w.mean.Seconds()-tc.seconds) > 1e-6 {
				t.Errorf("wait = %v (known %v), want %.6f s", w.mean, w.known, tc.seconds)
			}
		})
	}
}

func TestWaitPromisesNothingWithoutWeightOrCapacity(t *testing.T) {
	t.Parallel()
	d := newDesk()
	v := view7(d)
	if w := v.wait(d.load, me, 1, &v.doc.Lanes[1], "video", oneUnit); w.known {
		t.Error("a lane of weight 0 promises a start")
	}
	if w := v.wait(d.load, me, 0, &v.doc.Lanes[0], "video", oneUnit); w.known {
		t.Error("a tenant of weight 0 is promised a start")
	}
	d.doc.Pools[0].CapacityUnits, d.doc.Pools[1].CapacityUnits = 0, 0
	v = view7(d)
	if w := v.wait(d.load, me, 1, &v.doc.Lanes[0], "video", oneUnit); w.known || w.tooLong(1) != nil {
		t.Error("no capacity gives a number")
	}
}

func TestQueuePositionLevels(t *testing.T) {
	t.Parallel()
	lane := &policy.Lane{WaitTargetSeconds: 60}
	for seconds, want := range map[int]Level{60: LevelShort, 61: LevelMedium, 300: LevelMedium, 301: LevelLong} {
		a := Answer{QueuedAt: noon}
		wait{known: true, mean: time.Duration(seconds) * time.Second, p90: time.Hour}.tell(&a, lane)
		if a.PositionLevel != want || !a.EstimatedStart.Equal(noon.Add(time.Duration(seconds)*time.Second)) {
			t.Errorf("%d s: %s, start %v", seconds, a.PositionLevel, a.EstimatedStart)
		}
	}
}

// More ahead (but for the rounding of sums in another order) never means an earlier start, and no backlog makes a wait that is negative or not a number.
func TestExpectedWaitGrowsWithTheBacklog(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := newDesk()
		v := view7(d)
		weight := rapid.Int64Range(1, 1_000_000).Draw(t, "weight")
		before := v.wait(d.load, me, weight, &v.doc.Lanes[0], "video", oneUnit)
		for range rapid.IntRange(1, 20).Draw(t, "neighbours") {
			d.queue("MAIN", uuid.New(), rapid.Int64Range(0, 1_000_000).Draw(t, "w"), 1, rapid.Int64Range(1, 1_000_000_000).Draw(t, "units"))
			after := v.wait(d.load, me, weight, &v.doc.Lanes[0], "video", oneUnit)
			if !after.known || after.mean < before.mean-time.Microsecond || after.p90 < after.mean || after.mean > 366*24*time.Hour {
				t.Fatalf("before %v after %v", before, after)
			}
			before = after
		}
	})
}
