package simulate

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	"fairlane/control"
	"fairlane/control/estimate"
	"fairlane/control/plan"
	"fairlane/policy"
)

// begin starts a task that holds everything.
func (w *world) begin(t *task, s *plan.Start) {
	w.attempts++
	t.start, t.attempt = *s, numbered(idAttempt, w.attempts)
	t.began, t.ends = w.now, w.now+t.duration
	limits := &w.doc.Limits
	long := max(time.Duration(limits.AttemptTimeoutFloor)*time.Second, time.Duration(limits.AttemptTimeoutP95*float64(t.p95)))
	t.deadline = w.now + long.Microseconds()
	w.serve(t.party, t.actual.Milli)
	w.hold(t, 1)
	heap.Push(&w.running, t)
	if s.Account == control.AccountBorrowed {
		w.loans = append(w.loans, t)
		w.onLoan[t.attempt] = t
	}
	t.party.started(t, w)
}

// finish ends a task: units go back, what it took more or less than it was charged is settled, and learnt.
func (w *world) finish(t *task) {
	if t.start.Account == control.AccountBorrowed {
		w.returned(t)
	}
	w.hold(t, -1)
	w.learn(t)
	if t.party.lane.rule.Strategy == policy.WRR || t.start.Free {
		return
	}
	s := &w.doc.Scheduling
	limits := estimate.DebtLimits{Task: s.DebtTaskUnits * control.Milli, Total: s.DebtTotalUnits * control.Milli}
	key := plan.TenantLane{Tenant: t.party.tenant.account.ID, Lane: t.start.Lane}
	w.count.debts[key], _ = limits.Settle(w.count.debts[key], t.actual.Correction(t.charge.Milli))
}

// learnEvery is how often what was learnt comes into force.
const learnEvery = 60 * secondsInMicro

func (w *world) learn(t *task) {
	if !t.actual.Learn {
		return
	}
	ten := t.party.tenant
	ten.factor = ten.factor.Learn(t.charge.Milli, t.charge.Base, t.actual.Milli)
	m := t.model
	m.key.Provider = w.pools[t.start.Pool].rule.Provider
	took := float64(t.duration) / float64(secondsInMicro)
	w.history.Observe(estimate.Sample{Key: m.key, Seconds: took, Held: took, CostMicro: -1})
}

// publish brings what was learnt into force; not more often than learnEvery.
func (w *world) publish() {
	if w.now < w.published+learnEvery {
		return
	}
	w.published = w.now
	moved := w.history.Moved(estimate.MovedShare)
	if len(moved) == 0 {
		return
	}
	version := w.book.Version() + 1
	w.history.Publish(version, moved)
	for _, k := range moved {
		w.told[k], _ = w.history.History(k)
	}
	w.book = estimate.NewBook(version, maps.Clone(w.told))
}

// Book is what is in force of it.
func (w *world) Book() *estimate.Book { return w.book }

// returned accounts for a loan that has ended, by its end or because its lane has units of its own again.
func (w *world) returned(t *task) {
	m := w.accounts[plan.LaneGroup{Lane: t.start.Lender, Group: t.start.Group}]
	m.lending.back(t, w.now)
	delete(w.onLoan, t.attempt)
	if at := slices.Index(w.loans, t); at >= 0 {
		w.loans = slices.Delete(w.loans, at, at+1)
	}
}

// relabel makes a loan the lane's own where it has own units.
func (w *world) relabel(l plan.Loan) {
	t := w.onLoan[l.AttemptID]
	if t == nil || t.start.Lender != l.Lender {
		return
	}
	use := w.count.lanes[t.account.key]
	if t.charge.SlotUnits > t.account.rule.ReservedUnits-use.Own-use.Lent {
		return
	}
	w.returned(t)
	w.holdAccount(t.account, control.AccountBorrowed, t.start.Lender, -t.charge.SlotUnits)
	t.start.Account, t.start.Lender = control.AccountOwn, ""
	w.holdAccount(t.account, control.AccountOwn, "", t.charge.SlotUnits)
}
