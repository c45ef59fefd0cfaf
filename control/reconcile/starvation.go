package reconcile

import (
	"context"
	"errors"

	"fairlane/policy"
)

// Why a lane has no bound.
const (
	ExemptWeightZero = "WEIGHT_ZERO" // it takes what nobody else wants, and is promised nothing
	ExemptPaused     = "PAUSED"
	ExemptStopped    = "STOPPED"  // the whole of scheduling is switched off
	ExemptNoBound    = "NO_BOUND" // it has neither a wait target nor a longest wait
)

// TargetsToStarve is how many times a lane's wait target a task may wait before its tenant counts as
// starved: a target is what most tasks keep, a bound is what all of them should.
const TargetsToStarve = 3

// LaneBound is how long the oldest task of any tenant may wait in a lane.
type LaneBound struct {
	Lane    string
	Seconds int64  // 0: only a tenant's own longest wait binds
	Exempt  string // "": not
}

// StarvationRule is what the detector holds every lane and tenant to. A tenant's own longest wait binds
// as well where it is nearer: three quarters of it, for a task that reaches it has been lost.
type StarvationRule struct {
	Lanes            []LaneBound
	BaseQuantumUnits int64
	RepayPermille    int64
}

// RuleOf reads the rule out of a policy. The bound of a lane is TargetsToStarve times its wait target, or
// three quarters of its longest wait where that is nearer.
func RuleOf(doc *policy.Document) StarvationRule {
	r := StarvationRule{BaseQuantumUnits: doc.Scheduling.BaseQuantumUnits, RepayPermille: doc.Scheduling.RepayPermille}
	for i := range doc.Lanes {
		l := &doc.Lanes[i]
		b := LaneBound{Lane: l.Code, Seconds: l.WaitTargetSeconds * TargetsToStarve}
		if most := l.MaxWaitSeconds * 3 / 4; most > 0 && (b.Seconds == 0 || most < b.Seconds) {
			b.Seconds = most
		}
		switch {
		case !doc.Switches.SchedulingRunning:
			b.Exempt = ExemptStopped
		case l.Paused:
			b.Exempt = ExemptPaused
		case l.Weight == 0:
			b.Exempt = ExemptWeightZero
		}
		r.Lanes = append(r.Lanes, b)
	}
	return r
}

// Waits looks for the longest wait of every lane and tenant, keeps who is over its bound, and returns
// how many tenants are, those at their own maximum left out.
type Waits interface {
	Starving(ctx context.Context, rule StarvationRule) (int64, error)
}

// Starvation is the sweep that finds who waits too long. It repairs nothing: what helps is a change of
// policy, and the page says which gate holds.
func Starvation(waits Waits, active func() (*policy.Document, int64)) func(context.Context) (Result, error) {
	return func(ctx context.Context) (Result, error) {
		doc, _ := active()
		if doc == nil {
			return Result{}, errors.New("no policy is in force here yet")
		}
		n, err := waits.Starving(ctx, RuleOf(doc))
		return Result{Found: n}, err
	}
}
