package run

import (
	"fairlane/control/reconcile"
	"fairlane/store/facts"
)

// watching are the sweeps that keep the history and look for who waits too long.
func (a *app) watching() []reconcile.Sweep {
	return reconcile.Watching(facts.NewHistory(a.back), reconcile.Starvation(facts.NewWaits(a.back), a.inForce))
}
