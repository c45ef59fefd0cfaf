package policy_test

import (
	"reflect"
	"testing"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/policy"
)

func TestListsAreTypedWithCommas(t *testing.T) {
	t.Parallel()
	ts := tenants(4)
	pool := "provider:runway:acct-1:us:gen4"
	d := apply(t, sample(),
		policy.SetLaneAccount(control.LaneEnterprise, policy.DefaultGroup, "lends_to", " PAID_SHARED ，STANDARD,"),
		policy.SetLaneAccount(control.LaneEnterprise, policy.DefaultGroup, "lendable_units", "12"),
		policy.SetPool(pool, "lane_minimums", "RECOVERY  2、PAID_SHARED 1"),
		policy.SetPool(pool, "dedicated_lanes", "PAID_SHARED\r\nRECOVERY"),
		policy.SetPool(pool, "dedicated_tenants", ts[0].ID.String()+"; "+ts[1].ID.String()),
		policy.SetPool(pool, "can_look_up", "on"),
		policy.SetScheduling("max_skips", "9"))
	a, p := d.Lanes[0].Accounts[0], d.Pools[1]
	if !reflect.DeepEqual(a.LendsTo, []string{control.LanePaid, control.LaneStandard}) || a.LendableUnits != 12 {
		t.Errorf("account %+v", a)
	}
	want := policy.Pool{
		LaneMinimums:     []policy.LaneMinimum{{Lane: control.LaneRecovery, Units: 2}, {Lane: control.LanePaid, Units: 1}},
		DedicatedLanes:   []string{control.LanePaid, control.LaneRecovery},
		DedicatedTenants: []uuid.UUID{ts[0].ID, ts[1].ID}, CanLookUp: true,
	}
	got := policy.Pool{LaneMinimums: p.LaneMinimums, DedicatedLanes: p.DedicatedLanes, DedicatedTenants: p.DedicatedTenants, CanLookUp: p.CanLookUp}
	if !reflect.DeepEqual(got, want) || d.Scheduling.MaxSkips != 9 {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	rows := policy.Diff(sample(), d, ts)
	if len(rows) != 7 {
		t.Fatalf("%d rows: %+v", len(rows), rows)
	}
	for path, after := range map[string]any{
		"lanes[ENTERPRISE_RESERVED].accounts[default].lends_to": []string{control.LanePaid, control.LaneStandard},
		"pools[" + pool + "].lane_minimums":                     []string{"RECOVERY 2", "PAID_SHARED 1"},
		"pools[" + pool + "].dedicated_tenants":                 []string{"t-0000", "t-0001"},
		"scheduling.max_skips":                                  int64(9),
	} {
		found := false
		for _, r := range rows {
			found = found || r.Path == path && reflect.DeepEqual(r.After, after)
		}
		if !found {
			t.Errorf("no row %s = %v in %+v", path, after, rows)
		}
	}
	emptied := apply(t, d, policy.SetPool(pool, "lane_minimums", " , "), policy.SetPool(pool, "dedicated_lanes", ""), policy.SetPool(pool, "dedicated_tenants", ""))
	if p := emptied.Pools[1]; len(p.LaneMinimums)+len(p.DedicatedLanes)+len(p.DedicatedTenants) != 0 {
		t.Errorf("emptied %+v", p)
	}
}

func TestListsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ field, value, key string }{
		{"lane_minimums", "RECOVERY", policy.KeyNotAMinimum},
		{"lane_minimums", "RECOVERY 1 2", policy.KeyNotAMinimum},
		{"lane_minimums", "RECOVERY x", policy.KeyNotANumber},
		{"lane_minimums", "RECOVERY -1", policy.KeyNegative},
		{"lane_minimums", "RECOVERY 1.5", policy.KeyNotWhole},
		{"lane_minimums", "RECOVERY １", policy.KeyFullWidth},
		{"lane_minimums", "RECOVERY 99999999999", policy.KeyRange},
		{"dedicated_tenants", "acme", policy.KeyUnknown},
		{"dedicated_tenants", "{" + uuid.NameSpaceDNS.String() + "}", policy.KeyUnknown},
		{"can_look_up", "maybe", policy.KeyNotABool},
		{"lends_to", "PAID_SHARED", policy.KeyUnknownField}, // of lane accounts, not of pools
	} {
		d, wrong := policy.Apply(sample(), []policy.Edit{policy.SetPool("provider:runway:acct-1:us:gen4", c.field, c.value)})
		if d != nil || len(wrong) != 1 || wrong[0].Key != c.key || wrong[0].Field != "pools[provider:runway:acct-1:us:gen4]."+c.field {
			t.Errorf("%s %q: %v", c.field, c.value, wrong)
		}
	}
	if _, wrong := policy.Apply(sample(), []policy.Edit{policy.SetScheduling("aging_cap", "5"), policy.SetScheduling("colour", "1")}); len(wrong) != 2 ||
		wrong[0].Key != policy.KeyRange || wrong[1].Key != policy.KeyUnknownField {
		t.Errorf("scheduling: %v", wrong)
	}
}
