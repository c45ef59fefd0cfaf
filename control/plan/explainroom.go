package plan

import (
	"cmp"
	"slices"

	"fairlane/control"
)

// account tells the gate of the lane's units and returns the account that would be used; "" for none.
func (x *explaining) account() control.Account {
	p, l, n := x.p, x.l, x.s.need.SlotUnits
	account, _ := p.account(x.s)
	own, common := l.own()-p.heldBefore(x.s), p.rules.common-p.common
	options := []Option{
		{Account: control.AccountOwn, Reason: lacks(own, n, NoUnits), Numbers: []Number{
			{"free", max(0, own), Whole}, {"reserved", l.rule.reserved, Whole}, {"used", l.use.Own, Whole}, {"lent", l.use.Lent, Whole}, {"kept", p.heldBefore(x.s), Whole},
		}},
		{Account: control.AccountCommon, Reason: lacks(common, n, NoUnits), Numbers: []Number{{"free", max(0, common), Whole}, {"capacity", p.rules.common, Whole}}},
	}
	borrowed, canBorrow := x.lenders()
	options = append(options, borrowed...)
	x.tell(GateAccount, account == "", []Number{{"wanted", n, Whole}}, options...)
	if account == "" && x.needUnits(n-own+l.use.Borrowed, n-common, canBorrow) { // what is borrowed would become its own first
		return control.AccountBorrowed
	}
	return account
}

func lacks(free, wanted int64, why Reason) Reason {
	if free >= wanted {
		return ""
	}
	return why
}

// lenders tells of every lane that lends to this one, and whether one of them would if the lane might
// borrow more.
func (x *explaining) lenders() (out []Option, would bool) {
	l, n := x.l, x.s.need.SlotUnits
	if len(l.rule.lenders) == 0 || l.rule.borrowLimit == 0 {
		return []Option{{Account: control.AccountBorrowed, Reason: NotLent}}, false
	}
	for _, from := range l.rule.lenders {
		m := x.p.lanes[from.code]
		if m == nil {
			continue
		}
		o := Option{Account: control.AccountBorrowed, Lender: from.code, Numbers: []Number{
			{"free", max(0, m.lends()), Whole}, {"borrowed", l.use.Borrowed, Whole}, {"limit", l.rule.borrowLimit, Whole},
			{"expected", int64(x.t.Need.P95.Bound().Seconds()), Seconds}, {"promise", int64(from.timeout.Seconds()), Seconds},
		}}
		switch {
		case !slices.Contains(x.s.lenders, m):
			o.Reason = TooLong
		case m.stopped:
			o.Reason = LenderStopped
		case m.rule.lendable-m.use.Lent < n:
			o.Reason = AllLent
		case m.own()-m.held < n:
			o.Reason = NoUnits
		case m.own()-m.held-m.rule.headroom < n:
			o.Reason = OnlyHeadroom
		case l.use.Borrowed+n > l.rule.borrowLimit:
			o.Reason, would = AtLimit, true
		case x.s.fit(true) == nil && x.s.fit(false) != nil:
			o.Reason = NoLookUp
		}
		out = append(out, o)
	}
	return out, would
}

// needUnits names the smallest change that gives the lane units, and reports whether it would borrow them.
func (x *explaining) needUnits(own, common int64, canBorrow bool) (borrows bool) {
	l := x.l
	canBorrow = canBorrow && slices.ContainsFunc(x.s.pools, func(c ranked) bool { return c.rule.entry.CanLookUp })
	switch more := l.use.Borrowed + x.s.need.SlotUnits - l.rule.borrowLimit; {
	case canBorrow && more <= own && more <= common:
		x.need(RaiseBorrow, l.rule.code, l.rule.borrowLimit, l.rule.borrowLimit+more)
		return true
	case common < own:
		doc := x.p.policy.rules.doc
		x.need(RaiseCommon, x.p.group, doc.GroupCapacity(x.p.group), doc.GroupReserved(x.p.group)+x.p.common+x.s.need.SlotUnits)
	default:
		x.need(RaiseReserve, l.rule.code, l.rule.reserved, l.rule.reserved+own)
	}
	return false
}

