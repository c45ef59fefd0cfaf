package run

import (
	"context"

	"fairlane/control/estimate"
	"fairlane/control/reconcile"
	"fairlane/store/facts"
)

// mostFolds bounds what one run of the learner folds; the next one is seconds away.
const mostFolds = 20

// learn folds what completions have left into the estimates, by the priors of the policy in force.
func (a *app) learn(ctx context.Context) (reconcile.Result, error) {
	store := facts.NewEstimates(a.back)
	doc, _ := a.inForce()
	if doc == nil {
		return reconcile.Result{}, nil
	}
	priors := estimate.Priors(doc)
	var r reconcile.Result
	for range mostFolds {
		n, err := store.Fold(ctx, priors, facts.MaxFold, estimate.MovedShare)
		r.Found += int64(n)
		if err != nil || n < facts.MaxFold {
			return r, err
		}
	}
	return r, nil
}
