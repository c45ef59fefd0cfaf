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
