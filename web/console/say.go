package console

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"fairlane/control"
	"fairlane/policy"
	"fairlane/views"
	"fairlane/views/page"
	"fairlane/views/part"
)

// sayRules says broken rules without their places, for beside the field.
func sayRules(ctx context.Context, wrong []control.FieldError) []string {
	list := make([]string, 0, len(wrong))
	for _, w := range wrong {
		list = append(list, views.Rule(ctx, w.Key, w.Args))
	}
	return list
}

// sayAll says broken rules with their places, for the top of a form.
func sayAll(ctx context.Context, wrong []control.FieldError) []string {
	list := sayRules(ctx, wrong)
	for i, w := range wrong {
		if w.Field != "" && w.Key != policy.KeyNothingChanged {
			list[i] = w.Field + ": " + list[i]
		}
	}
	return list
}

func unitWord(ctx context.Context, u policy.Unit) string { return views.Unit(ctx, string(u)) }

// labelUnit is the unit beside a label; labels of counted tasks say it themselves.
func labelUnit(ctx context.Context, u policy.Unit) string {
	if u == policy.UnitTasks {
		return ""
	}
	return unitWord(ctx, u)
}

func onOff(ctx context.Context, on bool) string {
	if on {
		return views.T(ctx, "word.on")
	}
	return views.T(ctx, "word.off")
}

// number writes a whole number as its unit is written.
func number(ctx context.Context, n int64, u policy.Unit) string {
	switch u {
	case policy.UnitMicro:
		return views.Money(ctx, n)
	case policy.UnitSeconds:
		return views.Duration(ctx, time.Duration(min(n, policy.MaxSeconds))*time.Second)
	}
	return views.Int(n)
}

// value writes what a change holds.
func value(ctx context.Context, v any, u policy.Unit) string {
	switch v := v.(type) {
	case nil:
		return "—"
	case bool:
		return onOff(ctx, v)
	case int64:
		return number(ctx, v, u)
	case float64:
		return views.Float(v)
	case string:
		if v == "" {
			return "—"
		}
		return v
	case []string:
		return strings.Join(v, ", ")
	case []int64:
		parts := make([]string, len(v))
		for i, n := range v {
			parts[i] = number(ctx, n, u)
		}
		return strings.Join(parts, ", ")
	}
	return fmt.Sprint(v)
}

// fieldWord says a field's name; an object that came or went has none.
func fieldWord(ctx context.Context, c policy.Change) string {
	if c.Field == "" {
		return views.T(ctx, views.Key("change."+string(c.Kind)))
	}
	text := views.Word(ctx, "field", strings.TrimPrefix(c.Field, "settings."))
	if unit := labelUnit(ctx, c.Unit); unit != "" && c.Unit != policy.UnitSeconds && c.Unit != policy.UnitMicro {
		text += " (" + unit + ")"
	}
	return text
}

func objectWord(ctx context.Context, kind policy.ObjectKind) string {
	return views.T(ctx, views.Key("object."+string(kind)))
}

// diffRows says changes in the reader's language.
func diffRows(ctx context.Context, changes []policy.Change) []part.DiffRow {
	rows := make([]part.DiffRow, 0, len(changes))
	for _, c := range changes {
		row := part.DiffRow{
			Object: c.Name, ObjectKind: objectWord(ctx, c.Object), Field: fieldWord(ctx, c), Path: c.Path,
			Before: value(ctx, c.Before, c.Unit), After: value(ctx, c.After, c.Unit),
		}
		if c.Object == policy.ObjectTenant && c.Field != "" {
			row.Before, row.After = fromPlan(ctx, row.Before, c.OwnBefore), fromPlan(ctx, row.After, c.OwnAfter)
		}
		if c.Shares {
			row.ShareBefore, row.ShareAfter = views.Percent(float64(c.ShareBefore)/1000), views.Percent(float64(c.ShareAfter)/1000)
		}
		rows = append(rows, row)
	}
	return rows
}

func fromPlan(ctx context.Context, text string, own bool) string {
	if own {
		return text
	}
	return views.T(ctx, "diff.from_plan", "Value", text)
}

// rawRows writes the changed places as the document does.
func rawRows(changes []policy.Change) []page.RawRow {
	rows := make([]page.RawRow, 0, len(changes))
	for _, c := range changes {
		rows = append(rows, page.RawRow{Path: c.Path, Before: raw(c.Before), After: raw(c.After)})
	}
	return rows
}

func raw(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}
