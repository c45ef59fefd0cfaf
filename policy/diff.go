package policy

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/google/uuid"
)

// ObjectKind is what kind of object of the document a difference or an edit is about.
type ObjectKind string

// The kinds of objects.
const (
	ObjectScheduling  ObjectKind = "scheduling"
	ObjectLane        ObjectKind = "lane"
	ObjectLaneAccount ObjectKind = "lane_account" // ID: lane code + "/" + pool group
	ObjectPoolGroup   ObjectKind = "pool_group"
	ObjectPlan        ObjectKind = "plan"
	ObjectTenant      ObjectKind = "tenant"
	ObjectPool        ObjectKind = "pool"
	ObjectModel       ObjectKind = "model"
	ObjectRouting     ObjectKind = "routing"
	ObjectLimits      ObjectKind = "limits"
	ObjectSwitches    ObjectKind = "switches"
	ObjectDocument    ObjectKind = "document"
)

// ChangeKind says what happened to the field or, with an empty Field, to the whole object.
type ChangeKind string

// The kinds of changes.
const (
	ChangeSet     ChangeKind = "set"
	ChangeAdded   ChangeKind = "added"
	ChangeRemoved ChangeKind = "removed"
)

// Change is one row of a difference: one field of one object. An object that came or went has one row
// with an empty Field and one for each of its fields.
type Change struct {
	Object ObjectKind
	ID     string // the object's code or key; "" where there is only one
	Name   string // for people; the tenant's name, else ID
	Field  string
	Path   string // as in control.FieldError.Field
	Unit   Unit
	Kind   ChangeKind

	// Before and After are bool, int64, float64, string, []string, []int64, or nil where the object
	// was not there. For tenants they are what was and is in force: its own value or its plan's.
	Before, After any

	// OwnBefore and OwnAfter tell, for tenants, whether the value was and is the tenant's own.
	OwnBefore, OwnAfter bool

	// Share of the tenant in its home lane, or of the lane among lanes, by weight, in permille.
	// Set on rows of weights, and of a tenant's lane.
	Shares                  bool
	ShareBefore, ShareAfter int64
}

// Diff lists field by field what tells after from before, in the order of the document; nothing when they
// say the same. tenants give names, plans and shares; a tenant that is not among them is compared by its
// own values alone. Both documents must pass Validate: of duplicates only the first is seen.
func Diff(before, after *Document, tenants []Tenant) []Change {
	d := &differ{old: newIndex(before), now: newIndex(after)}
	d.scalar("schema", int64(before.Schema), int64(after.Schema))
	d.whole(ObjectScheduling, "scheduling", fieldsOf(schedulingNumbers, nil, &before.Scheduling), fieldsOf(schedulingNumbers, nil, &after.Scheduling))
	d.lanes()
	d.order("lanes", codes(before.Lanes, laneCode), codes(after.Lanes, laneCode))
	pairs(d, ObjectPoolGroup, before.PoolGroups, after.PoolGroups, func(g *PoolGroup) string { return g.Code }, groupPath,
		func(g *PoolGroup) []value { return fieldsOf(groupNumbers, nil, g) })
	pairs(d, ObjectPlan, before.Plans, after.Plans, func(p *Plan) string { return p.Code }, planPath, planFields)
	d.tenants(tenants)
	pairs(d, ObjectPool, before.Pools, after.Pools, poolKey, poolPath, d.poolFields(tenants))
	d.order("pools", codes(before.Pools, poolKey), codes(after.Pools, poolKey))
	pairs(d, ObjectModel, before.Models, after.Models, func(m *Model) string { return m.Code }, modelPath,
		func(m *Model) []value { return fieldsOf(modelNumbers, modelOthers, m) })
	pairs(d, ObjectRouting, before.Routing, after.Routing, routeKey, routePath,
		func(r *RoutingRule) []value { return []value{{name: "lane", v: r.Lane}} })
	d.order("routing", codes(before.Routing, routeKey), codes(after.Routing, routeKey))
	d.whole(ObjectLimits, "limits", fieldsOf(limitNumbers, limitOthers, &before.Limits), fieldsOf(limitNumbers, limitOthers, &after.Limits))
	d.whole(ObjectSwitches, "switches", fieldsOf(nil, switchOthers, &before.Switches), fieldsOf(nil, switchOthers, &after.Switches))
	return d.rows
}

type value struct {
	name string
	unit Unit
	v    any
}

type differ struct {
	old, now *index
	rows     []Change
}

func laneCode(l *Lane) string { return l.Code }
func poolKey(p *Pool) string  { return p.Key }

