package plan_test

import (
	"slices"

	"fairlane/control/plan"
)

// relabel turns the oldest loans into own units where some have come free.
func (n *naive) relabel() {
	n.relabels = nil
	for _, l := range n.lanes {
		l.loosed = false
	}
	for _, loan := range n.w.loans {
		own, _ := n.w.accounts(loan.Lane)
		u := n.use[loan.Lane]
		if own-u.Own-u.Lent-n.heldIn(loan.Lane, &nTask{}) < loan.Units {
			continue
		}
		u.Own, u.Borrowed = u.Own+loan.Units, u.Borrowed-loan.Units
		n.use[loan.Lane] = u
		m := n.use[loan.Lender]
		m.Lent -= loan.Units
		n.use[loan.Lender] = m
		n.relabels = append(n.relabels, loan)
	}
}

// mustRelabel reports whether a loan could become the lane's own in the midst of a plan.
func (n *naive) mustRelabel() bool {
	return slices.ContainsFunc(n.lanes, func(l *nLane) bool {
		own, _ := n.w.accounts(l.Code)
		u := n.use[l.Code]
		return l.loosed && u.Borrowed > 0 && own-u.Own-u.Lent-n.heldIn(l.Code, &nTask{}) > 0
	})
}

func (n *naive) lookLending() {
	for _, l := range n.lanes {
		a := l.account()
		if a.LendableUnits == 0 {
			l.stopped, l.needy = false, false
			continue
		}
		need := false
		for _, m := range n.in(l) {
			for _, e := range n.entries(m) {
				u := n.use[l.Code]
				need = need || !l.Paused && e.rank < 4 && e.SlotUnits > a.ReservedUnits-u.Own-u.Lent && n.fit(e.nTask, false) != ""
			}
		}
		if need {
			l.stopped, l.needy = true, true
		} else if l.needy {
			l.needy, l.calm = false, n.now
		}
		if l.stopped && !l.needy && n.now-l.calm >= a.Cooldown {
			l.stopped = false
		}
	}
}

func (n *naive) lendingMoved() (out []plan.Lending) {
	for _, l := range n.lanes {
		flag := n.w.stopped[l.Code]
		lent := slices.ContainsFunc(n.starts, func(s *nStart) bool { return s.lender == l })
		if flag && (!l.stopped || lent) {
			out = append(out, plan.Lending{Lane: l.Code})
			flag = false
		}
		if l.stopped && !flag {
			out = append(out, plan.Lending{Lane: l.Code, Stopped: true})
		}
	}
	return out
}
