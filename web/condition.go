package web

import (
	"context"

	"fairlane/policy"
)

// PolicyConditions tells the condition from the policy that this process follows. Its fields are all
// needed but Degraded, and none of them may wait.
type PolicyConditions struct {
	Current  func() *policy.Version // in force here; nil before the first
	Wanted   func() int64           // newest one published
	Degraded func() []Mode
}

// Condition implements Conditions.
func (p PolicyConditions) Condition(context.Context) (Condition, error) {
	k := Condition{Wanted: p.Wanted()}
	if p.Degraded != nil {
		k.Degraded = p.Degraded()
	}
	v := p.Current()
	if v == nil {
		return k, nil
	}
	k.InForce = v.Number
	k.Wanted = max(k.Wanted, v.Number)
	d := v.Document
	k.AdmissionClosed, k.SchedulingStopped = !d.Switches.AdmissionOpen, !d.Switches.SchedulingRunning
	for i := range d.Lanes {
		if d.Lanes[i].Paused {
			k.PausedLanes = append(k.PausedLanes, d.Lanes[i].Code)
		}
		if !d.Lanes[i].AdmissionOpen {
			k.ClosedLanes = append(k.ClosedLanes, d.Lanes[i].Code)
		}
	}
	for i := range d.Pools {
		if d.Pools[i].Paused {
			k.PausedPools = append(k.PausedPools, d.Pools[i].Key)
		}
	}
	return k, nil
}
