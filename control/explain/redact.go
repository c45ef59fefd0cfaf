package explain

import (
	"slices"

	"fairlane/control/plan"
)

// ForTenant leaves out what tells of others: figures of lanes and pools, their names, who lends, and
// changes that are not the tenant's own to ask for.
func (a Answer) ForTenant() Answer {
	gates := slices.Clone(a.Gates)
	for i := range gates {
		g := &gates[i]
		switch g.Gate {
		case plan.GateNeverFits, plan.GateAccount, plan.GatePool:
			g.Numbers = only(g.Numbers, "wanted")
		case plan.GateTurn: // the quantum would tell the heaviest weight of the lane
			g.Numbers = slices.DeleteFunc(slices.Clone(g.Numbers), func(n plan.Number) bool { return n.Name == "quantum" })
		}
		g.Options = reasons(g.Options)
	}
	a.Gates = gates
	a.Changes = slices.DeleteFunc(slices.Clone(a.Changes), func(c plan.Change) bool {
		switch c.What {
		case plan.RaiseTenant, plan.RaiseTasks, plan.RaiseUser, plan.ReinstateTenant:
			return false
		case plan.WaitUntil:
			return c.Object != ""
		}
		return true
	})
	a.PlaceTo = 0 // it would tell how much others have waiting
	return a
}

func only(numbers []plan.Number, name string) (out []plan.Number) {
	for _, n := range numbers {
		if n.Name == name {
			out = append(out, n)
		}
	}
	return out
}

// reasons keeps why accounts gave nothing, once each, without whose they are. Pools are not named.
func reasons(options []plan.Option) (out []plan.Option) {
	for _, o := range options {
		r := plan.Option{Account: o.Account, Reason: o.Reason}
		if !slices.ContainsFunc(out, func(x plan.Option) bool { return x.Account == r.Account && x.Reason == r.Reason }) {
			out = append(out, r)
		}
	}
	return out
}
