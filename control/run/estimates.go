package run

import (
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"fairlane/control/estimate"
	"fairlane/store/facts"
)

type estimatesCmd struct{ storeSettings }

// Run shows the estimates in force by how they did: one line for each model that has had tasks.
func (c *estimatesCmd) Run(e *env) error {
	return withDatabase(e.ctx, &c.storeSettings, func(db *facts.DB, _ string) error {
		store := facts.NewEstimates(db)
		head, err := store.HeadVersion(e.ctx)
		if err != nil {
			return err
		}
		book, err := store.Book(e.ctx, head)
		if err != nil {
			return err
		}
		models, err := store.Calibrations(e.ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.out, "version %d, %d kinds of work; the priors of the policy weigh %d tasks in each\n", head, book.Len(), estimate.PriorTasks)
		if len(models) == 0 {
			fmt.Fprintln(e.out, "no task has succeeded yet")
			return nil
		}
		fmt.Fprintln(e.out, "actual ÷ estimate of the newest tasks (at most 1,000) of each model:")
		w := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(w, "model\ttasks\tseconds P50\tP95\tfairness units P50\tP95\tabove P95\t")
		for _, model := range slices.Sorted(maps.Keys(models)) {
			q := models[model]
			fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f %%\t\n", model, q.Tasks, q.SecondsP50, q.SecondsP95, q.UnitsP50, q.UnitsP95, 100*q.AboveP95)
		}
		return w.Flush()
	})
}
