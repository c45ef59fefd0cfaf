package audit_test

import (
	"net/url"
	"reflect"
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // whatever the machine has

	"fairlane/audit"
)

// E13: the filter is the address.
func TestE13_AFilterGoesThroughAnAddress(t *testing.T) {
	t.Parallel()
	in := url.Values{
		"actor": {"操作员"}, "action": {"policy.publish"}, "object_kind": {"tenant"}, "object_id": {"acme"}, "field": {"weight"}, "result": {"OK"},
		"request_id": {"r-1"}, "text": {"促销 weekend"}, "version": {"8"}, "from": {"2026-08-10T00:00:00+05:30"}, "to": {"2026-08-11T00:00:00+05:30"},
	}
	f, wrong := audit.ParseFilter(in, time.UTC)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	again, err := url.ParseQuery(f.Values().Encode())
	if err != nil {
		t.Fatal(err)
	}
	g, wrong := audit.ParseFilter(again, time.UTC)
	if len(wrong) > 0 || !f.From.Equal(g.From) || !f.To.Equal(g.To) {
		t.Fatalf("%+v %v", g, wrong)
	}
	f.From, f.To, g.From, g.To = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	if !reflect.DeepEqual(f, g) {
		t.Errorf("%+v\n%+v", f, g)
	}
}

func TestTrap_D61_ADayIsTheReadersDay(t *testing.T) {
	t.Parallel()
	kolkata := time.FixedZone("", 5*3600+1800)
	for _, c := range []struct{ from, to, wantFrom, wantTo string }{
		{"2026-08-10", "2026-08-10", "2026-08-09T18:30:00Z", "2026-08-10T18:30:00Z"},
		{"2026-08-10T00:10", "2026-08-10T23:50:30", "2026-08-09T18:40:00Z", "2026-08-10T18:20:30Z"},
		{"2026-08-10T00:00:00Z", "2026-08-11T00:00:00Z", "2026-08-10T00:00:00Z", "2026-08-11T00:00:00Z"},
		{"2026-08-10T00:00:00 05:30", "2026-08-11T00:00:00+05:30", "2026-08-09T18:30:00Z", "2026-08-10T18:30:00Z"}, // + unescaped
	} {
		f, wrong := audit.ParseFilter(url.Values{"from": {c.from}, "to": {c.to}}, kolkata)
		if len(wrong) > 0 || f.From.UTC().Format(time.RFC3339) != c.wantFrom || f.To.UTC().Format(time.RFC3339) != c.wantTo {
			t.Errorf("%s to %s: %v %v %v", c.from, c.to, f.From.UTC(), f.To.UTC(), wrong)
		}
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	if f, _ := audit.ParseFilter(url.Values{"from": {"2026-10-25"}, "to": {"2026-10-25"}}, berlin); f.To.Sub(f.From) != 25*time.Hour {
		t.Errorf("the day on which clocks go back has 25 hours, not %v", f.To.Sub(f.From))
	}
}

func TestFiltersThatCannotBe(t *testing.T) {
	t.Parallel()
	_, wrong := audit.ParseFilter(url.Values{
		"actor": {"a\x00"}, "action": {"DROP"}, "object_kind": {"planet"}, "result": {"MAYBE"}, "version": {"-1"}, "from": {"yesterday"}, "to": {"99999-01-01"},
		"text": {string(make([]byte, 500))},
	}, time.UTC)
	var fields []string
	for _, w := range wrong {
		fields = append(fields, w.Field+" "+w.Key)
		for _, a := range audit.FilterArgs[w.Key] {
			if _, ok := w.Args[a]; !ok {
				t.Errorf("%s: argument %s is missing", w.Key, a)
			}
		}
	}
	want := []string{"actor control_characters", "text too_long", "action unknown", "object_kind unknown", "result unknown", "version not_a_number", "from not_a_date", "to not_a_date"}
	if !slices.Equal(fields, want) {
		t.Errorf("got %q", fields)
	}
	if _, wrong := audit.ParseFilter(url.Values{"from": {"2026-08-11"}, "to": {"2026-08-09"}}, time.UTC); len(wrong) != 1 || wrong[0].Field != "to" {
		t.Errorf("an end before the beginning: %v", wrong)
	}
}

func FuzzParseFilter(f *testing.F) {
	f.Add("actor=x&from=2026-08-10&to=2026-08-10&text=促销")
	f.Add("from=0000-00-00&version=99999999999999999999")
	f.Fuzz(func(t *testing.T, query string) {
		v, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		if a, wrong := audit.ParseFilter(v, time.UTC); len(wrong) == 0 {
			b, wrong := audit.ParseFilter(a.Values(), time.UTC)
			if len(wrong) > 0 || !a.From.Equal(b.From) || !a.To.Equal(b.To) || a.Text != b.Text || a.Actor != b.Actor {
				t.Errorf("%+v\n%+v\n%v", a, b, wrong)
			}
			a.Terms()
			a.Places()
		}
	})
}
