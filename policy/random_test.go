package policy_test

import (
	"math"
	"reflect"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"fairlane/policy"
)

var (
	wildText = rapid.OneOf(rapid.SampledFrom([]string{"", "default", "gen4", "STANDARD", "PAID_SHARED", "free", "account:runway:acct-1", "x"}), rapid.String())
	wildInt  = rapid.OneOf(rapid.Int64Range(-2, 40), rapid.SampledFrom([]int64{math.MaxInt64, math.MinInt64, 1_000_000, 1_000_000_000}), rapid.Int64())
	wildReal = rapid.OneOf(rapid.Float64Range(-1, 100), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0}))
)

// wildDocument is any document at all, with names that sometimes lead somewhere.
func wildDocument(t *rapid.T) *policy.Document {
	d := &policy.Document{}
	fill(t, reflect.ValueOf(d).Elem())
	return d
}

func fill(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Slice:
		n := rapid.IntRange(0, 3).Draw(t, "n")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i))
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Array:
		v.Set(reflect.ValueOf(tenants(6)[rapid.IntRange(0, 5).Draw(t, "tenant")].ID))
	case reflect.String:
		v.SetString(wildText.Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Float64:
		v.SetFloat(wildReal.Draw(t, "real"))
	default:
		v.SetInt(wildInt.Draw(t, "int"))
	}
}

// change makes n random changes to a valid document that keep its names unique: numbers, switches,
// overrides, objects that come and go, another order.
func change(t *rapid.T, d *policy.Document, ts []policy.Tenant) *policy.Document {
	d = d.Clone()
	for range rapid.IntRange(0, 6).Draw(t, "changes") {
		switch rapid.IntRange(0, 16).Draw(t, "what") {
		case 0:
			d.Lanes[rapid.IntRange(0, len(d.Lanes)-1).Draw(t, "lane")].Weight = rapid.Int64Range(0, 9).Draw(t, "weight")
		case 1:
			d.Lanes[rapid.IntRange(0, len(d.Lanes)-1).Draw(t, "lane")].Accounts[0].ReservedUnits = rapid.Int64Range(0, 9).Draw(t, "reserve")
		case 2:
			d.Pools[rapid.IntRange(0, len(d.Pools)-1).Draw(t, "pool")].CapacityUnits = rapid.Int64Range(0, 99).Draw(t, "capacity")
		case 3:
			d.Switches.AdmissionOpen = !d.Switches.AdmissionOpen
		case 4:
			d.Models[0].Seconds = rapid.SliceOfNDistinct(rapid.Int64Range(1, 9), 1, 3, rapid.ID[int64]).Draw(t, "seconds")
		case 5:
			d.Plans[rapid.IntRange(0, 3).Draw(t, "plan")].Settings.Weight = rapid.Int64Range(0, 9).Draw(t, "weight")
		case 6, 7, 8:
			changeOverride(t, d, ts[rapid.IntRange(0, len(ts)-1).Draw(t, "tenant")])
		case 9:
			if i := rapid.IntRange(0, len(d.Pools)).Draw(t, "gone"); i < len(d.Pools) && len(d.Pools) > 1 {
				d.Pools = append(d.Pools[:i], d.Pools[i+1:]...)
			}
		case 10:
			d.Pools = append(d.Pools, policy.Pool{Key: "new:" + uuid.NewSHA1(uuid.Nil, []byte{byte(len(d.Pools)), byte(rapid.IntRange(0, 255).Draw(t, "key"))}).String(), Kind: policy.PoolCapGroup,
				Parents: []string{}, LaneMinimums: []policy.LaneMinimum{}, DedicatedLanes: []string{}, DedicatedTenants: []uuid.UUID{}})
		case 11:
			i, j := rapid.IntRange(0, len(d.Lanes)-1).Draw(t, "i"), rapid.IntRange(0, len(d.Lanes)-1).Draw(t, "j")
			d.Lanes[i], d.Lanes[j] = d.Lanes[j], d.Lanes[i]
		case 12, 13:
			changeLending(t, &d.Lanes[rapid.IntRange(0, len(d.Lanes)-1).Draw(t, "lane")].Accounts[0])
		case 14:
			changeKept(t, &d.Pools[rapid.IntRange(0, len(d.Pools)-1).Draw(t, "pool")], ts)
		case 15:
			d.Scheduling.RepayPermille = rapid.Int64Range(0, 900).Draw(t, "repay")
			d.Scheduling.EarmarkAfter = rapid.Int64Range(0, 900).Draw(t, "earmark")
		default:
			d.Limits.SafeUtilisation = rapid.Float64Range(0.1, 1).Draw(t, "utilisation")
		}
	}
	return d
}

var someLanes = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"STANDARD", "PAID_SHARED", "RECOVERY"}), 0, 3, rapid.ID[string])

func changeLending(t *rapid.T, a *policy.LaneAccount) {
	units := func(name string) int64 { return rapid.Int64Range(0, 9).Draw(t, name) }
	a.HeadroomUnits, a.LendableUnits, a.BorrowTimeout, a.Cooldown, a.BorrowLimit =
		units("headroom"), units("lendable"), units("timeout"), units("cooldown"), units("limit")
	a.LendsTo = someLanes.Draw(t, "lends to")
}

func changeKept(t *rapid.T, p *policy.Pool, ts []policy.Tenant) {
	p.CanLookUp = rapid.Bool().Draw(t, "look up")
	p.DedicatedLanes = someLanes.Draw(t, "dedicated")
	p.LaneMinimums = []policy.LaneMinimum{}
	for _, lane := range someLanes.Draw(t, "minimums") {
		p.LaneMinimums = append(p.LaneMinimums, policy.LaneMinimum{Lane: lane, Units: rapid.Int64Range(1, 9).Draw(t, "units")})
	}
	p.DedicatedTenants = []uuid.UUID{}
	for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(ts)-1), 0, 2, rapid.ID[int]).Draw(t, "tenants") {
		p.DedicatedTenants = append(p.DedicatedTenants, ts[i].ID)
	}
}

func changeOverride(t *rapid.T, d *policy.Document, who policy.Tenant) {
	o, ok := d.Override(who.ID)
	if !ok {
		d.Tenants = append(d.Tenants, policy.TenantOverride{TenantID: who.ID, Code: who.Code})
		o = &d.Tenants[len(d.Tenants)-1]
	}
	v := reflect.ValueOf(o).Elem().Field(rapid.IntRange(2, reflect.TypeFor[policy.TenantOverride]().NumField()-1).Draw(t, "field"))
	switch {
	case rapid.Bool().Draw(t, "reset"):
		v.SetZero()
	case v.Type().Elem().Kind() == reflect.String:
		lane := rapid.SampledFrom([]string{"STANDARD", "PAID_SHARED", "RECOVERY"}).Draw(t, "lane")
		v.Set(reflect.ValueOf(&lane))
	default:
		v.Set(reflect.ValueOf(value(rapid.Int64Range(0, 50).Draw(t, "value"))))
	}
}
