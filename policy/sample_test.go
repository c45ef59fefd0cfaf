package policy_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/policy"
)

// sample is a small valid document: two leaves under an account, one lane with a reserve, one model each.
func sample() *policy.Document {
	d := policy.Default()
	d.Models = []policy.Model{
		{Code: "gen4", Kind: "VIDEO", ResourceClass: "STANDARD", Resolutions: []string{"720p"}, Seconds: []int64{5, 10}, SlotUnits: 2,
			MeanSeconds: 40, P95Seconds: 90, CostMicro: 250_000, PriceMicro: 400_000, PriceAsOf: "2026-11-01", Enabled: true},
		{Code: "flux", Kind: "IMAGE", ResourceClass: "IMAGE", Resolutions: []string{"1024x1024"}, Seconds: []int64{}, SlotUnits: 1,
			MeanSeconds: 6, P95Seconds: 15, CostMicro: 40_000, PriceMicro: 60_000, PriceAsOf: "2026-11-01", Enabled: true},
		{Code: "veo4k", Kind: "VIDEO", ResourceClass: policy.ClassExpensive, Resolutions: []string{"4k"}, Seconds: []int64{8}, SlotUnits: 8,
			MeanSeconds: 150, P95Seconds: 400, CostMicro: 4_800_000, PriceMicro: 6_000_000, PriceAsOf: "2026-11-01", Enabled: true},
	}
	d.Pools = []policy.Pool{
		{Key: "account:runway:acct-1", Kind: policy.PoolCapGroup, Group: policy.DefaultGroup, Parents: []string{}, Provider: "runway", Account: "acct-1", CapacityUnits: 60},
		{Key: "provider:runway:acct-1:us:gen4", Kind: policy.PoolProvider, Group: policy.DefaultGroup, Parents: []string{"account:runway:acct-1"},
			Provider: "runway", Account: "acct-1", Region: "us", Model: "gen4", CapacityUnits: 40},
		{Key: "provider:runway:acct-1:us:flux", Kind: policy.PoolProvider, Group: policy.DefaultGroup, Parents: []string{"account:runway:acct-1"},
			Provider: "runway", Account: "acct-1", Region: "us", Model: "flux", CapacityUnits: 20},
		{Key: "provider:google:p1:us:veo4k", Kind: policy.PoolProvider, Group: policy.DefaultGroup, Parents: []string{},
			Provider: "google", Account: "p1", Region: "us", Model: "veo4k", CapacityUnits: 32},
	}
	setReserve(d, control.LaneEnterprise, 30)
	setReserve(d, control.LanePaid, 20)
	setReserve(d, control.LaneExpensive, 16)
	return d
}

func setReserve(d *policy.Document, lane string, units int64) {
	l, _ := d.Lane(lane)
	l.Accounts[0].ReservedUnits = units
}

// tenants are n accounts over the shipped plans: t-0000 on enterprise, t-0001 on pro, and so on.
func tenants(n int) []policy.Tenant {
	plans := []string{"enterprise", "pro", "standard", "free"}
	out := make([]policy.Tenant, n)
	for i := range out {
		code := fmt.Sprintf("t-%04d", i)
		out[i] = policy.Tenant{ID: uuid.NewSHA1(uuid.NameSpaceOID, []byte(code)), Code: code, Name: "租户 " + code, PlanCode: plans[i%4], Status: policy.TenantActive}
	}
	return out
}

func value(v int64) *int64 { return &v }

func wantNone(t *testing.T, list []control.FieldError) {
	t.Helper()
	for _, e := range list {
		t.Errorf("unexpected: %s %s %v", e.Field, e.Key, e.Args)
	}
}
