package run

import (
	"fmt"
	"io"

	"fairlane/control/simulate"
	"fairlane/control/simulate/workload"
)

type simulateFairnessCmd struct {
	Hours float64 `default:"24" help:"Hours of the published day, 0.25 to 24."`
	Seed  uint64  `default:"1" help:"Of the derivation of traces."`
}

// longRunHours is for how long a tenant must have had work without a break for its share to count.
const longRunHours = 4

// Run makes the tables of the README.
func (c *simulateFairnessCmd) Run(e *env) error {
	if !(c.Hours >= 0.25 && c.Hours <= 24) {
		return settingError{"simulate fairness", "hours must be 0.25 to 24"}
	}
	source, err := workload.Embedded()
	if err != nil {
		return err
	}
	trials, err := workload.Trials(source, 0, c.Hours, c.Seed)
	if err != nil {
		return err
	}
	jobs := make([]simulate.Config, len(trials))
	for i := range trials {
		if err := simulate.Validate(trials[i].Config.Trace, trials[i].Config.Document, nil); err != nil {
			return err
		}
		jobs[i] = trials[i].Config
	}
	results, err := simulateAll(e.ctx, jobs, e.errOut)
	if err != nil {
		return err
	}
	w := &sticky{out: e.out}
	found := map[string]map[float64]*simulate.Result{}
	for i, t := range trials {
		if found[t.Name] == nil {
			found[t.Name] = map[float64]*simulate.Result{}
		}
		found[t.Name][t.Load] = results[i]
	}
	shareTable(w, found)
	hostileTable(w, found[workload.TrialAlone][0.7], found[workload.TrialHostile][0.7])
	lendingTable(w, found)
	return w.err
}

func shareTable(w io.Writer, found map[string]map[float64]*simulate.Result) {
	fmt.Fprintf(w, "| load | tasks | utilisation | share error, worst (tenants) | the same beside three endless tenants | Jain | Jain, FIFO | Jain, round robin | p95 wait, the median tenant | FIFO | round robin |\n")
	fmt.Fprintf(w, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, load := range workload.Loads {
		fair, endless := found[workload.TrialShares][load], found[workload.TrialEndless][load]
		fifo, rr := found[string(simulate.FIFO)][load], found[string(simulate.RoundRobin)][load]
		fmt.Fprintf(w, "| %.2f | %d | %.1f %% | %s | %s | %s | %s | %s | %s | %s | %s |\n",
			load, fair.Tasks, fair.Groups[0].Utilisation*100, errorOf(fair), errorOf(endless),
			index(fair.Jain), index(fifo.Jain), index(rr.Jain), othersWait(fair), othersWait(fifo), othersWait(rr))
	}
}

func errorOf(r *simulate.Result) string {
	worst, tenants := workload.LongRun(r, longRunHours)
	if tenants == 0 {
		return "nobody waited so long"
	}
	return fmt.Sprintf("%.2f %% (%d)", worst*100, tenants)
}

func index(n simulate.Number) string {
	if !n.Known() {
		return "-"
	}
	return fmt.Sprintf("%.4f", float64(n))
}

func othersWait(r *simulate.Result) string {
	return fmt.Sprintf("%.1f s", workload.TypicalP95(r))
}

func hostileTable(w io.Writer, alone, hostile *simulate.Result) {
	m := workload.Moved(alone, hostile)
	state := "holds"
	if m.Excess > 0 {
		state = "BROKEN"
	}
	fmt.Fprintf(w, "\n| steady load 0.7 | hostile tenant: tasks asked, started, units in use | tenants compared | most moved: p95 without, with | allowed | |\n")
	fmt.Fprintf(w, "| --- | --- | --- | --- | --- | --- |\n")
	for i := range hostile.Tenants {
		if t := &hostile.Tenants[i]; t.Tenant == workload.HostileTenant {
			fmt.Fprintf(w, "| %d tasks | %d, %d, %.1f of %d | %d | %s: %.1f s, %.1f s | %.1f s | %s |\n",
				alone.Tasks, t.Arrivals, t.Started, t.Busy, workload.HostileRunning, m.Tenants, m.Tenant, m.Without, m.With, m.Allowed, state)
		}
	}
}

func lendingTable(w io.Writer, found map[string]map[float64]*simulate.Result) {
	fmt.Fprintf(w, "\n| lending | load | units lent | back p50, p95, max | promise | kept | later than the attempt's deadline | lender's tasks that waited for lent units, longest |\n")
	fmt.Fprintf(w, "| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, name := range []string{workload.TrialLending, workload.TrialUnbacked} {
		for _, load := range workload.Loads {
			l := workload.LentBy(found[name][load])
			what := "borrower with a reserve of its own"
			if name == workload.TrialUnbacked {
				what = "borrower without one"
			}
			waited := "none"
			if l.Waited > 0 {
				waited = fmt.Sprintf("%d, %.1f s", l.Waited, float64(l.WaitedMax))
			}
			fmt.Fprintf(w, "| %s | %.2f | %d | %.0f s, %.0f s, %.0f s | %.0f s | %.2f %% | %d | %s |\n",
				what, load, l.Units, float64(l.P50), float64(l.P95), float64(l.Max), float64(l.Promise), float64(l.Kept)*100, l.Late, waited)
		}
	}
}