// pool tells the gate of the pools: every pool of the model, the best first.
func (x *explaining) pool(borrowed bool) {
	var options []Option
	var best []Change
	var least int64
	for _, c := range x.p.rules.byModel[x.s.need.Model] {
		o := x.p.pools[c.pool.key]
		reason, at, changes, units := x.poolOption(o, borrowed)
		numbers := []Number{{"free", max(0, o.freeFor(x.l.rule.code, x.s.hold)), Whole}, {"used", at.used, Whole}, {"capacity", at.rule.capacity, Whole}}
		options = append(options, Option{Pool: at.rule.key, Reason: reason, Numbers: numbers})
		if reason != "" && (best == nil || units < least) {
			best, least = changes, units
		}
	}
	none := !slices.ContainsFunc(options, func(o Option) bool { return o.Reason == "" })
	x.tell(GatePool, none, []Number{{"wanted", x.s.need.SlotUnits, Whole}}, options...)
	switch {
	case len(options) == 0:
		x.need(AddPool, x.s.need.Model, 0, x.s.need.SlotUnits)
	case none:
		x.out.Changes = append(x.out.Changes, best...)
	}
}

// poolOption says why a pool gives nothing, which of it and its cap groups is to blame, and what would
// have to change, in units.
func (x *explaining) poolOption(o *pool, borrowed bool) (why Reason, at *pool, changes []Change, units int64) {
	at = o
	if !o.rule.entry.Admits(x.l.rule.code, x.m.who.id) {
		why, units = Dedicated, 1<<40
		changes = append(changes, Change{AllowPool, o.rule.key, 0, 0})
	}
	if borrowed && !o.rule.entry.CanLookUp {
		why, units = cmp.Or(why, NoLookUp), units+x.s.need.SlotUnits
		changes = append(changes, Change{RaiseReserve, x.l.rule.code, x.l.rule.reserved, x.l.rule.reserved + x.s.need.SlotUnits - x.l.own() + x.p.heldBefore(x.s) + x.l.use.Borrowed})
	}
	for _, g := range append([]*pool{o}, o.groups...) {
		if g.roomFor(x.l.rule.code, x.s.hold) >= x.s.need.SlotUnits {
			continue
		}
		r, n := x.shortOf(g)
		if why == "" {
			why, at = r, g
		}
		changes = append(changes, n.changes...)
		units += n.units
	}
	return why, at, changes, units
}

// lacking is what would open one pool.
type lacking struct {
	changes []Change
	units   int64 // how much that is; what cannot be decided by a policy counts for much
}

// shortOf says why one pool lacks units, and what would give them.
func (x *explaining) shortOf(o *pool) (why Reason, n lacking) {
	because := func(r Reason, units int64, c Change) {
		if why == "" {
			why = r
		}
		n.changes, n.units = append(n.changes, c), n.units+units
	}
	if o.rule.paused {
		because(Paused, 1<<20, Change{ResumePool, o.rule.key, 0, 0})
	}
	if o.broken {
		because(BreakerOpen, 1<<30, Change{CloseBreaker, o.rule.key, 0, 0})
	}
	slots, kept := x.s.need.SlotUnits, o.kept(x.l.rule.code)
	others := kept
	if o.hold != nil && o.hold != x.s.hold {
		others += o.hold.units
	}
	if short := slots - (o.rule.capacity - o.used - kept); short > 0 {
		why := KeptForLane
		switch {
		case slots > o.rule.capacity:
			why = TooSmall
		case slots > o.rule.capacity-o.used:
			why = Full
		}
		because(why, short, Change{RaisePool, o.rule.key, o.rule.capacity, o.rule.capacity + short + others - kept})
	} else if slots > o.rule.capacity-o.used-others {
		because(KeptForTask, slots, Change{EndEarmark, o.rule.key, 0, o.hold.until / 1_000_000})
	}
	if o.limit >= 0 && slots > o.limit-o.used-others {
		because(AtAdaptive, 1<<30, Change{WaitUntil, o.rule.key, o.limit, o.used + others + slots})
	}
	return why, n
}
