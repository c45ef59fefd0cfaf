package policy_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlane/control"
	"fairlane/policy"
)

func apply(t *testing.T, d *policy.Document, edits ...policy.Edit) *policy.Document {
	t.Helper()
	out, wrong := policy.Apply(d, edits)
	wantNone(t, wrong)
	return out
}

// E02: two edits are exactly two rows, with names, units, and the share before and after.
func TestE02_TwoEditsAreTwoRows(t *testing.T) {
	t.Parallel()
	d, ts := sample(), tenants(8) // t-0001 and t-0005 are the lane's tenants, weight 2 each
	after := apply(t, d, policy.SetTenant(ts[1], "weight", "6"), policy.SetPool("provider:google:p1:us:veo4k", "capacity_units", "24"))
	rows := policy.Diff(d, after, ts)
	if len(rows) != 2 {
		t.Fatalf("want 2 rows, got %+v", rows)
	}
	want := policy.Change{
		Object: policy.ObjectTenant, ID: "t-0001", Name: "租户 t-0001", Field: "weight", Path: "tenants[t-0001].weight", Unit: policy.UnitWeight,
		Kind: policy.ChangeSet, Before: int64(2), After: int64(6), OwnAfter: true, Shares: true, ShareBefore: 500, ShareAfter: 750,
	}
	if !reflect.DeepEqual(rows[0], want) {
		t.Errorf("got  %+v\nwant %+v", rows[0], want)
	}
	if r := rows[1]; r.Path != "pools[provider:google:p1:us:veo4k].capacity_units" || r.Before != int64(32) || r.After != int64(24) || r.Unit != policy.UnitSlots {
		t.Errorf("pool row %+v", r)
	}
}

func TestLaneMoveShowsBothShares(t *testing.T) {
	t.Parallel()
	d, ts := sample(), tenants(8)
	rows := policy.Diff(d, apply(t, d, policy.SetTenant(ts[0], "lane", control.LaneStandard)), ts)
	if len(rows) != 1 || rows[0].Field != "lane" || rows[0].ShareBefore != 500 || rows[0].ShareAfter != 667 {
		t.Errorf("4 of 8 in the old lane, 4 of 6 in the new: %+v", rows)
	}
}

func TestSuspendedTenantsHaveNoShare(t *testing.T) {
	t.Parallel()
	d, ts := sample(), tenants(8)
	ts[5].Status = policy.TenantSuspended
	if s := policy.Shares(d, ts); s[ts[1].ID] != 1000 || s[ts[5].ID] != 0 {
		t.Errorf("shares %v", s)
	}
}

func TestResetIsARowThoughTheValueStays(t *testing.T) {
	t.Parallel()
	d, ts := sample(), tenants(4)
	own := apply(t, d, policy.SetTenant(ts[0], "weight", "9"))
	same := apply(t, own, policy.SetTenant(ts[0], "weight", "4")) // the plan's value, now its own
	rows := policy.Diff(same, apply(t, same, policy.ResetTenant(ts[0], "weight")), ts)
	if len(rows) != 1 || rows[0].Before != int64(4) || rows[0].After != int64(4) || !rows[0].OwnBefore || rows[0].OwnAfter {
		t.Errorf("rows %+v", rows)
	}
}

