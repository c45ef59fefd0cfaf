package console

import (
	"context"
	"strings"

	"github.com/gin-gonic/gin"

	"fairlane/control"
	"fairlane/policy"
	"fairlane/policy/access"
	"fairlane/views"
	"fairlane/views/page"
)

// lane loads the lane that the address names.
func (s *Console) lane(c *gin.Context) loader {
	code := c.Param("lane")
	return func(ctx context.Context, doc *policy.Document) (object, error) {
		l, ok := doc.Lane(code)
		if !ok {
			return object{}, control.Errorf(control.CodeNotFound, "there is no such lane")
		}
		return laneObject(ctx, doc, l), nil
	}
}

func laneObject(ctx context.Context, doc *policy.Document, l *policy.Lane) object {
	o := object{
		kind: "object.lane", title: l.Code, active: "lanes", address: "/lanes/" + l.Code,
		scope: access.Object{Lane: l.Code}, causes: map[string]string{},
		facts: []page.Fact{
			{Label: views.T(ctx, "field.strategy"), Value: string(l.Strategy)},
			{Label: views.T(ctx, "lane.share"), Value: views.Percent(float64(policy.LaneShares(doc)[l.Code]) / 1000)},
			{Label: views.T(ctx, "field.wait_target_seconds"), Value: views.Seconds(ctx, l.WaitTargetSeconds)},
		},
	}
	code := l.Code
	o.fields = append(o.fields, field{name: "weight", label: "field.weight", unit: policy.UnitWeight, value: decimal(l.Weight),
		set: func(v string) policy.Edit { return policy.SetLane(code, "weight", v) }})
	for _, a := range l.Accounts {
		group, name := a.PoolGroup, accountField(l, "reserved_units", a.PoolGroup)
		o.facts = append(o.facts, page.Fact{Label: views.T(ctx, "lane.group", "Group", group), Value: views.T(ctx, "lane.group_value",
			"Reserved", doc.GroupReserved(group), "Capacity", doc.GroupCapacity(group))})
		o.causes["pool_groups["+group+"].reserved_units"] = name
		o.causes["lanes["+code+"].reserved_units"] = name
		o.fields = append(o.fields, accountFields(l, &a)...)
	}
	for _, sw := range []struct {
		name string
		on   bool
	}{{"admission_open", l.AdmissionOpen}, {"paused", l.Paused}} {
		o.fields = append(o.fields, field{name: sw.name, label: views.Key("field." + sw.name), isSwitch: true, on: sw.on,
			set: func(v string) policy.Edit { return policy.SetLane(code, sw.name, v) }})
	}
	return o
}

// accountField names a field of the lane's account in a pool group: by the group where there are several.
func accountField(l *policy.Lane, name, group string) string {
	if len(l.Accounts) > 1 {
		return name + "@" + group
	}
	return name
}

// accountFields are what the lane holds, lends and borrows in a pool group.
func accountFields(l *policy.Lane, a *policy.LaneAccount) []field {
	code, group := l.Code, a.PoolGroup
	values := map[string]int64{
		"reserved_units": a.ReservedUnits, "headroom_units": a.HeadroomUnits, "lendable_units": a.LendableUnits,
		"borrow_timeout_seconds": a.BorrowTimeout, "cooldown_seconds": a.Cooldown, "borrow_limit_units": a.BorrowLimit,
	}
	lendsTo := field{
		name: accountField(l, "lends_to", group), label: "field.lends_to", isText: true, guide: "hint.lanes", value: strings.Join(a.LendsTo, ", "),
		set: func(v string) policy.Edit { return policy.SetLaneAccount(code, group, "lends_to", v) },
	}
	var list []field
	for _, name := range policy.AccountFields() {
		limit, _ := policy.LimitOf(policy.ObjectLaneAccount, name)
		list = append(list, field{name: accountField(l, name, group), label: views.Key("field." + name), unit: limit.Unit, value: decimal(values[name]),
			set: func(v string) policy.Edit { return policy.SetLaneAccount(code, group, name, v) }})
		if name == "lendable_units" {
			list = append(list, lendsTo)
		}
	}
	return list
}
