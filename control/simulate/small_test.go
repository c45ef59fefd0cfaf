package simulate

import (
	"fmt"
	"strings"
	"testing"

	"fairlane/control"
	"fairlane/policy"
)

// small is a policy of one lane over one pool of so many units, and models of 60 s (clip), 30 s (picture)
// and 60 s of two units (wide).
func small(units int64) *policy.Document {
	d := policy.Default()
	d.PoolGroups = []policy.PoolGroup{{Code: policy.DefaultGroup, CapacityUnits: units}}
	model := func(code, kind string, slots int64, mean float64) {
		lengths := []int64{5}
		if kind == "IMAGE" {
			lengths = []int64{}
		}
		d.Models = append(d.Models, policy.Model{
			Code: code, Kind: kind, ResourceClass: "STANDARD", Resolutions: []string{"720p"}, Seconds: lengths, SlotUnits: slots,
			MeanSeconds: mean, P95Seconds: 2 * mean, PriceAsOf: "2026-11-01", Enabled: true,
		})
		d.Pools = append(d.Pools, policy.Pool{
			Key: "provider:p:a:r:" + code, Kind: policy.PoolProvider, Group: policy.DefaultGroup, Parents: []string{"cap:all"},
			Provider: "p", Account: "a", Region: "r", Model: code, CapacityUnits: units, CanLookUp: true,
		})
	}
	d.Pools = []policy.Pool{{Key: "cap:all", Kind: policy.PoolCapGroup, Group: policy.DefaultGroup, Parents: []string{}, CapacityUnits: units}}
	model("clip", "VIDEO", 1, 60)
	model("picture", "IMAGE", 1, 30)
	if units > 1 {
		model("wide", "VIDEO", 2, 60)
	}
	d.Plans = []policy.Plan{{Code: "plan", Models: []string{}, Settings: policy.TenantSettings{
		Lane: control.LaneStandard, Weight: 1, BurstUnits: units, MaxRunningTasks: units, MaxRunningUnits: units,
		MaxQueuedTasks: 1000, MaxQueuedUnits: 100_000, MaxCostPerMinute: 1000, MaxCostPerDay: 100_000, SubmitsPerMinute: 10_000,
		UserMaxQueuedTasks: 1000, UserMaxRunningTasks: units, UserMaxRunningImage: units, UserMaxRunningVideo: units,
		UserSubmitsPerMin: 10_000, Band: 2,
	}}}
	return d
}

// give changes a tenant's settings.
func give(d *policy.Document, code string, change func(*policy.TenantOverride)) {
	for i := range d.Tenants {
		if d.Tenants[i].Code == code {
			change(&d.Tenants[i])
			return
		}
	}
	o := policy.TenantOverride{TenantID: TenantID(code), Code: code}
	change(&o)
	d.Tenants = append(d.Tenants, o)
}

func value(v int64) *int64 { return &v }

// script is lines of "at tenant user model seconds", repeated where they end with ×n.
func script(t *testing.T, lines ...string) *Trace {
	t.Helper()
	var text strings.Builder
	text.WriteString(Header + "\n")
	for _, l := range lines {
		line, times, found := strings.Cut(l, " ×")
		n := 1
		if found {
			if _, err := fmt.Sscan(times, &n); err != nil {
				t.Fatal(err)
			}
		}
		f := strings.Fields(line)
		kind := "VIDEO"
		if f[3] == "picture" {
			kind = "IMAGE"
		}
		for range n {
			fmt.Fprintf(&text, "%s,%s,%s,%s,%s,%s\n", f[0], f[1], f[2], f[3], f[4], kind)
		}
	}
	trace, err := ReadTrace(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func run(t *testing.T, c Config) *Result {
	t.Helper()
	if err := Validate(c.Trace, c.Document, c.Plans); err != nil {
		t.Fatalf("the policy: %v", err)
	}
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *Result) tenant(t *testing.T, code string) *TenantResult {
	t.Helper()
	for i := range r.Tenants {
		if r.Tenants[i].Tenant == code {
			return &r.Tenants[i]
		}
	}
	t.Fatalf("no tenant %s", code)
	return nil
}