func TestObjectsThatComeAndGo(t *testing.T) {
	t.Parallel()
	d := sample()
	after := d.Clone()
	after.Pools = after.Pools[:3]
	after.Lanes = append(after.Lanes, policy.Lane{Code: "NIGHT", Weight: 1, Strategy: policy.WRR, MaxAttempts: 1, Accounts: []policy.LaneAccount{{PoolGroup: "default", ReservedUnits: 3}}})
	var got []string
	for _, r := range policy.Diff(d, after, nil) {
		if r.Field == "" {
			got = append(got, string(r.Kind)+" "+string(r.Object)+" "+r.ID)
		}
	}
	want := []string{"added lane NIGHT", "added lane_account NIGHT/default", "removed pool provider:google:p1:us:veo4k"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

// Whatever is in a document is seen by the difference: a field that is added to the document and
// forgotten there fails here.
func TestDiffSeesEveryField(t *testing.T) {
	t.Parallel()
	d, ts := sample(), tenants(4)
	lane := control.LaneStandard
	all := policy.TenantOverride{TenantID: ts[0].ID, Code: ts[0].Code, Lane: &lane}
	for v, i := reflect.ValueOf(&all).Elem(), 3; i < v.NumField(); i++ {
		v.Field(i).Set(reflect.ValueOf(value(30)))
	}
	d.Tenants = []policy.TenantOverride{all}
	d = d.Clone()
	seen := 0
	var walk func(path string, get func(*policy.Document) reflect.Value)
	walk = func(path string, get func(*policy.Document) reflect.Value) {
		v := get(d)
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(path+"."+v.Type().Field(i).Name, func(x *policy.Document) reflect.Value { return get(x).Field(i) })
			}
			return
		case reflect.Slice:
			if v.Len() > 0 && v.Index(0).Kind() == reflect.Struct {
				walk(path+"[0]", func(x *policy.Document) reflect.Value { return get(x).Index(0) })
				return
			}
		case reflect.Pointer:
			walk(path+"*", func(x *policy.Document) reflect.Value { return get(x).Elem() })
			return
		}
		after := d.Clone()
		other := get(after)
		switch other.Kind() {
		case reflect.String:
			other.SetString(other.String() + "x")
		case reflect.Bool:
			other.SetBool(!other.Bool())
		case reflect.Float64:
			other.SetFloat(other.Float() + 0.25)
		case reflect.Slice:
			other.Set(reflect.Append(other, reflect.New(other.Type().Elem()).Elem()))
		case reflect.Array:
			other.Index(0).SetUint(other.Index(0).Uint() ^ 1)
		default:
			other.SetInt(other.Int() + 1)
		}
		seen++
		if len(policy.Diff(d, after, ts)) == 0 {
			t.Errorf("a change of %s is not seen", path)
		}
	}
	walk("", func(x *policy.Document) reflect.Value { return reflect.ValueOf(x).Elem() })
	if seen < 90 {
		t.Errorf("walked only %d fields", seen)
	}
}

// The difference is empty exactly when the documents say the same, and applying one's edits to the other
// closes it.
func TestDiffAndApplyAgree(t *testing.T) {
	t.Parallel()
	ts := tenants(8)
	rapid.Check(t, func(t *rapid.T) {
		a := change(t, sample(), ts)
		b := change(t, a, ts)
		ea, err := policy.Encode(a)
		if err != nil {
			t.Fatal(err)
		}
		eb, err := policy.Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		rows := policy.Diff(a, b, ts)
		if (len(rows) == 0) != bytes.Equal(ea, eb) {
			t.Fatalf("%d rows for\n%s\n%s", len(rows), ea, eb)
		}
		seen := map[string]bool{}
		for _, r := range rows {
			if seen[r.Path] && !strings.HasSuffix(r.Path, "]") {
				t.Fatalf("two rows for %s", r.Path)
			}
			seen[r.Path] = true
		}
	})
}

func TestEditsCloseTheDifference(t *testing.T) {
	t.Parallel()
	ts := tenants(8)
	rapid.Check(t, func(t *rapid.T) {
		before := change(t, sample(), ts)
		after := before.Clone()
		for range rapid.IntRange(1, 5).Draw(t, "n") {
			changeOverride(t, after, ts[rapid.IntRange(0, 7).Draw(t, "tenant")])
		}
		var edits []policy.Edit
		byCode := map[string]policy.Tenant{}
		for _, who := range ts {
			byCode[who.Code] = who
		}
		for _, r := range policy.Diff(before, after, ts) {
			who := byCode[r.ID]
			switch v := r.After.(type) {
			case int64:
				edits = append(edits, edit(who, r, itoa(v)))
			case string:
				edits = append(edits, edit(who, r, v))
			}
		}
		got, wrong := policy.Apply(before, edits)
		if len(wrong) > 0 {
			t.Fatal(wrong)
		}
		// An edit to the value in force changes nothing, so that what is compared is what is in force.
		for _, who := range ts {
			g, _ := got.Effective(who.PlanCode, who.ID)
			w, _ := after.Effective(who.PlanCode, who.ID)
			if g != w {
				t.Fatalf("%s: got %+v, want %+v", who.Code, g, w)
			}
		}
	})
}

func edit(who policy.Tenant, r policy.Change, v string) policy.Edit {
	if !r.OwnAfter {
		return policy.ResetTenant(who, r.Field)
	}
	return policy.SetTenant(who, r.Field, v)
}

// What a plan changes is a row of the plan, not one of each tenant that has something of its own.
func TestE02_APlansChangeIsOneRow(t *testing.T) {
	t.Parallel()
	d, ts := sample(), tenants(8)
	d = apply(t, d, policy.SetTenant(ts[1], "burst_units", "30"))
	after := apply(t, d, policy.SetTenant(ts[1], "burst_units", "40"))
	after.Plans[1].Settings.Weight = 3
	rows := policy.Diff(d, after, ts)
	if len(rows) != 2 || rows[0].Path != "plans[pro].settings.weight" || rows[1].Path != "tenants[t-0001].burst_units" {
		t.Errorf("rows %+v", rows)
	}
}