func fieldsOf[T any](nums []number[T], rest []other[T], of *T) []value {
	list := make([]value, 0, len(nums)+len(rest))
	for _, n := range nums {
		list = append(list, value{n.name, n.unit, *n.at(of)})
	}
	for _, o := range rest {
		list = append(list, value{o.name, o.unit, o.get(of)})
	}
	return list
}

func planFields(p *Plan) []value {
	list := []value{{name: "settings.lane", v: p.Settings.Lane}}
	for _, v := range fieldsOf(planNumbers, nil, &p.Settings) {
		v.name = "settings." + v.name
		list = append(list, v)
	}
	return append(list, value{name: "models", v: p.Models})
}

func (d *differ) scalar(path string, before, after any) {
	if !same(before, after) {
		d.rows = append(d.rows, Change{Object: ObjectDocument, Field: path, Path: path, Kind: ChangeSet, Before: before, After: after})
	}
}

// whole compares an object that is always there.
func (d *differ) whole(kind ObjectKind, path string, before, after []value) {
	for i, b := range before {
		if a := after[i]; !same(b.v, a.v) {
			d.rows = append(d.rows, Change{Object: kind, Field: b.name, Path: path + "." + b.name, Unit: b.unit, Kind: ChangeSet, Before: b.v, After: a.v})
		}
	}
}

// object compares one object; nil fields mean that it was not, or is no longer, there.
func (d *differ) object(kind ObjectKind, id, path string, before, after []value) {
	row := Change{Object: kind, ID: id, Name: id, Path: path, Kind: ChangeSet}
	switch {
	case before == nil && after == nil:
		return
	case before == nil:
		row.Kind = ChangeAdded
		d.rows = append(d.rows, row)
		for _, a := range after {
			d.rows = append(d.rows, row.field(a, nil, a.v))
		}
	case after == nil:
		row.Kind = ChangeRemoved
		d.rows = append(d.rows, row)
		for _, b := range before {
			d.rows = append(d.rows, row.field(b, b.v, nil))
		}
	default:
		for i, b := range before {
			if a := after[i]; !same(b.v, a.v) {
				d.rows = append(d.rows, row.field(b, b.v, a.v))
			}
		}
	}
}

func (c Change) field(f value, before, after any) Change {
	c.Field, c.Path, c.Unit, c.Before, c.After = f.name, c.Path+"."+f.name, f.unit, before, after
	return c
}

// poolFields are a pool's fields, with the codes of the tenants to whom it is dedicated where they are known.
func (d *differ) poolFields(tenants []Tenant) func(*Pool) []value {
	known := keyed(tenants, func(t *Tenant) uuid.UUID { return t.ID })
	return func(p *Pool) []value {
		list := fieldsOf(poolNumbers, poolOthers, p)
		ids := list[len(list)-1].v.([]string)
		for i, id := range p.DedicatedTenants {
			if t, ok := known[id]; ok {
				ids[i] = t.Code
			}
		}
		return list
	}
}

// pairs compares two lists of objects by their code: those of now in their order, then those that went.
func pairs[T any](d *differ, kind ObjectKind, old, now []T, key func(*T) string, path func(string) string, fields func(*T) []value) {
	before, after := keyed(old, key), keyed(now, key)
	for _, k := range union(codes(now, key), codes(old, key)) {
		var b, a []value
		if o, ok := before[k]; ok {
			b = fields(o)
		}
		if n, ok := after[k]; ok {
			a = fields(n)
		}
		d.object(kind, k, path(k), b, a)
	}
}

func (d *differ) lanes() {
	sharesBefore, sharesAfter := LaneShares(d.old.doc), LaneShares(d.now.doc)
	for _, code := range union(codes(d.now.doc.Lanes, laneCode), codes(d.old.doc.Lanes, laneCode)) {
		o, n := d.old.lanes[code], d.now.lanes[code]
		var b, a []value
		var accountsBefore, accountsAfter []LaneAccount
		if o != nil {
			b, accountsBefore = fieldsOf(laneNumbers, laneOthers, o), o.Accounts
		}
		if n != nil {
			a, accountsAfter = fieldsOf(laneNumbers, laneOthers, n), n.Accounts
		}
		from := len(d.rows)
		d.object(ObjectLane, code, lanePath(code), b, a)
		for i := from; i < len(d.rows); i++ {
			if r := &d.rows[i]; r.Field == "weight" {
				r.Shares, r.ShareBefore, r.ShareAfter = true, sharesBefore[code], sharesAfter[code]
			}
		}
		from = len(d.rows)
		pairs(d, ObjectLaneAccount, accountsBefore, accountsAfter, func(a *LaneAccount) string { return a.PoolGroup },
			func(g string) string { return accountPath(code, g) },
			func(a *LaneAccount) []value { return fieldsOf(accountNumbers, accountOthers, a) })
		for i := from; i < len(d.rows); i++ {
			d.rows[i].ID = code + "/" + d.rows[i].ID
			d.rows[i].Name = d.rows[i].ID
		}
	}
}

