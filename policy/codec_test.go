package policy_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlane/control"
	"fairlane/policy"
)

func encode(t *testing.T, d *policy.Document) string {
	t.Helper()
	b, err := policy.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDecodeRefusesWhatItWouldHaveToGuess(t *testing.T) {
	t.Parallel()
	text := encode(t, sample())
	for _, c := range []struct{ name, from, to, field, key string }{
		{"unknown key", `"schema":2`, `"schema":2,"colour":2`, "colour", policy.KeyUnknownKey},
		{"other case", `"switches":`, `"Switches":`, "Switches", policy.KeyUnknownKey},
		{"missing switch", `"admission_open":true,"scheduling_running":true`, `"admission_open":true`, "switches.scheduling_running", policy.KeyMissing},
		{"doubled key", `"schema":2`, `"schema":2,"schema":2`, "schema", policy.KeyDuplicateKey},
		{"doubled deep", `"burst_rounds":20`, `"burst_rounds":20,"burst_rounds":9`, "scheduling.burst_rounds", policy.KeyDuplicateKey},
		{"missing lending", `"headroom_units":0,`, ``, "lanes[0].accounts[0].headroom_units", policy.KeyMissing},
		{"missing minimums", `"lane_minimums":[],`, ``, "pools[0].lane_minimums", policy.KeyMissing},
		{"null minimums", `"lane_minimums":[]`, `"lane_minimums":null`, "pools[0].lane_minimums", policy.KeyNull},
		{"fraction lent", `"lendable_units":0`, `"lendable_units":0.5`, "lanes[0].accounts[0].lendable_units", policy.KeyNotWhole},
		{"bad dedicated tenant", `"dedicated_tenants":[]`, `"dedicated_tenants":["acme"]`, "pools[0].dedicated_tenants[0]", policy.KeyWrongType},
		{"null", `"burst_rounds":20`, `"burst_rounds":null`, "scheduling.burst_rounds", policy.KeyNull},
		{"null list", `"parents":[]`, `"parents":null`, "pools[0].parents", policy.KeyNull},
		{"text for number", `"burst_rounds":20`, `"burst_rounds":"20"`, "scheduling.burst_rounds", policy.KeyWrongType},
		{"number for text", `"code":"gen4"`, `"code":4`, "models[0].code", policy.KeyWrongType},
		{"number for switch", `"scheduling_running":true`, `"scheduling_running":1`, "switches.scheduling_running", policy.KeyWrongType},
		{"list for object", `"switches":{"admission_open":true,"scheduling_running":true}`, `"switches":[1,{"a":[]}]`, "switches", policy.KeyWrongType},
		{"fraction", `"burst_rounds":20`, `"burst_rounds":20.5`, "scheduling.burst_rounds", policy.KeyNotWhole},
		{"exponent", `"burst_rounds":20`, `"burst_rounds":2e1`, "scheduling.burst_rounds", policy.KeyNotWhole},
		{"huge", `"burst_rounds":20`, `"burst_rounds":99999999999999999999`, "scheduling.burst_rounds", policy.KeyTooLarge},
		{"huge real", `"safe_utilisation":0.75`, `"safe_utilisation":1e999`, "limits.safe_utilisation", policy.KeyTooLarge},
		{"trailing", `"scheduling_running":true}}`, `"scheduling_running":true}} {}`, "document", policy.KeyTrailingData},
		{"trailing junk", `"scheduling_running":true}}`, `"scheduling_running":true}}x`, "document", policy.KeyTrailingData},
		{"cut", `"scheduling_running":true}}`, `"scheduling_running":tr`, "document", policy.KeyBadJSON},
		{"NaN", `"safe_utilisation":0.75`, `"safe_utilisation":NaN`, "document", policy.KeyBadJSON},
		{"deep", `"schema":2`, `"schema":2,"x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40), "document", policy.KeyTooDeep},
		{"not UTF-8", `"code":"gen4"`, "\"code\":\"gen\xff\"", "document", policy.KeyBadText},
		{"bad id", `"tenants":[]`, `"tenants":[{"tenant_id":"x","code":"a"}]`, "tenants[0].tenant_id", policy.KeyWrongType},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(text, c.from) {
				t.Fatalf("the sample lacks %s", c.from)
			}
			_, err := policy.Decode([]byte(strings.Replace(text, c.from, c.to, 1)))
			var e *control.Error
			if !errors.As(err, &e) || e.Code != control.CodeInvalid {
				t.Fatalf("got %v", err)
			}
			if !slices.ContainsFunc(e.Fields, func(f control.FieldError) bool { return f.Field == c.field && f.Key == c.key }) {
				t.Errorf("want %s at %s, got %v", c.key, c.field, e.Fields)
			}
		})
	}
	if _, err := policy.Decode(make([]byte, policy.MaxDocumentBytes+1)); control.CodeOf(err) != control.CodeTooLarge {
		t.Errorf("too large: %v", err)
	}
	if _, err := policy.Decode(nil); control.CodeOf(err) != control.CodeInvalid {
		t.Errorf("nothing: %v", err)
	}
}

func TestEncodeIsTheSameWhateverTheOrderOfTenants(t *testing.T) {
	t.Parallel()
	d, ts := sample(), tenants(4)
	for _, i := range []int{3, 0, 2} {
		d.Tenants = append(d.Tenants, override(ts, i, policy.TenantOverride{Weight: value(int64(i))}))
	}
	one := encode(t, d)
	slices.Reverse(d.Tenants)
	d.Routing = append([]policy.RoutingRule(nil), d.Routing...)
	if two := encode(t, d); one != two {
		t.Errorf("%s\n%s", one, two)
	}
	if policy.Digest([]byte(one)) == policy.Digest([]byte(one+" ")) {
		t.Error("the digest does not tell")
	}
	if strings.Contains(encode(t, sample()), "null") {
		t.Error("null in an encoded document")
	}
}

func TestEncodeRefusesNaN(t *testing.T) {
	t.Parallel()
	d := sample()
	d.Models[0].MeanSeconds = math.NaN()
	if _, err := policy.Encode(d); err == nil {
		t.Error("NaN is written")
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	ts := tenants(8)
	rapid.Check(t, func(t *rapid.T) {
		d := change(t, sample(), ts)
		one, err := policy.Encode(d)
		if err != nil {
			t.Fatal(err)
		}
		back, err := policy.Decode(one)
		if err != nil {
			t.Fatal(err)
		}
		two, err := policy.Encode(back)
		if err != nil {
			t.Fatal(err)
		}
		if string(one) != string(two) || len(policy.Diff(d, back, ts)) != 0 {
			t.Fatalf("%s\n%s", one, two)
		}
		again, err := policy.Decode(two)
		if err != nil || !reflect.DeepEqual(back, again) {
			t.Fatal("decoding twice differs")
		}
	})
}

func FuzzDecode(f *testing.F) {
	text, err := policy.Encode(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	for _, s := range []string{`{}`, `[]`, `null`, `{"schema":1}`, `{"schema":0,"lanes":[{}]}`, `{"tenants":[{"tenant_id":"00000000-0000-0000-0000-000000000000","weight":1}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := policy.Decode(data)
		if err != nil {
			if d != nil || control.CodeOf(err) == "" {
				t.Errorf("%v with %v", d, err)
			}
			return
		}
		policy.Validate(d, nil)
		one, err := policy.Encode(d)
		if err != nil {
			t.Fatal(err)
		}
		back, err := policy.Decode(one)
		if err != nil {
			t.Fatalf("%s: %v", one, err)
		}
		if two, err := policy.Encode(back); err != nil || string(one) != string(two) {
			t.Errorf("%s\n%s\n%v", one, two, err)
		}
	})
}
