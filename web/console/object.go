package console

import (
	"context"
	"strings"

	"fairlane/control"
	"fairlane/policy"
	"fairlane/policy/access"
	"fairlane/views"
	"fairlane/views/page"
	"fairlane/views/part"
)

// object is something that can be edited, as one version of the policy has it.
type object struct {
	kind    views.Key
	title   string
	active  string // item of the navigation
	address string
	scope   access.Object
	facts   []page.Fact
	fields  []field
	causes  map[string]string // document paths of sums → the field that can mend them
}

// field is one setting of an object.
type field struct {
	name     string // in the form
	label    views.Key
	unit     policy.Unit
	isSwitch bool
	isText   bool      // not a number: as typed
	guide    views.Key // what to type; "" where that is plain
	value    string    // of numbers, in the version
	on       bool      // of switches, in the version
	own      bool      // a tenant's own value, not its plan's
	plan     string    // what the plan grants
	set      func(value string) policy.Edit
	reset    func() policy.Edit // nil where there is nothing to give back
}

// loader finds an object in a version of the document.
type loader func(ctx context.Context, doc *policy.Document) (object, error)

// placed tells each error to the field that it lies at, or that can mend it; the rest are general.
func (o object) placed(wrong []control.FieldError) (beside map[string][]control.FieldError, general []control.FieldError) {
	beside = map[string][]control.FieldError{}
	paths := map[string]string{}
	for _, f := range o.fields {
		paths[f.set("").Path()] = f.name
		paths[f.name] = f.name
	}
	for _, w := range wrong {
		name, ok := paths[w.Field]
		if !ok {
			name, ok = o.causes[w.Field]
		}
		if ok {
			beside[name] = append(beside[name], w)
		} else {
			general = append(general, w)
		}
	}
	return beside, general
}

// form is the page of the object with the form, filled with what is in force or with what was typed.
func (o object) form(ctx context.Context, version int64, t *typed, wrong []control.FieldError, mayEdit bool) page.Edit {
	beside, general := o.placed(wrong)
	e := page.Edit{
		Title: o.title, Kind: views.T(ctx, o.kind), Active: o.active, Address: o.address, Base: version,
		Facts: o.facts, MayEdit: mayEdit, Errors: sayAll(ctx, general),
	}
	if !mayEdit {
		e.WhyNot = views.T(ctx, "edit.why_not")
	}
	if t != nil {
		e.Reason = t.reason
	}
	focus := true
	for _, f := range o.fields {
		field := page.EditField{Plan: f.plan, Own: f.own && f.reset != nil, Current: f.current(ctx)}
		field.Field = part.Field{Name: f.name, Kind: "number", Label: views.T(ctx, f.label), Unit: labelUnit(ctx, f.unit), Value: f.value, Checked: f.on}
		switch {
		case f.isSwitch:
			field.Kind = "check"
		case f.isText:
			field.Kind = "text"
		case f.plan != "":
			field.Hint = f.hint(ctx)
		}
		if f.guide != "" {
			field.Hint = views.T(ctx, f.guide)
		}
		if t != nil {
			if t.values.Has(f.name) {
				field.Value, field.Checked = t.values.Get(f.name), t.values.Get(f.name) == "on"
			} else if t.values.Has(f.name + ".shown") {
				field.Checked = false
			}
			field.Resets = t.values.Get(f.name+".reset") == "on"
		}
		if list := beside[f.name]; len(list) > 0 {
			field.Error = strings.Join(sayRules(ctx, list), " ")
			field.Focus, focus = focus, false
		}
		e.Fields = append(e.Fields, field)
	}
	return e
}

func (f field) current(ctx context.Context) string {
	if f.isSwitch {
		return onOff(ctx, f.on)
	}
	if f.isText && f.value == "" {
		return "—"
	}
	n, fault := policy.ParseInt("", f.value)
	if fault != nil {
		return f.value
	}
	return number(ctx, n, f.unit)
}

func (f field) hint(ctx context.Context) string {
	if f.own {
		return views.T(ctx, "edit.own", "Plan", f.plan)
	}
	return views.T(ctx, "edit.from_plan")
}
