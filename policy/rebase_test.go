package policy_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"fairlane/control"
	"fairlane/policy"
)

// E04: what the conflict page shows of two operators on one base.
func TestE04_RebaseKeepsBothAndNamesTheConflict(t *testing.T) {
	t.Parallel()
	base, ts := sample(), tenants(4)
	mine := apply(t, base, policy.SetTenant(ts[0], "weight", "6"), policy.SetLane(control.LanePaid, "weight", "5"))
	theirs := apply(t, base, policy.SetTenant(ts[0], "weight", "7"), policy.SetTenant(ts[0], "burst_units", "30"), policy.SetSwitch("admission_open", "off"))
	conflicts, merged, err := policy.Rebase(base, mine, theirs)
	if err != nil {
		t.Fatal(err)
	}
	want := []policy.Conflict{{Path: "tenants[t-0000].weight", Base: nil, Mine: json.Number("6"), Theirs: json.Number("7")}}
	if !reflect.DeepEqual(conflicts, want) {
		t.Errorf("conflicts %+v", conflicts)
	}
	all := apply(t, theirs, policy.SetLane(control.LanePaid, "weight", "5"))
	if got := encode(t, merged); got != encode(t, all) {
		t.Errorf("merged %s", got)
	}
}

func TestRebaseOfTheSameChangeIsNoConflict(t *testing.T) {
	t.Parallel()
	base, ts := sample(), tenants(4)
	mine := apply(t, base, policy.SetTenant(ts[0], "weight", "6"))
	conflicts, merged, err := policy.Rebase(base, mine, mine.Clone())
	if err != nil || len(conflicts) != 0 || encode(t, merged) != encode(t, mine) {
		t.Errorf("%v %v", conflicts, err)
	}
}

func TestRebaseNamesAnObjectThatOneRemovedAndTheOtherChanged(t *testing.T) {
	t.Parallel()
	base := sample()
	mine := base.Clone()
	mine.Pools = mine.Pools[:3]
	theirs := apply(t, base, policy.SetPool("provider:google:p1:us:veo4k", "capacity_units", "9"))
	conflicts, merged, err := policy.Rebase(base, mine, theirs)
	if err != nil || len(conflicts) != 1 || conflicts[0].Path != "pools[provider:google:p1:us:veo4k]" || conflicts[0].Mine != nil {
		t.Fatalf("%+v %v", conflicts, err)
	}
	if _, kept := merged.Pool("provider:google:p1:us:veo4k"); !kept {
		t.Error("theirs is not kept")
	}
}

func TestRebaseProperties(t *testing.T) {
	t.Parallel()
	ts := tenants(8)
	text := func(t *rapid.T, d *policy.Document) string {
		b, err := policy.Encode(d)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	rebase := func(t *rapid.T, base, mine, theirs *policy.Document) ([]policy.Conflict, *policy.Document) {
		conflicts, merged, err := policy.Rebase(base, mine, theirs)
		if err != nil {
			t.Fatal(err)
		}
		return conflicts, merged
	}
	rapid.Check(t, func(t *rapid.T) {
		base := change(t, sample(), ts)
		mine, theirs := change(t, base, ts), change(t, base, ts)
		switch rapid.IntRange(0, 3).Draw(t, "one side") {
		case 0:
			if c, m := rebase(t, base, mine, base); len(c) != 0 || text(t, m) != text(t, mine) {
				t.Fatalf("nobody else changed anything: %v", c)
			}
			return
		case 1:
			if c, m := rebase(t, base, base, theirs); len(c) != 0 || text(t, m) != text(t, theirs) {
				t.Fatalf("I changed nothing: %v", c)
			}
			return
		}
		conflicts, merged := rebase(t, base, mine, theirs)
		if len(conflicts) > 0 {
			return
		}
		// Without a conflict each side's rows are in force in what comes out.
		after := map[string]any{}
		for _, r := range policy.Diff(base, merged, ts) {
			after[r.Path] = r.After
		}
		for _, side := range []*policy.Document{mine, theirs} {
			for _, r := range policy.Diff(base, side, ts) {
				if r.Object == policy.ObjectDocument {
					continue // of two new orders one is taken, of additions both
				}
				if got, ok := after[r.Path]; !ok || !reflect.DeepEqual(got, r.After) {
					t.Fatalf("%s: %v is lost, %v in force", r.Path, r.After, got)
				}
			}
		}
	})
}
