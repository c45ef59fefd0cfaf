package plan_test

import (
	"testing"

	"fairlane/control/plan"
	"fairlane/policy"
)

// A cap group may span pool groups, and lie in none or in another: its units count for all of them.
func TestCapGroupsSpanPoolGroups(t *testing.T) {
	t.Parallel()
	for _, home := range []string{"", "other"} {
		d := policy.Default()
		d.PoolGroups = append(d.PoolGroups, policy.PoolGroup{Code: "other"})
		d.Pools = []policy.Pool{
			{Key: "platform", Kind: policy.PoolCapGroup, Group: home, CapacityUnits: 9, Parents: []string{}},
			{Key: "acct", Kind: policy.PoolCapGroup, Group: policy.DefaultGroup, CapacityUnits: 8, Parents: []string{"platform"}},
			{Key: "alone", Kind: policy.PoolCapGroup, CapacityUnits: 8, Parents: []string{}},
			{Key: "leaf", Kind: policy.PoolProvider, Group: policy.DefaultGroup, Model: "m", CapacityUnits: 7, Parents: []string{"acct"}},
			{Key: "there", Kind: policy.PoolProvider, Group: "other", Model: "m", CapacityUnits: 7, Parents: []string{"platform"}},
		}
		if _, err := plan.Compile(d, 1, nil); err != nil {
			t.Errorf("a cap group of group %q: %v", home, err)
		}
	}
}
