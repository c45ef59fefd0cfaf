package demo

import (
	"math"
	"time"

	"fairlane/control"
	"fairlane/policy"
)

// priceDate is the day on which the list prices below were read.
const priceDate = "2026-11-01"

// margin is what customers pay over the provider's price, in percent.
const margin = 35

// Render is how long a provider works on one default clip: lognormal.
type Render struct {
	Median time.Duration
	P95    time.Duration
}

// Mean is the mean of the lognormal distribution with that median and 95th percentile.
func (r Render) Mean() time.Duration {
	const z95 = 1.6448536269514722
	sigma := math.Log(float64(r.P95)/float64(r.Median)) / z95
	return time.Duration(float64(r.Median) * math.Exp(sigma*sigma/2))
}

type model struct {
	code       string
	resolution []string // first is the default
	seconds    []int64  // first is the default
	median     int      // seconds at the provider
	p95        int
	cents      int64 // list price of the default clip, in hundredths of the currency
	expensive  bool
}

var models = []model{
	{"veo-3.1", []string{"1080p", "720p"}, []int64{8, 6, 4}, 110, 300, 320, true},
	{"veo-3.1-fast", []string{"720p", "1080p"}, []int64{8, 6, 4}, 60, 150, 80, false},
	{"veo-3.1-lite", []string{"720p"}, []int64{8, 6, 4}, 45, 120, 40, false},
	{"kling-v3", []string{"720p", "1080p"}, []int64{5, 10}, 70, 180, 42, false},
	{"seedance-2.0", []string{"720p", "480p"}, []int64{5, 10}, 90, 240, 76, false},
	{"seedance-2.5", []string{"720p", "480p"}, []int64{10, 5}, 180, 420, 231, true},
	{"seedance-1.5-pro", []string{"720p", "480p"}, []int64{5, 10}, 60, 150, 26, false},
	{"minimax-h3", []string{"768P"}, []int64{6, 10}, 150, 360, 54, false},
	{"hailuo-02", []string{"768P"}, []int64{6, 10}, 120, 300, 28, false},
	{"wan2.7-t2v", []string{"720P", "1080P"}, []int64{5, 10}, 120, 300, 50, false},
	{"gen4_turbo", []string{"720p"}, []int64{5, 10}, 35, 90, 25, false},
	{"ray-3.2", []string{"720p", "1080p"}, []int64{5, 9}, 60, 150, 30, false},
}

func (m model) render() Render {
	return Render{Median: time.Duration(m.median) * time.Second, P95: time.Duration(m.p95) * time.Second}
}

// catalogue is the models as the policy has them, with priors divided by speed.
func catalogue(speed float64) []policy.Model {
	list := make([]policy.Model, 0, len(models))
	for _, m := range models {
		class := "STANDARD"
		if m.expensive {
			class = policy.ClassExpensive
		}
		cost := m.cents * control.MicroUnits / 100
		list = append(list, policy.Model{
			Code: m.code, Kind: string(control.KindVideo), ResourceClass: class,
			Resolutions: m.resolution, Seconds: m.seconds, SlotUnits: 1,
			MeanSeconds: m.render().Mean().Seconds() / speed, P95Seconds: float64(m.p95) / speed,
			CostMicro: cost, PriceMicro: cost * (100 + margin) / 100, PriceAsOf: priceDate, Enabled: true,
		})
	}
	return list
}

// account is a provider's account in one region: what runs there and how much at once in all.
type account struct {
	provider, name, region string
	limit                  int64 // running jobs of the account, all models
	models                 []slots
}

type slots struct {
	model string
	units int64
}

// Limits follow the tiers that providers publish (and where they publish none, what is usual).
var accounts = []account{
	{"veo", "project-1", "us-central1", 20, []slots{{"veo-3.1", 8}, {"veo-3.1-fast", 8}, {"veo-3.1-lite", 8}}},
	{"veo", "project-2", "europe-west4", 10, []slots{{"veo-3.1", 6}, {"veo-3.1-fast", 6}}},
	{"kling", "acct-1", "global", 5, []slots{{"kling-v3", 5}}},
	{"kling", "acct-2", "global", 5, []slots{{"kling-v3", 5}}},
	{"fal", "acct-1", "global", 10, []slots{{"kling-v3", 6}, {"hailuo-02", 4}}},
	{"ark", "acct-1", "cn-beijing", 16, []slots{{"seedance-2.0", 8}, {"seedance-2.5", 6}, {"seedance-1.5-pro", 4}}},
	{"byteplus", "acct-1", "ap-southeast", 10, []slots{{"seedance-2.0", 6}, {"seedance-1.5-pro", 6}}},
	{"minimax", "acct-1", "global", 10, []slots{{"minimax-h3", 5}, {"hailuo-02", 5}}},
	{"dashscope", "acct-1", "cn-beijing", 5, []slots{{"wan2.7-t2v", 5}}},
	{"dashscope", "acct-2", "ap-southeast", 5, []slots{{"wan2.7-t2v", 5}}},
	{"runway", "acct-1", "us", 10, []slots{{"gen4_turbo", 10}}},
	{"runway", "acct-2", "us", 5, []slots{{"gen4_turbo", 5}}},
	{"luma", "acct-1", "us", 10, []slots{{"ray-3.2", 10}}},
}

const (
	platformUnits  = 120 // of all pools together
	expensiveUnits = 20

	recoveryFrom = 8 // units from which a pool keeps one for what is set going again

	platformCap  = "cap:platform"
	expensiveCap = "cap:class:expensive"
)

// pools is every account's pool per model, and above them the account, the class of costly models and the
// platform.
func pools() []policy.Pool {
	expensive := map[string]bool{}
	for _, m := range models {
		expensive[m.code] = m.expensive
	}
	group := func(key string, units int64, parents ...string) policy.Pool {
		return policy.Pool{Key: key, Kind: policy.PoolCapGroup, Group: policy.DefaultGroup, CapacityUnits: units, Parents: append([]string{}, parents...)}
	}
	list := []policy.Pool{group(platformCap, platformUnits), group(expensiveCap, expensiveUnits, platformCap)}
	for _, a := range accounts {
		above := "cap:account:" + a.provider + ":" + a.name
		list = append(list, group(above, a.limit, platformCap))
		for i, s := range a.models {
			parents := []string{above}
			if expensive[s.model] {
				parents = append(parents, expensiveCap)
			}
			pool := policy.Pool{
				Key:  "provider:" + a.provider + ":" + a.name + ":" + a.region + ":" + s.model,
				Kind: policy.PoolProvider, Group: policy.DefaultGroup, Parents: parents,
				Provider: a.provider, Account: a.name, Region: a.region, Model: s.model,
				CapacityUnits: s.units, Preference: int64(i), CanLookUp: profile(a.provider).Lookup,
			}
			if s.units >= recoveryFrom {
				pool.LaneMinimums = []policy.LaneMinimum{{Lane: control.LaneRecovery, Units: 1}}
			}
			list = append(list, pool)
		}
	}
	return list
}

// modelUnits is what each model can have of the platform when every account and the platform give each of
// their pools its proportion.
func modelUnits() map[string]float64 {
	var total float64
	units := map[string]float64{}
	for _, a := range accounts {
		var sum int64
		for _, s := range a.models {
			sum += s.units
		}
		share := min(1, float64(a.limit)/float64(sum))
		for _, s := range a.models {
			units[s.model] += float64(s.units) * share
			total += float64(s.units) * share
		}
	}
	for model := range units {
		units[model] *= min(1, platformUnits/total)
	}
	return units
}
