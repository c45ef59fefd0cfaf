package policy

import (
	"slices"

	"fairlane/control"
)

// Edit sets one field of one object to a value that somebody typed.
type Edit struct {
	Object ObjectKind
	ID     string // code of the lane or tenant, key of the pool; "" for switches
	Tenant Tenant // for ObjectTenant: whose field it is; its code is ID
	Group  string // for ObjectLaneAccount: the pool group
	Field  string // name of the setting as in the document, such as "max_running_units"
	Value  string // as typed
	Reset  bool   // for ObjectTenant: back to the plan's value; Value is not read
}

// SetTenant gives a tenant a value of its own. What is in force already is no change.
func SetTenant(t Tenant, field, value string) Edit {
	return Edit{Object: ObjectTenant, ID: t.Code, Tenant: t, Field: field, Value: value}
}

// ResetTenant gives a field back to the tenant's plan.
func ResetTenant(t Tenant, field string) Edit {
	return Edit{Object: ObjectTenant, ID: t.Code, Tenant: t, Field: field, Reset: true}
}

// SetLane sets a field of a lane: a whole number, or paused, admission_open, pause_when_degraded.
func SetLane(code, field, value string) Edit {
	return Edit{Object: ObjectLane, ID: code, Field: field, Value: value}
}

// SetLaneReserved sets what a lane holds in a pool group, in slot units.
func SetLaneReserved(lane, group, value string) Edit {
	return Edit{Object: ObjectLaneAccount, ID: lane, Group: group, Field: "reserved_units", Value: value}
}

// SetLaneAccount sets a field of what a lane holds in a pool group: a whole number, or lends_to, the codes
// of lanes with commas between them.
func SetLaneAccount(lane, group, field, value string) Edit {
	return Edit{Object: ObjectLaneAccount, ID: lane, Group: group, Field: field, Value: value}
}

// SetScheduling sets a whole number of the scheduling settings.
func SetScheduling(field, value string) Edit {
	return Edit{Object: ObjectScheduling, Field: field, Value: value}
}

// SchedulingFields names the scheduling settings in the order of forms.
func SchedulingFields() []string { return numberNames(schedulingNumbers) }

// AccountFields names the whole numbers of what a lane holds in a pool group, in the order of forms.
func AccountFields() []string { return numberNames(accountNumbers) }

func numberNames[T any](list []number[T]) []string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = n.name
	}
	return out
}

// SetPool sets capacity_units, preference, paused, can_look_up, or one of the lists of a pool, whose members
// have commas between them: lane_minimums ("RECOVERY 2, PAID_SHARED 1"), dedicated_lanes (codes) and
// dedicated_tenants (ids).
func SetPool(key, field, value string) Edit {
	return Edit{Object: ObjectPool, ID: key, Field: field, Value: value}
}

// SetSwitch sets admission_open or scheduling_running.
func SetSwitch(field, value string) Edit {
	return Edit{Object: ObjectSwitches, Field: field, Value: value}
}

// Path is the place of the edited field, as in control.FieldError.Field and Change.Path.
func (e Edit) Path() string {
	switch e.Object {
	case ObjectTenant:
		return tenantPath(e.ID) + "." + e.Field
	case ObjectLane:
		return lanePath(e.ID) + "." + e.Field
	case ObjectLaneAccount:
		return accountPath(e.ID, e.Group) + "." + e.Field
	case ObjectPool:
		return poolPath(e.ID) + "." + e.Field
	}
	return string(e.Object) + "." + e.Field
}

// TenantFields names the fields that a tenant may have of its own, in the order of forms.
func TenantFields() []string {
	list := []string{"lane"}
	for _, n := range planNumbers {
		if _, ok := overrides[n.name]; ok {
			list = append(list, n.name)
		}
	}
	return list
}

// Limit is the range and unit of a number that can be edited.
type Limit struct {
	Min, Max int64
	Unit     Unit
}

// LimitOf returns the range of a whole number of an object; false when it has none of that name.
func LimitOf(kind ObjectKind, field string) (Limit, bool) {
	switch kind {
	case ObjectTenant, ObjectPlan:
		return limit(planNumbers, field)
	case ObjectLane:
		return limit(laneNumbers, field)
	case ObjectLaneAccount:
		return limit(accountNumbers, field)
	case ObjectPool:
		return limit(poolNumbers, field)
	case ObjectScheduling:
		return limit(schedulingNumbers, field)
	case ObjectLimits:
		return limit(limitNumbers, field)
	case ObjectPoolGroup:
		return limit(groupNumbers, field)
	case ObjectModel:
		return limit(modelNumbers, field)
	}
	return Limit{}, false
}

func limit[T any](list []number[T], field string) (Limit, bool) {
	n, ok := named(list, field)
	return Limit{n.min, n.max, n.unit}, ok
}

