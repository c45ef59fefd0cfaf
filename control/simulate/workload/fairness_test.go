package workload

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"

	"fairlane/control/simulate"
	"fairlane/store/storetest"
)

// play runs trials, as many at a time as there are processors.
func play(t *testing.T, trials []Trial) map[string]map[float64]*simulate.Result {
	t.Helper()
	out := map[string]map[float64]*simulate.Result{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	next := make(chan Trial)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for trial := range next {
				r, err := simulate.Run(context.WithoutCancel(t.Context()), trial.Config)
				mu.Lock()
				if err != nil {
					t.Errorf("%s at %v: %v", trial.Name, trial.Load, err)
				}
				if out[trial.Name] == nil {
					out[trial.Name] = map[float64]*simulate.Result{}
				}
				out[trial.Name][trial.Load] = r
				mu.Unlock()
			}
		})
	}
	for _, trial := range trials {
		next <- trial
	}
	close(next)
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return out
}

// The bounds of the README's tables, on a part of the published day.
func TestFairnessOnThePublishedDay(t *testing.T) {
	t.Parallel()
	const longRun, most = 4, 0.01
	trials := trialsOf(t, 0, func(trial Trial) bool {
		switch trial.Name {
		case TrialShares, string(simulate.FIFO), string(simulate.RoundRobin):
			return trial.Load == overload
		}
		return trial.Name == TrialEndless && trial.Load != 0.95
	})
	found := play(t, trials)
	for _, name := range []string{TrialShares, TrialEndless} {
		for load, r := range found[name] {
			worst, n := LongRun(r, longRun)
			storetest.Figure(t, "simulate: %s at load %.2f for %d h: worst share error of %d tenants backlogged for %d h or more: %.3f %%, utilisation %.1f %%",
				name, load, hours, n, longRun, worst*100, r.Groups[0].Utilisation*100)
			if worst > most {
				t.Errorf("%s at %v: a tenant's share is off by %.2f %%", name, load, worst*100)
			}
			if name == TrialEndless && n < len(EndlessWeights) {
				t.Errorf("%s at %v: %d tenants were backlogged", name, load, n)
			}
			if r.NeverStart > 0 || r.Started != r.Tasks {
				t.Errorf("%s at %v: %d of %d tasks started", name, load, r.Started, r.Tasks)
			}
		}
	}
	fair, fifo, rr := found[TrialShares][overload], found[string(simulate.FIFO)][overload], found[string(simulate.RoundRobin)][overload]
	storetest.Figure(t, "simulate: at load %.2f: Jain %.4f, first come first served %.4f, in turn %.4f; p95 wait of the median tenant %.1f s, %.1f s, %.1f s",
		overload, fair.Jain, fifo.Jain, rr.Jain, TypicalP95(fair), TypicalP95(fifo), TypicalP95(rr))
	const rounding = 1e-6
	if fair.Jain < fifo.Jain || fair.Jain < rr.Jain-rounding || fair.Jain < 0.999 {
		t.Errorf("Jain %v, first come first served %v, in turn %v", fair.Jain, fifo.Jain, rr.Jain)
	}
	if TypicalP95(fair) > TypicalP95(fifo)/10 {
		t.Errorf("the median tenant's p95 wait is %v s, first come first served %v s", TypicalP95(fair), TypicalP95(fifo))
	}
}

func TestAHostileBurstMovesTheOthersWaitsLittle(t *testing.T) {
	t.Parallel()
	found := play(t, trialsOf(t, 0, func(trial Trial) bool { return trial.Name == TrialAlone || trial.Name == TrialHostile }))
	m := Moved(found[TrialAlone][0.7], found[TrialHostile][0.7])
	storetest.Figure(t, "simulate: a hostile burst beside steady load 0.7: of %d tenants the most moved is %s, p95 wait %.1f s to %.1f s, allowed %.1f s",
		m.Tenants, m.Tenant, m.Without, m.With, m.Allowed)
	if m.Excess > 0 || m.Tenants < 20 {
		t.Errorf("%+v", m)
	}
	for _, x := range found[TrialHostile][0.7].Tenants {
		if x.Tenant == HostileTenant && (x.Busy > HostileRunning || x.Busy < HostileRunning-1 || x.Rejected == 0) {
			t.Errorf("the burst did not burst: %+v", x)
		}
	}
}

// Where the borrower has no units of its own no loan is ever relabelled: then the estimates alone keep the
// promise, and single tasks of a tenant that has begun to take many times what its model takes can pass the
// attempt's deadline, which is printed and not judged.
func TestLentUnitsComeBackInTime(t *testing.T) {
	t.Parallel()
	found := play(t, trialsOf(t, 12, func(trial Trial) bool {
		return trial.Name == TrialLending && trial.Load != 0.7 || trial.Name == TrialUnbacked && trial.Load == overload
	}))
	for _, name := range []string{TrialLending, TrialUnbacked} {
		for load, r := range found[name] {
			l := LentBy(r)
			storetest.Figure(t, "simulate: %s at load %.2f: %d units lent, back after %.0f s (p50), %.0f s (p95), %.0f s at most; %.2f %% within %.0f s, %d after the attempt's deadline; %d tasks of the lender waited for them, at most %.1f s",
				name, load, l.Units, l.P50, l.P95, l.Max, float64(l.Kept)*100, l.Promise, l.Late, l.Waited, l.WaitedMax)
			if l.Units < 300 || l.Peak > 30 {
				t.Errorf("%s at %v: %+v", name, load, l)
			}
			if l.Waited > 0 && l.WaitedMax > l.Promise {
				t.Errorf("%s at %v: a task of the lender waited %v s for lent units", name, load, l.WaitedMax)
			}
			if l.Kept < 0.95 || name == TrialLending && l.Late > 0 {
				t.Errorf("%s at %v: the promise was not kept: %+v", name, load, l)
			}
		}
	}
}

const (
	hours    = 5
	overload = 1.3
)

// trialsOf takes the wanted ones of the trials that begin at an hour of the published day.
func trialsOf(t *testing.T, from float64, wanted func(Trial) bool) []Trial {
	t.Helper()
	all, err := Trials(embedded(t), from, hours, 1)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(trial Trial) bool { return !wanted(trial) })
}
