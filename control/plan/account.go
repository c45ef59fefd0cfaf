package plan

import (
	"fairlane/control"
)

// lending is a lane's will to lend, and what it keeps of its own units.
type lending struct {
	held    int64 // own units that earmarks keep
	loosed  bool  // some of them have come free since loans were relabelled
	unmet   int64 // smallest slots of a head that waits for lane units alone; 0: none
	stopped bool
	since   int64 // when it stopped, microseconds
	needy   bool  // some head lacked lane units when it was last looked at
	calm    int64 // when that ended, microseconds
	flag    bool  // stopped, as PostgreSQL has it
	lent    bool  // in the plan in progress
	loaded  bool
}

// account returns whose units a start of the stand would use, and for BORROWED whose; "" when there
// are none.
func (p *Planner) account(s *stand) (control.Account, *lane) {
	l, slots := s.lane, s.need.SlotUnits
	switch {
	case l.own()-p.heldBefore(s) >= slots:
		return control.AccountOwn, nil
	case p.rules.common-p.common >= slots:
		return control.AccountCommon, nil
	case len(s.lenders) == 0 || l.use.Borrowed+slots > l.rule.borrowLimit:
		return "", nil
	}
	for _, m := range s.lenders {
		if m.lends() >= slots {
			return control.AccountBorrowed, m
		}
	}
	return "", nil
}

// own is what the lane has left of its reserve.
func (l *lane) own() int64 { return l.rule.reserved - l.use.Own - l.use.Lent }

// lends is what the lane would lend now.
func (l *lane) lends() int64 {
	if l.stopped {
		return 0
	}
	return min(l.rule.lendable-l.use.Lent, l.own()-l.held-l.rule.headroom)
}

// heldBefore is what earmarks keep of the lane's own units, before the stand's own one.
func (p *Planner) heldBefore(s *stand) int64 {
	if s.hold == nil || s.lane.held == 0 {
		return s.lane.held
	}
	units := int64(0)
	for _, h := range p.holds {
		if h == s.hold {
			break
		}
		if h.lane == s.lane {
			units += h.units
		}
	}
	return units
}

// relabel turns the oldest borrowed units of each lane into its own, as far as own units have come
// free that no earmark keeps.
func (p *Planner) relabel(loans []Loan) {
	p.relabels = nil
	for _, l := range p.order {
		l.loosed = false
	}
	for _, loan := range loans {
		l, m := p.lanes[loan.Lane], p.lanes[loan.Lender]
		if l == nil || l.own()-l.held < loan.Units {
			continue
		}
		l.use.Own += loan.Units
		l.use.Borrowed -= loan.Units
		if m != nil {
			m.use.Lent -= loan.Units
		}
		p.relabels = append(p.relabels, loan)
	}
}

// mustRelabel reports whether own units that an earmark kept have come free in a lane that borrows. Then
// the plan ends, and the next one begins with what is its due.
func (p *Planner) mustRelabel() bool {
	for _, l := range p.order {
		if l.loosed && l.use.Borrowed > 0 && l.own()-l.held > 0 {
			return true
		}
	}
	return false
}

// lookLending stops lanes from lending while one of their heads lacks lane units that a pool has room
// for, and lets them lend again when there has been none for their cooldown.
func (p *Planner) lookLending() {
	for _, l := range p.order {
		if l.rule.lendable == 0 {
			l.unmet, l.needy, l.stopped = 0, false, false
			continue
		}
		l.unmet = p.unmet(l)
		switch {
		case l.unmet > 0:
			if !l.stopped {
				l.stopped, l.since = true, p.micro
			}
			l.needy = true
		case l.needy:
			l.needy, l.calm = false, p.micro
		}
		if l.stopped && !l.needy && p.micro-l.calm >= l.rule.cooldown {
			l.stopped, p.freed = false, true
		}
	}
}

// unmet is the size of the smallest head of a lane that lacks lane units and nothing else.
func (p *Planner) unmet(l *lane) (slots int64) {
	if l.rule.paused {
		return 0
	}
	own := l.own()
	for _, s := range l.met {
		if n := s.need.SlotUnits; s.heads > 0 && n > own && (slots == 0 || n < slots) && s.fit(false) != nil {
			slots = n
		}
	}
	return slots
}

// lendingMoved lists the changes of the lanes' flags in PostgreSQL. A lane that lent in this plan and
// then stopped has two.
func (p *Planner) lendingMoved() (out []Lending) {
	for _, l := range p.order {
		flag := l.flag
		if flag && (!l.stopped || l.lent) {
			out = append(out, Lending{Lane: l.rule.code})
			flag = false
		}
		if l.stopped && !flag {
			out = append(out, Lending{Lane: l.rule.code, Stopped: true})
		}
	}
	return out
}

// loadLanes takes the lanes' counters over.
func (p *Planner) loadLanes(s *Snapshot) {
	p.common = s.Common[p.group]
	for _, l := range p.order {
		l.use = s.Lanes[LaneGroup{l.rule.code, p.group}]
		l.flag, l.lent = l.use.Stopped, false
		if !l.loaded {
			l.loaded, l.stopped, l.since, l.calm = true, l.flag, p.micro, p.micro
		}
	}
}
