package workload

import (
	"math"
	"slices"

	"fairlane/control/simulate"
)

// Trial is one simulation of the fairness tables.
type Trial struct {
	Name   string
	Load   float64
	Config simulate.Config
}

// Loads at which fairness is shown.
var Loads = []float64{0.7, 0.95, 1.3}

// HostileLoad is the code completion trace as it is, for the ready policies' slots.
const HostileLoad = 1.86

// The names of trials.
const (
	TrialShares   = "shares"   // the published day
	TrialEndless  = "endless"  // and three tenants that never run out of work
	TrialAlone    = "alone"    // a steady day
	TrialHostile  = "hostile"  // and the hostile tenant, capped
	TrialLending  = "lending"  // two lanes, of which one lends
	TrialUnbacked = "unbacked" // the same, but the borrower has nothing of its own: loans end with their tasks only
)

// Trials makes the simulations for so many hours of the published day, from an hour on.
func Trials(s *Source, from, hours float64, seed uint64) ([]Trial, error) {
	var out []Trial
	var failed error
	add := func(name string, o Options, c simulate.Config) {
		o.From, o.Hours, o.Seed = from, hours, seed
		if failed != nil {
			return
		}
		if c.Trace, failed = Derive(s, c.Document, o); failed == nil {
			out = append(out, Trial{name, o.Load, c})
		}
	}
	fair := Fair()
	for _, load := range Loads {
		add(TrialShares, Options{Load: load}, simulate.Config{Document: fair})
		if failed == nil {
			for _, mode := range []simulate.Mode{simulate.FIFO, simulate.RoundRobin} {
				c := out[len(out)-1].Config
				c.Mode = mode
				out = append(out, Trial{string(mode), load, c})
			}
		}
	}
	for _, load := range Loads {
		add(TrialEndless, Options{Load: load, Endless: EndlessWeights}, simulate.Config{Document: fair})
	}
	add(TrialAlone, Options{Load: 0.7, Steady: true}, simulate.Config{Document: fair, Admission: true})
	add(TrialHostile, Options{Load: 0.7, Steady: true, Hostile: HostileLoad}, simulate.Config{Document: fair, Admission: true})
	for _, load := range Loads {
		add(TrialLending, Options{Load: load}, simulate.Config{Document: Lending()})
	}
	unbacked := Lending()
	lane(unbacked, borrower).ReservedUnits = 0
	for _, load := range Loads {
		add(TrialUnbacked, Options{Load: load}, simulate.Config{Document: unbacked})
	}
	return out, failed
}

// LongRun is the largest error of the tenants that had work for at least so many hours without a break,
// and how many those are.
func LongRun(r *simulate.Result, hours float64) (worst float64, tenants int) {
	for i := range r.Tenants {
		if t := &r.Tenants[i]; t.Weight > 0 && float64(t.LongestHours) >= hours {
			worst, tenants = max(worst, math.Abs(float64(t.LongestError))), tenants+1
		}
	}
	return worst, tenants
}

// Move is how a tenant's wait differs between two runs. Seconds.
type Move struct {
	Tenant          string
	Without, With   float64 // 95th percentile
	Allowed, Excess float64 // max(10 %, one mean service time), and what is above it; at most 0 when it holds
	Tenants         int     // that were compared
}

// leastTasks is how many tasks a tenant must have started for its 95th percentile to mean anything.
const leastTasks = 100

// Moved compares the waits of everyone but the hostile tenant, and returns the one that moved by most
// over what is allowed.
func Moved(without, with *simulate.Result) Move {
	before := map[string]float64{}
	for i := range without.Tenants {
		if t := &without.Tenants[i]; t.Started >= leastTasks {
			before[t.Tenant] = float64(t.Wait.P95)
		}
	}
	worst := Move{Excess: math.Inf(-1)}
	n := 0
	for i := range with.Tenants {
		t := &with.Tenants[i]
		was, ok := before[t.Tenant]
		if !ok || t.Tenant == HostileTenant || t.Started < leastTasks {
			continue
		}
		n++
		m := Move{Tenant: t.Tenant, Without: was, With: float64(t.Wait.P95), Allowed: max(was/10, without.MeanService)}
		m.Excess = math.Abs(m.With-m.Without) - m.Allowed
		if m.Excess > worst.Excess {
			worst = m
		}
	}
	worst.Tenants = n
	return worst
}

// LentBy is how the lane that lends was given back what it lent.
func LentBy(r *simulate.Result) *simulate.Lending {
	for i := range r.Lanes {
		if r.Lanes[i].Lane == lender {
			return r.Lanes[i].Lending
		}
	}
	return nil
}

// TypicalP95 is the median over the tenants of the 95th percentile of their waits, in seconds.
func TypicalP95(r *simulate.Result) float64 {
	var list []float64
	for i := range r.Tenants {
		if t := &r.Tenants[i]; t.Started > 0 {
			list = append(list, float64(t.Wait.P95))
		}
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}
