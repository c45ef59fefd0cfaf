package estimate

import (
	"slices"

	"fairlane/control"
)

// Charge is what the claim of an attempt was charged by, as its task has it.
type Charge struct {
	Milli      int64 // fairness milli-units
	Base       int64 // of them before the tenant's factor
	SlotUnits  int64
	Seconds    float64 // expected of the provider's work
	GPUSeconds float64 // expected
	CostMicro  int64   // expected
	Bases      Bases   // of the policy under which the task was admitted
}

// Finish is how an attempt ended and what is known of it then.
type Finish struct {
	From, To  control.AttemptState
	Seconds   float64 // of work, as the provider told; 0: it did not
	CostMicro int64   // as the provider told; negative: it did not
	Accepted  float64 // seconds since the provider took the job; negative: not known
	Held      float64 // seconds since the claim
}

// Bill is what an attempt turned out to have used.
type Bill struct {
	Known   bool    // false: nobody knows, the estimate stands
	Milli   int64   // fairness milli-units used; 0 for an attempt that never ran
	Seconds float64 // of the provider's work; 0 for one that never ran
	Learn   bool    // it says how long such work takes, and what the tenant's tasks use
}

// Correction is what the end of the attempt adds to its charge: used − charged, before any limit.
func (b Bill) Correction(charged int64) int64 {
	if !b.Known {
		return 0
	}
	return b.Milli - charged
}

// use says what of an attempt counts.
type use int

const (
	useNothing use = iota // it never ran: the whole charge goes back
	useTime               // it ran and brought nothing: the time, and the cost only where the provider told one
	useWhole              // it ran to its end: the time, and the cost as told, else as expected
	useUnknown            // what became of it is not known: the estimate stands
)

// uses has a row for every legal end of an attempt. A retry needs none of its own: each claim is charged,
// and each attempt settles the charge of its own claim.
var uses = []struct {
	from []control.AttemptState
	to   control.AttemptState
	told bool // only where the provider told seconds or cost
	use  use
}{
	{[]control.AttemptState{control.AttemptCreated, control.AttemptSubmitting, control.AttemptUnknown}, control.AttemptRejected, false, useNothing},
	{[]control.AttemptState{control.AttemptCreated}, control.AttemptCanceled, false, useNothing},
	{[]control.AttemptState{control.AttemptAccepted, control.AttemptLost}, control.AttemptSucceeded, false, useWhole},
	{[]control.AttemptState{control.AttemptAccepted}, control.AttemptFailed, false, useTime},
	{[]control.AttemptState{control.AttemptAccepted}, control.AttemptCanceled, false, useTime},
	{[]control.AttemptState{control.AttemptLost}, control.AttemptFailed, true, useTime},
	{[]control.AttemptState{control.AttemptLost}, control.AttemptCanceled, true, useTime},
	{[]control.AttemptState{control.AttemptLost}, control.AttemptFailed, false, useUnknown},
	{[]control.AttemptState{control.AttemptLost}, control.AttemptCanceled, false, useUnknown},
	{[]control.AttemptState{control.AttemptUnknown, control.AttemptLost}, control.AttemptAbandoned, false, useUnknown},
}

func useOf(f Finish) use {
	told := positive(f.Seconds) || f.CostMicro >= 0
	for _, row := range uses {
		if row.to == f.To && slices.Contains(row.from, f.From) && (told || !row.told) {
			return row.use
		}
	}
	return useUnknown
}

// Settle says what an attempt used. Seconds are those that the provider told, else those since it took
// the job: also for one that was lost meanwhile, since a job past its deadline is lost even while its
// provider answers, and what takes longest must be learnt as well. GPU seconds follow the seconds. What
// was used is at least one unit.
func Settle(c Charge, f Finish) Bill {
	use := useOf(f)
	switch use {
	case useNothing:
		return Bill{Known: true}
	case useUnknown:
		return Bill{}
	}
	b := Bill{Known: true, Learn: use == useWhole}
	switch {
	case positive(f.Seconds):
		b.Seconds = f.Seconds
	case positive(f.Accepted):
		b.Seconds = f.Accepted
	default:
		b.Seconds = f.Held
	}
	b.Seconds = clamp(b.Seconds, leastSeconds, maxSeconds)
	cost := max(f.CostMicro, 0)
	if use == useWhole && f.CostMicro < 0 {
		cost = c.CostMicro
	}
	gpu := 0.0
	if c.Seconds > 0 {
		gpu = c.GPUSeconds * b.Seconds / c.Seconds
	}
	b.Milli = int64(min(c.Bases.milli(c.SlotUnits, b.Seconds, float64(cost), gpu), maxMilli))
	return b
}

// DebtLimits bound debts in milli-units; zeros: the lane keeps none.
type DebtLimits struct{ Task, Total int64 }

// Settle returns the debt after a task's correction, and what of the correction counts for the task:
// clamp(correction, ±Task), and then clamp(debt + that, ±Total). A debt beyond a total that was
// lowered comes back within it.
func (l DebtLimits) Settle(debt, correction int64) (after, counted int64) {
	counted = min(max(correction, -l.Task), l.Task)
	return min(max(debt+counted, -l.Total), l.Total), counted
}

// Settlement is what an attempt used, beside what was expected of it and charged for it.
type Settlement struct {
	Kind            control.Kind
	Known           bool    // false: nobody knows what it used, and the estimate stands
	Whole           bool    // it ran to a success, so that it tells of the estimates
	Seconds         float64 // of the provider's work
	ExpectedSeconds float64
	HeldSeconds     float64 // from claim to release
	P95Seconds      float64 // expected of them
	UsedMilli       int64   // fairness milli-units
	ChargedMilli    int64
	DebtMilli       int64 // by which the tenant's debt in the lane has changed
}
