package estimate

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"fairlane/control"
)

// 60 s and 0.2 expected: 2 units on each of 3 slots.
func charge() Charge {
	return Charge{Milli: 6_000, Base: 6_000, SlotUnits: 3, Seconds: 60, CostMicro: 200_000, Bases: Bases{30, 100_000, 30}}
}

// Every row of the table of uses, and what surrounds it.
func TestSettleKnowsEveryEnd(t *testing.T) {
	t.Parallel()
	const (
		created, submitting, unknown, accepted, lost = control.AttemptCreated, control.AttemptSubmitting, control.AttemptUnknown, control.AttemptAccepted, control.AttemptLost
		succeeded, failed, canceled, rejected        = control.AttemptSucceeded, control.AttemptFailed, control.AttemptCanceled, control.AttemptRejected
		abandoned                                    = control.AttemptAbandoned
	)
	for name, c := range map[string]struct {
		finish     Finish
		known      bool
		milli      int64
		seconds    float64
		learn      bool
		correction int64
	}{
		"rejected before it was sent":    {Finish{created, rejected, 0, 0, -1, 5}, true, 0, 0, false, -6_000},
		"rejected by the provider":       {Finish{submitting, rejected, 0, 0, -1, 5}, true, 0, 0, false, -6_000},
		"never arrived":                  {Finish{unknown, rejected, 0, 0, 700, 720}, true, 0, 0, false, -6_000},
		"canceled before it was sent":    {Finish{created, canceled, 0, 0, -1, 5}, true, 0, 0, false, -6_000},
		"success as expected":            {Finish{accepted, succeeded, 60, 200_000, 62, 70}, true, 6_000, 60, true, 0},
		"success, three times the time":  {Finish{accepted, succeeded, 180, 200_000, 182, 190}, true, 18_000, 180, true, 12_000},
		"success, dearer":                {Finish{accepted, succeeded, 60, 800_000, 62, 70}, true, 24_000, 60, true, 18_000},
		"success, neither told":          {Finish{accepted, succeeded, 0, -1, 30, 40}, true, 6_000, 30, true, 0}, // the expected cost stands
		"success, seconds not told":      {Finish{accepted, succeeded, 0, 0, 90, 100}, true, 9_000, 90, true, 3_000},
		"success, times not a number":    {Finish{accepted, succeeded, math.NaN(), 0, 90, 100}, true, 9_000, 90, true, 3_000},
		"success, instant of it unknown": {Finish{accepted, succeeded, 0, 0, -1, 120}, true, 12_000, 120, true, 6_000},
		"success, hardly any time":       {Finish{accepted, succeeded, 0.5, 0, 1, 2}, true, 1_000, 0.5, true, -5_000},
		"success after silence":          {Finish{lost, succeeded, 0, 200_000, 5_000, 5_010}, true, 500_000, 5_000, true, 494_000},
		"success after silence, told":    {Finish{lost, succeeded, 90, 200_000, 5_000, 5_010}, true, 9_000, 90, true, 3_000},
		"failed early":                   {Finish{accepted, failed, 0, -1, 15, 20}, true, 1_500, 15, false, -4_500},
		"failed and paid for":            {Finish{accepted, failed, 15, 200_000, 15, 20}, true, 6_000, 15, false, 0},
		"canceled while it ran":          {Finish{accepted, canceled, 0, 0, 30, 35}, true, 3_000, 30, false, -3_000},
		"failed after silence, told":     {Finish{lost, failed, 30, -1, 5_000, 5_010}, true, 3_000, 30, false, -3_000},
		"canceled after silence, told":   {Finish{lost, canceled, 0, 100_000, 5_000, 5_010}, true, 500_000, 5_000, false, 494_000},
		"silent to the end":              {Finish{lost, failed, 0, -1, 5_000, 5_010}, false, 0, 0, false, 0},
		"canceled, silent to the end":    {Finish{lost, canceled, 0, -1, 5_000, 5_010}, false, 0, 0, false, 0},
		"unknown, given up":              {Finish{unknown, abandoned, 0, -1, 5_000, 5_010}, false, 0, 0, false, 0},
		"lost, given up":                 {Finish{lost, abandoned, 0, -1, 5_000, 5_010}, false, 0, 0, false, 0},
		"a clock gone wild":              {Finish{accepted, succeeded, 1e300, 0, 1, 1}, true, maxMilli, maxSeconds, true, maxMilli - 6_000},
		"a cost gone wild":               {Finish{accepted, succeeded, 1, math.MaxInt64, 1, 1}, true, maxMilli, 1, true, maxMilli - 6_000},
	} {
		b := Settle(charge(), c.finish)
		want := Bill{c.known, c.milli, c.seconds, c.learn}
		if b != want || b.Correction(6_000) != c.correction {
			t.Errorf("%s: %+v, corrects by %d; want %+v, %d", name, b, b.Correction(6_000), want, c.correction)
		}
	}
	// No legal end is missing in the table: what is not there counts as unknown, and that is for a reason.
	for _, from := range []control.AttemptState{created, submitting, unknown, accepted, lost} {
		for _, to := range []control.AttemptState{succeeded, failed, canceled, rejected, abandoned} {
			listed := false
			for _, row := range uses {
				for _, f := range row.from {
					listed = listed || f == from && row.to == to
				}
			}
			if listed != from.CanBecome(to) {
				t.Errorf("%s → %s: legal %v, in the table %v", from, to, from.CanBecome(to), listed)
			}
		}
	}
}

func TestSettleLetsGPUSecondsFollow(t *testing.T) {
	t.Parallel()
	c := charge()
	c.GPUSeconds = 240 // 8 units on 3 slots
	b := Settle(c, Finish{From: control.AttemptAccepted, To: control.AttemptSucceeded, Seconds: 120, CostMicro: -1, Held: 130})
	if b.Milli != 48_000 {
		t.Errorf("%+v, want twice the 24 units", b)
	}
}

func TestDebtsStayWithinTheirLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits                             DebtLimits
		debt, correction, after, countedBy int64
	}{
		"within both":          {DebtLimits{50, 500}, 10, 20, 30, 20},
		"task's limit":         {DebtLimits{50, 500}, 10, 700, 60, 50},
		"credit, task's limit": {DebtLimits{50, 500}, 10, -700, -40, -50},
		"total":                {DebtLimits{50, 500}, 480, 50, 500, 50},
		"total credit":         {DebtLimits{50, 500}, -480, -50, -500, -50},
		"off":                  {DebtLimits{}, 0, 700, 0, 0},
		"switched off":         {DebtLimits{}, 300, 20, 0, 0},
		"lowered":              {DebtLimits{50, 100}, 300, 20, 100, 20},
	} {
		if after, counted := c.limits.Settle(c.debt, c.correction); after != c.after || counted != c.countedBy {
			t.Errorf("%s: %d, counted %d; want %d, %d", name, after, counted, c.after, c.countedBy)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		l := DebtLimits{rapid.Int64Range(0, 1e8).Draw(t, "task"), rapid.Int64Range(0, 1e8).Draw(t, "total")}
		debt := int64(0)
		for range 20 {
			e := rapid.Int64Range(-maxMilli, maxMilli).Draw(t, "correction")
			after, counted := l.Settle(debt, e)
			if max(after, -after) > l.Total || max(counted, -counted) > l.Task || e > 0 && (after < debt || counted < 0) || e < 0 && (after > debt || counted > 0) {
				t.Fatalf("%+v: %d and %d give %d, counted %d", l, debt, e, after, counted)
			}
			debt = after
		}
	})
}
