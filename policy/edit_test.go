package policy_test

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"fairlane/control"
	"fairlane/policy"
)

func itoa(v int64) string { return strconv.FormatInt(v, 10) }

func TestParseInt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want int64
		key  string
	}{
		{"0", 0, ""}, {"12", 12, ""}, {"  7 ", 7, ""}, {"007", 7, ""}, {"-0", 0, ""}, {"9223372036854775807", 9223372036854775807, ""},
		{"", 0, policy.KeyRequired}, {"   ", 0, policy.KeyRequired},
		{"-1", 0, policy.KeyNegative}, {"-99999999999999999999", 0, policy.KeyNegative},
		{"1.5", 0, policy.KeyNotWhole}, {"1e3", 0, policy.KeyNotWhole}, {"-1.5", 0, policy.KeyNotWhole}, {"+5", 0, policy.KeyNotWhole},
		{"NaN", 0, policy.KeyNotANumber}, {"Infinity", 0, policy.KeyNotANumber}, {"0x10", 0, policy.KeyNotANumber}, {"1,000", 0, policy.KeyNotANumber},
		{"1 000", 0, policy.KeyNotANumber}, {"drei", 0, policy.KeyNotANumber}, {"<b>1</b>", 0, policy.KeyNotANumber}, {"--1", 0, policy.KeyNotANumber},
		{"１２", 0, policy.KeyFullWidth}, {"１.5", 0, policy.KeyFullWidth}, {"-１", 0, policy.KeyFullWidth}, {"٣", 0, policy.KeyFullWidth},
		{"9223372036854775808", 0, policy.KeyTooLarge}, {strings.Repeat("9", 5_000), 0, policy.KeyTooLarge}, {strings.Repeat("x", 5_000), 0, policy.KeyNotANumber},
		{"1\x002", 0, policy.KeyControlCharacters}, {"1\n", 0, policy.KeyControlCharacters}, {"\xff", 0, policy.KeyNotANumber},
	} {
		got, fault := policy.ParseInt("f", c.text)
		key := ""
		if fault != nil {
			key = fault.Key
			if fault.Field != "f" {
				t.Errorf("%q: field %q", c.text, fault.Field)
			}
			for _, name := range policy.MessageArgs[key] {
				if _, ok := fault.Args[name]; !ok {
					t.Errorf("%q: argument %s of %s is missing", c.text, name, key)
				}
			}
		}
		if got != c.want || key != c.key {
			t.Errorf("%.20q: got %d %q, want %d %q", c.text, got, key, c.want, c.key)
		}
	}
}

func FuzzParseInt(f *testing.F) {
	for _, s := range []string{"12", "-1", "1.5", "１２", "NaN", "", "9223372036854775808", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, fault := policy.ParseInt("f", text)
		if fault == nil {
			if plain := strings.TrimLeft(strings.TrimPrefix(strings.Trim(text, " \t"), "-"), "0"); v < 0 || plain != "" && plain != itoa(v) {
				t.Errorf("%q read as %d", text, v)
			}
			return
		}
		if v != 0 || policy.MessageArgs[fault.Key] == nil {
			t.Errorf("%q: %d with %v", text, v, fault)
		}
		for _, a := range fault.Args {
			if s, ok := a.(string); ok && (!utf8.ValidString(s) || utf8.RuneCountInString(s) > 41 || strings.ContainsAny(s, "\x00\n\x1b")) {
				t.Errorf("%q comes back as %q", text, s)
			}
		}
	})
}

func TestApplyEditsACopy(t *testing.T) {
	t.Parallel()
	d, ts := sample(), tenants(4)
	before, err := policy.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	out := apply(t, d,
		policy.SetTenant(ts[2], "max_running_units", "12"), policy.SetLane(control.LanePaid, "weight", "5"), policy.SetLane(control.LanePaid, "paused", "true"),
		policy.SetLaneReserved(control.LanePaid, "default", "10"), policy.SetPool("provider:google:p1:us:veo4k", "paused", "on"),
		policy.SetSwitch("admission_open", "false"), policy.SetSwitch("scheduling_running", "off"))
	if len(policy.Diff(d, out, ts)) != 7 {
		t.Errorf("seven edits: %+v", policy.Diff(d, out, ts))
	}
	after, err := policy.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("the document that was given is changed")
	}
}

func TestApplyNamesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	ts := tenants(4)
	edits := []policy.Edit{
		policy.SetTenant(ts[0], "weight", "abc"), policy.SetTenant(ts[0], "colour", "1"), policy.SetTenant(ts[1], "weight", "1000001"),
		policy.SetTenant(ts[0], "lane", "GONE"), policy.SetTenant(ts[2], "weight", "1"), policy.SetTenant(ts[2], "weight", "2"),
		policy.SetLane("GONE", "weight", "1"), policy.SetLane(control.LanePaid, "paused", "maybe"), policy.SetLane(control.LanePaid, "code", "x"),
		policy.SetLaneReserved(control.LanePaid, "gone", "1"), policy.SetLaneReserved(control.LanePaid, "default", ""),
		policy.SetPool("gone", "capacity_units", "1"), policy.SetPool("provider:google:p1:us:veo4k", "capacity_units", "１２"),
		policy.SetSwitch("gravity", "on"), {Object: policy.ObjectModel, ID: "gen4", Field: "slot_units", Value: "1"},
	}
	out, wrong := policy.Apply(sample(), edits)
	if out != nil {
		t.Error("a document beside errors")
	}
	want := []string{
		"tenants[t-0000].weight not_a_number", "tenants[t-0000].colour unknown_field", "tenants[t-0001].weight range", "tenants[t-0000].lane unknown",
		"tenants[t-0002].weight edited_twice", "lanes[GONE].weight unknown", "lanes[PAID_SHARED].paused not_a_bool", "lanes[PAID_SHARED].code unknown_field",
		"lanes[PAID_SHARED].accounts[gone].reserved_units unknown", "lanes[PAID_SHARED].accounts[default].reserved_units required",
		"pools[gone].capacity_units unknown", "pools[provider:google:p1:us:veo4k].capacity_units full_width_digits", "switches.gravity unknown_field", "model.slot_units unknown_field",
	}
	var got []string
	for _, e := range wrong {
		got = append(got, e.Field+" "+e.Key)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestAFormThatChangesNothingMakesNoOverride(t *testing.T) {
	t.Parallel()
	d, ts := sample(), tenants(4)
	s, _ := d.Effective(ts[0].PlanCode, ts[0].ID)
	out := apply(t, d, policy.SetTenant(ts[0], "weight", itoa(s.Weight)), policy.SetTenant(ts[0], "lane", s.Lane))
	if len(out.Tenants) != 0 {
		t.Errorf("overrides %+v", out.Tenants)
	}
	own := apply(t, d, policy.SetTenant(ts[0], "weight", "9"))
	if back := apply(t, own, policy.ResetTenant(ts[0], "weight")); len(back.Tenants) != 0 {
		t.Errorf("an override that says nothing is kept: %+v", back.Tenants)
	}
}

func TestEveryEditableFieldHasALimit(t *testing.T) {
	t.Parallel()
	for _, f := range policy.TenantFields() {
		if l, ok := policy.LimitOf(policy.ObjectTenant, f); f != "lane" && (!ok || l.Max <= l.Min || l.Unit == "") {
			t.Errorf("%s: %+v %v", f, l, ok)
		}
	}
	if len(policy.TenantFields()) != reflect.TypeFor[policy.TenantOverride]().NumField()-2 {
		t.Error("a field of the override cannot be edited")
	}
}