// order tells of a list whose order means something: of the objects that are in both, other order.
func (d *differ) order(path string, old, now []string) {
	both := func(list, in []string) []string {
		has := map[string]bool{}
		for _, c := range in {
			has[c] = true
		}
		var kept []string
		for _, c := range list {
			if has[c] {
				kept = append(kept, c)
			}
		}
		return kept
	}
	if !slices.Equal(both(old, now), both(now, old)) {
		d.rows = append(d.rows, Change{Object: ObjectDocument, Field: path + ".order", Path: path, Kind: ChangeSet, Before: old, After: now})
	}
}

func (d *differ) tenants(tenants []Tenant) {
	known := keyed(tenants, func(t *Tenant) uuid.UUID { return t.ID })
	var moved []Tenant
	for _, id := range union(overriders(d.now.doc), overriders(d.old.doc)) {
		o, n := d.old.overrides[id], d.now.overrides[id]
		if reflect.DeepEqual(o, n) {
			continue
		}
		t, ok := known[id]
		if !ok {
			t = &Tenant{ID: id, Name: ""}
		}
		who := *t
		if who.Code == "" {
			who.Code = codeOf(o, n)
		}
		moved = append(moved, who)
	}
	if len(moved) == 0 {
		return
	}
	slices.SortStableFunc(moved, func(a, b Tenant) int { return cmp.Compare(a.Code, b.Code) })
	before, after := Shares(d.old.doc, tenants), Shares(d.now.doc, tenants)
	for _, t := range moved {
		d.tenant(t, before[t.ID], after[t.ID])
	}
}

func (d *differ) tenant(t Tenant, shareBefore, shareAfter int64) {
	row := Change{Object: ObjectTenant, ID: t.Code, Name: cmp.Or(t.Name, t.Code), Path: tenantPath(t.Code), Kind: ChangeSet}
	b, a := d.old.settings(t), d.now.settings(t)
	for i := range b {
		if !b[i].own && !a[i].own || b[i].own == a[i].own && same(b[i].v, a[i].v) {
			continue // what the plan changed is a row of the plan
		}
		r := row.field(b[i].value, b[i].v, a[i].v)
		r.OwnBefore, r.OwnAfter = b[i].own, a[i].own
		if t.Active() && (r.Field == "weight" || r.Field == "lane") {
			r.Shares, r.ShareBefore, r.ShareAfter = true, shareBefore, shareAfter
		}
		d.rows = append(d.rows, r)
	}
	if o, n := d.old.overrides[t.ID], d.now.overrides[t.ID]; o != nil && n != nil && o.Code != n.Code && !o.blank() && !n.blank() {
		d.rows = append(d.rows, row.field(value{name: "code"}, o.Code, n.Code))
	}
}

type setting struct {
	value
	own bool
}

// settings are the fields that a tenant may have of its own, as they are in force.
func (x *index) settings(t Tenant) []setting {
	s, known := x.effective(t)
	o := x.overrides[t.ID]
	if o == nil {
		o = &TenantOverride{}
	}
	pick := func(name string, unit Unit, v any, own bool) setting {
		if !own && !known {
			v = nil
		}
		return setting{value{name, unit, v}, own}
	}
	if !known {
		s = o.Over(TenantSettings{})
	}
	list := []setting{pick("lane", UnitNone, s.Lane, o.Lane != nil)}
	for _, n := range planNumbers {
		if at, ok := overrides[n.name]; ok {
			list = append(list, pick(n.name, n.unit, *n.at(&s), *at(o) != nil))
		}
	}
	return list
}

func codeOf(list ...*TenantOverride) string {
	for _, o := range list {
		if o != nil {
			return o.Code
		}
	}
	return ""
}

func overriders(d *Document) []uuid.UUID {
	ids := make([]uuid.UUID, len(d.Tenants))
	for i := range d.Tenants {
		ids[i] = d.Tenants[i].TenantID
	}
	return ids
}

func codes[T any](list []T, key func(*T) string) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = key(&list[i])
	}
	return out
}

// union lists each element once, those of a first.
func union[K comparable](a, b []K) []K {
	seen := make(map[K]bool, len(a)+len(b))
	var out []K
	for _, list := range [][]K{a, b} {
		for _, k := range list {
			if !seen[k] {
				seen[k] = true
				out = append(out, k)
			}
		}
	}
	return out
}

func same(a, b any) bool {
	switch x := a.(type) {
	case []string:
		y, ok := b.([]string)
		return ok && slices.Equal(x, y)
	case []int64:
		y, ok := b.([]int64)
		return ok && slices.Equal(x, y)
	}
	return a == b
}
