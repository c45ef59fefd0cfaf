package console

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"fairlane/control"
	"fairlane/policy"
	"fairlane/views/page"
)

// typed is a form as it came in. Fields that the form did not show are absent and stay as they are, so
// that a change can be carried over to a newer version.
type typed struct {
	base   int64
	from   string // the page that the form was on: "edit" or "preview"
	again  bool   // only the language or the theme was switched: show the same page again
	edit   bool   // back to the form
	reason string
	values url.Values
}

// carried are the fields of the form that are not settings.
var carried = []string{"base", "rebase", "at", "step", "reason", "set_lang", "set_theme"}

// readTyped reads the form. Broken numbers of versions and fields that the object does not have are named.
func readTyped(form url.Values, fields []field) (typed, []control.FieldError) {
	t := typed{
		from: form.Get("at"), again: form.Has("set_lang") || form.Has("set_theme"), edit: form.Get("step") == "edit",
		reason: form.Get("reason"), values: url.Values{},
	}
	base := form.Get("base")
	if form.Has("rebase") && !t.again {
		base = form.Get("rebase")
	}
	var wrong []control.FieldError
	number, fault := policy.ParseInt("base", base)
	if fault != nil {
		wrong = append(wrong, *fault)
	}
	t.base = number
	for name, values := range form {
		known := slices.Contains(carried, name)
		setting := strings.TrimSuffix(strings.TrimSuffix(name, ".shown"), ".reset")
		if !known && !slices.ContainsFunc(fields, func(f field) bool { return f.name == setting }) {
			wrong = append(wrong, control.FieldError{Field: policy.Printable(name, 80), Key: policy.KeyUnknownKey})
			continue
		}
		if len(values) > 1 {
			wrong = append(wrong, control.FieldError{Field: name, Key: policy.KeyEditedTwice})
		}
		if !known {
			t.values.Set(name, values[0])
		}
	}
	slices.SortFunc(wrong, func(a, b control.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return t, wrong
}

// edit returns what was typed into the field as an edit of the version that it came from; false when the
// field was not shown or says what is in force.
func (t typed) editOf(f field) (policy.Edit, bool) {
	if f.reset != nil && t.values.Get(f.name+".reset") == "on" {
		return f.reset(), true
	}
	value, present := t.values.Get(f.name), t.values.Has(f.name)
	if f.isSwitch {
		if !present && t.values.Has(f.name+".shown") {
			value, present = "off", true
		}
		if !present || (value == "on") == f.on && (value == "on" || value == "off") {
			return policy.Edit{}, false
		}
		return f.set(value), true
	}
	if !present || strings.Trim(value, " \t") == f.value {
		return policy.Edit{}, false
	}
	return f.set(value), true
}

// edits lists every change that was typed.
func (t typed) edits(fields []field) []policy.Edit {
	var list []policy.Edit
	for _, f := range fields {
		if e, changed := t.editOf(f); changed {
			list = append(list, e)
		}
	}
	return list
}

// hidden carries the changed fields, and only those, to the next step.
func (t typed) hidden(fields []field) []page.Hidden {
	var list []page.Hidden
	for _, f := range fields {
		if _, changed := t.editOf(f); !changed {
			continue
		}
		for _, name := range []string{f.name, f.name + ".shown", f.name + ".reset"} {
			if t.values.Has(name) {
				list = append(list, page.Hidden{Name: name, Value: t.values.Get(name)})
			}
		}
	}
	return list
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
