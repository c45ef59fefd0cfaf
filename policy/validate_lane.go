package policy

import "slices"

func validateLanes(f *faults, x *index) {
	paths := names(f, x.doc.Lanes, func(l *Lane) string { return l.Code }, "lanes", "code", codeMarks, 64)
	for i := range x.doc.Lanes {
		l := &x.doc.Lanes[i]
		numbers(f, paths[i], laneNumbers, l)
		oneOf(f, paths[i]+".strategy", l.Strategy, DRR, WRR)
		if len(l.Accounts) == 0 {
			f.add(paths[i]+".accounts", KeyRequired, nil)
		}
		seen := map[string]bool{}
		for j := range l.Accounts {
			a := &l.Accounts[j]
			path := paths[i] + ".accounts[" + Printable(a.PoolGroup, 80) + "]"
			numbers(f, path, accountNumbers, a)
			refer(f, path+".pool_group", a.PoolGroup, x.groups)
			if seen[a.PoolGroup] {
				f.add(path+".pool_group", KeyDuplicate, args{"value": Printable(a.PoolGroup, 80)})
			}
			seen[a.PoolGroup] = true
			validateLending(f, x, path, l, a)
		}
	}
}

// validateLending holds that a lane lends what it has, to lanes that can take it, with a promise.
func validateLending(f *faults, x *index, path string, l *Lane, a *LaneAccount) {
	unit := string(UnitSlots)
	if over := addUp(a.HeadroomUnits, -a.ReservedUnits); over > 0 {
		f.add(path+".headroom_units", KeyHeadroomOverLane, args{"headroom": a.HeadroomUnits, "reserved": a.ReservedUnits, "over": over, "unit": unit})
	} else if over := addUp(addUp(a.LendableUnits, a.HeadroomUnits), -a.ReservedUnits); over > 0 {
		f.add(path+".lendable_units", KeyLendableOverLane, args{
			"lendable": a.LendableUnits, "reserved": a.ReservedUnits, "headroom": a.HeadroomUnits, "over": over, "unit": unit,
		})
	}
	if a.LendableUnits > 0 && a.BorrowTimeout == 0 {
		f.add(path+".borrow_timeout_seconds", KeyNoBorrowTimeout, args{"lendable": a.LendableUnits, "unit": unit})
	}
	place := path + ".lends_to"
	if n := len(a.LendsTo); n > maxLanes {
		f.add(place, KeyTooMany, args{"count": int64(n), "max": int64(maxLanes)})
		return
	}
	for i, to := range a.LendsTo {
		switch other, known := x.lanes[to]; {
		case !known:
			f.add(place, KeyUnknown, args{"value": Printable(to, 80)})
		case to == l.Code:
			f.add(place, KeyLendsToItself, args{"value": to})
		case slices.Contains(a.LendsTo[:i], to):
			f.add(place, KeyDuplicate, args{"value": to})
		case !slices.ContainsFunc(other.Accounts, func(b LaneAccount) bool { return b.PoolGroup == a.PoolGroup }):
			f.add(place, KeyLendsElsewhere, args{"value": to, "group": Printable(a.PoolGroup, 80)})
		}
	}
}

// validateGroups holds that what the lanes keep of a group is there to be kept.
func validateGroups(f *faults, x *index) {
	paths := names(f, x.doc.PoolGroups, func(g *PoolGroup) string { return g.Code }, "pool_groups", "code", codeMarks, 64)
	for i := range x.doc.PoolGroups {
		g := &x.doc.PoolGroups[i]
		numbers(f, paths[i], groupNumbers, g)
		if slices.Contains(paths[:i], paths[i]) {
			continue
		}
		reserved, capacity := x.doc.GroupReserved(g.Code), x.doc.GroupCapacity(g.Code)
		if reserved <= capacity {
			continue
		}
		var fields []string
		for j := range x.doc.Lanes {
			l := &x.doc.Lanes[j]
			for _, a := range l.Accounts {
				if a.PoolGroup == g.Code && a.ReservedUnits > 0 {
					fields = append(fields, accountPath(l.Code, g.Code)+".reserved_units")
				}
			}
		}
		f.add(paths[i]+".reserved_units", KeySumOverCapacity, args{
			"reserved": reserved, "capacity": capacity, "over": addUp(reserved, -capacity), "unit": string(UnitSlots), "fields": fields,
		})
	}
}

func (l *Lane) reserved() int64 {
	var sum int64
	for _, a := range l.Accounts {
		sum = addUp(sum, a.ReservedUnits)
	}
	return sum
}