// Apply returns a copy of the document with the edits done, and what could not be read or found. It
// checks types, names and ranges of what was typed; whether the whole may be published is Validate's to say.
// The document is nil when there are errors.
func Apply(doc *Document, edits []Edit) (*Document, []control.FieldError) {
	f := &faults{}
	out := doc.Clone()
	seen := make(map[string]bool, len(edits))
	for _, e := range edits {
		path := e.Path()
		if seen[path] {
			f.add(path, KeyEditedTwice, nil)
			continue
		}
		seen[path] = true
		out.edit(f, path, e)
	}
	if list := f.all(); len(list) > 0 {
		return nil, list
	}
	out.Tenants = slices.DeleteFunc(out.Tenants, func(o TenantOverride) bool { return o.blank() })
	return out, nil
}

func (d *Document) edit(f *faults, path string, e Edit) {
	switch e.Object {
	case ObjectTenant:
		d.editTenant(f, path, e)
	case ObjectLane:
		if l, ok := d.Lane(e.ID); !ok {
			f.add(path, KeyUnknown, args{"value": Printable(e.ID, 80)})
		} else if at, isSwitch := laneSwitches[e.Field]; isSwitch {
			setBool(f, path, e, at(l))
		} else {
			setNumber(f, path, e, laneNumbers, l)
		}
	case ObjectLaneAccount:
		if l, ok := d.Lane(e.ID); !ok {
			f.add(path, KeyUnknown, args{"value": Printable(e.ID, 80)})
		} else if a, found := find(l.Accounts, func(a *LaneAccount) bool { return a.PoolGroup == e.Group }); !found {
			f.add(path, KeyUnknown, args{"value": Printable(e.Group, 80)})
		} else {
			editAccount(f, path, e, a)
		}
	case ObjectPool:
		if p, ok := d.Pool(e.ID); !ok {
			f.add(path, KeyUnknown, args{"value": Printable(e.ID, 200)})
		} else {
			editPool(f, path, e, p)
		}
	case ObjectScheduling:
		setNumber(f, path, e, schedulingNumbers, &d.Scheduling)
	case ObjectSwitches:
		if at, ok := switchFields[e.Field]; ok {
			setBool(f, path, e, at(&d.Switches))
		} else {
			f.add(path, KeyUnknownField, args{"value": Printable(e.Field, 80)})
		}
	default:
		f.add(path, KeyUnknownField, args{"value": Printable(string(e.Object), 80)})
	}
}

func setBool(f *faults, path string, e Edit, to *bool) {
	v, fault := ParseBool(path, e.Value)
	if fault != nil {
		f.add(fault.Field, fault.Key, fault.Args)
		return
	}
	*to = v
}

func setNumber[T any](f *faults, path string, e Edit, list []number[T], of *T) {
	n, ok := named(list, e.Field)
	if !ok {
		f.add(path, KeyUnknownField, args{"value": Printable(e.Field, 80)})
		return
	}
	if v, ok := readNumber(f, path, e.Value, n.min, n.max, n.unit); ok {
		*n.at(of) = v
	}
}

func readNumber(f *faults, path, text string, lo, hi int64, unit Unit) (int64, bool) {
	v, fault := ParseInt(path, text)
	if fault != nil {
		f.add(fault.Field, fault.Key, fault.Args)
		return 0, false
	}
	return v, f.whole(path, v, lo, hi, unit)
}

func (d *Document) editTenant(f *faults, path string, e Edit) {
	at, isNumber := overrides[e.Field]
	if !isNumber && e.Field != "lane" {
		f.add(path, KeyUnknownField, args{"value": Printable(e.Field, 80)})
		return
	}
	o, had := d.Override(e.Tenant.ID)
	if !had {
		o = &TenantOverride{TenantID: e.Tenant.ID, Code: e.Tenant.Code}
	}
	inForce, known := d.Effective(e.Tenant.PlanCode, e.Tenant.ID)
	switch {
	case e.Reset && isNumber:
		*at(o) = nil
	case e.Reset:
		o.Lane = nil
	case isNumber:
		n, _ := named(planNumbers, e.Field)
		v, ok := readNumber(f, path, e.Value, n.min, n.max, n.unit)
		if !ok {
			return
		}
		if !known || v != *n.at(&inForce) {
			*at(o) = &v
		}
	default:
		if _, ok := d.Lane(e.Value); !ok {
			f.add(path, KeyUnknown, args{"value": Printable(e.Value, 80)})
			return
		}
		if !known || e.Value != inForce.Lane {
			o.Lane = &e.Value
		}
	}
	if !had && !o.blank() {
		d.Tenants = append(d.Tenants, *o)
	}
}
