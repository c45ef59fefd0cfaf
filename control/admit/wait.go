package admit

import (
	"math"
	"time"

	"github.com/google/uuid"

	"fairlane/control/estimate"
	"fairlane/policy"
)

// wait is how long a task is expected to wait for its start.
type wait struct {
	known bool          // false: the lane has weight 0 or no capacity is certain; nothing is promised
	mean  time.Duration //
	p90   time.Duration //
	ahead float64       // fairness milli-units that are served before it starts, with it
	rate  float64       // fairness milli-units a second
}

// wait is (own backlog B_i with it + Σ_j min(B_j, B_i·w_j/w_i)) / μ. A neighbour's
// backlog counts only as far as its weight lets it go first, so a whale's queue does not refuse others.
func (v *view) wait(load *Load, tenant uuid.UUID, weight int64, lane *policy.Lane, group string, est estimate.Estimate) wait {
	if lane.Weight == 0 || weight == 0 {
		return wait{}
	}
	in := load.lane(lane.Code)
	own := float64(in.Tenants[tenant].Milli + est.FairnessMilli)
	ahead := own
	for id, other := range in.Tenants {
		if id != tenant {
			ahead += min(float64(other.Milli), own*float64(other.Weight)/float64(weight))
		}
	}
	// μ: fairness units that a busy slot unit serves in a second, by what waits in the lane, or by
	// this task where nothing does.
	perSlotSecond := float64(est.FairnessMilli) / (float64(est.SlotUnits) * est.MeanSeconds)
	if in.SlotSeconds > 0 {
		perSlotSecond = float64(in.SampleMilli) / in.SlotSeconds
	}
	rate := v.doc.Limits.SafeUtilisation * v.capacity(load, lane, group) * perSlotSecond
	if !(rate > 0) {
		return wait{}
	}
	seconds := ahead / rate
	// Sums of n services spread with 1/√n; one service is about as wide as its mean.
	n := max(1, ahead/float64(est.FairnessMilli))
	return wait{known: true, mean: duration(seconds), p90: duration(seconds * (1 + 1.28/math.Sqrt(n))), ahead: ahead, rate: rate}
}

// capacity is the slot units that the lane can count on in the group: its own, and its share by
// weight of what is common, among the lanes that have something queued.
func (v *view) capacity(load *Load, lane *policy.Lane, group string) float64 {
	var own, weights int64
	for i := range v.doc.Lanes {
		l := &v.doc.Lanes[i]
		for _, a := range l.Accounts {
			if a.PoolGroup != group {
				continue
			}
			if l.Code == lane.Code {
				own = a.ReservedUnits
			}
			if l.Code == lane.Code || load.lane(l.Code).Tasks > 0 {
				weights += l.Weight
			}
		}
	}
	units := v.groups[group]
	return float64(min(own, units.capacity)) + float64(units.common)*float64(lane.Weight)/float64(max(weights, 1))
}

// tooLong refuses when the expected wait is above the bound in seconds; 0 is no bound.
func (w wait) tooLong(bound int64) *Refusal {
	if bound == 0 || !w.known || w.mean <= time.Duration(bound)*time.Second {
		return nil
	}
	seconds := int64(math.Ceil(w.mean.Seconds()))
	no := refuse(ExpectedWaitTooLong, "lane", "", "this task would start in about %d s, it may wait %d s at most", seconds, bound).
		numbers(UnitSeconds, bound, seconds, 0)
	no.RetryAfter = min(max(w.mean-time.Duration(bound)*time.Second, 5*time.Second), 10*time.Minute)
	return no
}

// tell writes what is expected into the answer.
func (w wait) tell(a *Answer, lane *policy.Lane) {
	target := time.Duration(lane.WaitTargetSeconds) * time.Second
	if target == 0 {
		target = time.Minute
	}
	switch {
	case !w.known:
		a.Decision, a.PositionLevel = AcceptedBestEffort, LevelLong
		return
	case w.mean <= target:
		a.PositionLevel = LevelShort
	case w.mean <= 5*target:
		a.PositionLevel = LevelMedium
	default:
		a.PositionLevel = LevelLong
	}
	start, late := a.QueuedAt.Add(w.mean), a.QueuedAt.Add(w.p90)
	a.EstimatedStart, a.EstimatedStart90 = &start, &late
}

// duration bounds seconds to a year, so that no arithmetic on times overflows.
func duration(seconds float64) time.Duration {
	return time.Duration(min(seconds, 365*24*3600) * float64(time.Second))
}
