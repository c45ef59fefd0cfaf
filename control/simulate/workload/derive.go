package workload

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"fairlane/control"
	"fairlane/control/simulate"
	"fairlane/policy"
)

// Options shape a trace.
type Options struct {
	Hours   float64 // how long, 0.1 to 168; the published day begins again after its end
	From    float64 // hours into the published day, 0 to 24
	Clients int     // the largest ones, by requests in that time; 0: all
	Load    float64 // what the clients offer, over the slot units of the policy: 0.01 to 10
	Seed    uint64
	Users   int     // of each tenant, 1 to 10,000; 0: 10
	Steady  bool    // each client asks at its mean rate all the time, as bursty as ever; else with the day's swings
	Hostile float64 // load of the tenant "hostile", which asks as the burst does, every hour anew; 0: none
	Endless []int64 // tenants "endless-1" and so on, which never run out of work, by weight; none by default
}

// HostileTenant is the code of the tenant that asks in bursts.
const HostileTenant = "hostile"

// ClientTenant is the tenant's code of a client of that rank among the largest, from 0.
func ClientTenant(rank int) string { return fmt.Sprintf("client-%02d", rank) }

// EndlessTenant is the code of the i-th tenant that never runs out of work, from 0.
func EndlessTenant(i int) string { return fmt.Sprintf("endless-%d", i+1) }

func (o *Options) check() error {
	for _, f := range []struct {
		name      string
		v, lo, hi float64
	}{
		{"hours", o.Hours, 0.1, 168},
		{"from", o.From, 0, 24},
		{"load", o.Load, 0.01, 10},
		{"hostile", o.Hostile, 0, 10},
		{"clients", float64(o.Clients), 0, maxClient},
		{"users", float64(o.Users), 0, 10_000},
		{"endless", float64(len(o.Endless)), 0, 100},
	} {
		if !(f.v >= f.lo && f.v <= f.hi) {
			return fmt.Errorf("%s: %v is outside %v to %v", f.name, f.v, f.lo, f.hi)
		}
	}
	for _, w := range o.Endless {
		if w < 1 || w > 1_000_000 {
			return fmt.Errorf("endless: a weight of %d is outside 1 to 1000000", w)
		}
	}
	return nil
}

// kind is a model of the policy with its part of the work and the lognormal of its durations.
type kind struct {
	model *policy.Model
	upTo  float64 // cumulative share of requests
	work  lognormal
}

// mix shares requests among the models so that each offers slots in proportion to the units of its pools.
func mix(doc *policy.Document) (kinds []kind, meanSlotSeconds, capacity float64, err error) {
	units := map[string]float64{}
	for i := range doc.Pools {
		if p := &doc.Pools[i]; p.Kind == policy.PoolProvider {
			units[p.Model] += float64(p.CapacityUnits)
		}
	}
	sum := 0.0
	for i := range doc.Models {
		m := &doc.Models[i]
		if !m.Enabled || units[m.Code] == 0 || !(m.MeanSeconds > 0) || m.SlotUnits < 1 {
			continue
		}
		share := units[m.Code] / (m.MeanSeconds * float64(m.SlotUnits))
		sum += share
		kinds = append(kinds, kind{m, share, workOf(m.MeanSeconds, m.P95Seconds)})
	}
	if len(kinds) == 0 {
		return nil, 0, 0, fmt.Errorf("the policy has no enabled model with a provider's pool")
	}
	before := 0.0
	for i := range kinds {
		share := kinds[i].upTo / sum
		meanSlotSeconds += share * kinds[i].model.MeanSeconds * float64(kinds[i].model.SlotUnits)
		before += share
		kinds[i].upTo = before
	}
	for i := range doc.PoolGroups {
		capacity += float64(doc.GroupCapacity(doc.PoolGroups[i].Code))
	}
	return kinds, meanSlotSeconds, capacity, nil
}

// Derive makes a trace for a policy: its models, and rates scaled to its slot units.
func Derive(s *Source, doc *policy.Document, o Options) (*simulate.Trace, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	kinds, slotSeconds, capacity, err := mix(doc)
	if err != nil {
		return nil, err
	}
	d := &derivation{
		opt: o, kinds: kinds, end: o.Hours * hourSeconds, users: max(o.Users, 1),
		trace: &simulate.Trace{}, perSecond: capacity / slotSeconds,
	}
	if o.Users == 0 {
		d.users = 10
	}
	for _, k := range kinds {
		d.trace.Models = append(d.trace.Models, simulate.TraceModel{Code: k.model.Code, Kind: control.Kind(k.model.Kind)})
	}
	if err := d.clients(s.Clients); err != nil {
		return nil, err
	}
	if o.Hostile > 0 {
		d.hostile(s.Burst)
	}
	d.endless()
	if len(d.trace.Arrivals) == 0 {
		return nil, fmt.Errorf("nobody asks for anything in these %v hours", o.Hours)
	}
	if n := len(d.trace.Arrivals); n > simulate.MaxLines {
		return nil, fmt.Errorf("load: %d tasks come together, at most %d are taken", n, simulate.MaxLines)
	}
	slices.SortStableFunc(d.trace.Arrivals, func(a, b simulate.Arrival) int { return cmp.Compare(a.At, b.At) })
	return d.trace, nil
}

type derivation struct {
	opt       Options
	kinds     []kind
	end       float64 // seconds
	users     int
	perSecond float64 // tasks that the whole platform can do in a second, at the mean size
	trace     *simulate.Trace
}

// tenant adds a tenant with its users and returns how to add a task of it.
func (d *derivation) tenant(name string, size float64) func(at float64) {
	n := int32(len(d.trace.Tenants)) //nolint:gosec // a few hundred
	d.trace.Tenants = append(d.trace.Tenants, name)
	first := int32(len(d.trace.Users)) //nolint:gosec // at most 10,000 each
	for i := range d.users {
		d.trace.Users = append(d.trace.Users, simulate.TraceUser{Tenant: n, Name: fmt.Sprintf("user-%d", i+1)})
	}
	chance := rand.New(rand.NewPCG(d.opt.Seed, uint64(n)<<8|1)) //nolint:gosec // not negative
	return func(at float64) {
		share := chance.Float64()
		k := 0
		for k < len(d.kinds)-1 && share >= d.kinds[k].upTo {
			k++
		}
		took := d.kinds[k].work.draw(chance) * size
		d.trace.Arrivals = append(d.trace.Arrivals, simulate.Arrival{
			At: int64(at * 1e6), Duration: int64(min(max(took, 0.1), simulate.MaxDuration) * 1e6),
			Tenant: n, User: first + int32(chance.IntN(d.users)), Model: int32(k), //nolint:gosec // both small
		})
	}
}

func (d *derivation) clients(all []Client) error {
	span := 0.0 // of the published trace
	for i := range all {
		last := all[i].Windows[len(all[i].Windows)-1]
		span = max(span, last.Start+windowSeconds)
	}
	streams := make([]*stream, 0, len(all))
	for i := range all {
		c := newStream(&all[i], span, d.opt.From*hourSeconds)
		if d.opt.Steady {
			c.flatten(span)
		}
		if c.expect = c.requests(d.end); c.expect > 0 {
			streams = append(streams, c)
		}
	}
	slices.SortStableFunc(streams, func(a, b *stream) int { return cmp.Compare(b.expect, a.expect) })
	if d.opt.Clients > len(streams) {
		return fmt.Errorf("clients: %d are wanted, the published trace has %d that ask in this time", d.opt.Clients, len(streams))
	}
	if d.opt.Clients > 0 {
		streams = streams[:d.opt.Clients]
	}
	// The overall mean is that of a request, so that the sizes of all requests have the mean 1.
	tokens, requests := 0.0, 0.0
	for _, c := range streams {
		if c.Tokens > 0 {
			tokens, requests = tokens+c.expect*c.Tokens, requests+c.expect
		}
	}
	offered := 0.0
	for _, c := range streams {
		c.size = 1
		if c.Tokens > 0 {
			c.size = c.Tokens / (tokens / requests)
		}
		offered += c.expect * c.size
	}
	if offered == 0 {
		return fmt.Errorf("clients: nobody asks in this time")
	}
	scale := d.opt.Load * d.perSecond * d.end / offered
	for rank, c := range streams {
		add := d.tenant(ClientTenant(rank), c.size)
		c.play(scale, d.end, rand.New(rand.NewPCG(d.opt.Seed, uint64(c.ID)<<8)), add) //nolint:gosec // not negative
	}
	return nil
}

// hostile plays the burst hour after hour; each request is there as often as the load needs.
func (d *derivation) hostile(burst []float64) {
	add := d.tenant(HostileTenant, 1)
	chance := rand.New(rand.NewPCG(d.opt.Seed, math.MaxUint64))
	each := d.opt.Hostile * d.perSecond * hourSeconds / float64(len(burst))
	for hour := 0.0; hour*hourSeconds < d.end; hour++ {
		for _, at := range burst {
			at += hour * hourSeconds
			n := int(each)
			if chance.Float64() < each-float64(n) {
				n++
			}
			for range n {
				if at < d.end {
					add(at)
				}
			}
		}
	}
}

// endless offers the whole platform's work, shared by weight, evenly in time, and some to start with.
func (d *derivation) endless() {
	var weights int64
	for _, w := range d.opt.Endless {
		weights += w
	}
	const ahead = 200
	for i, w := range d.opt.Endless {
		add := d.tenant(EndlessTenant(i), 1)
		for range ahead {
			add(0)
		}
		gap := float64(weights) / float64(w) / d.perSecond
		for at := gap; at < d.end; at += gap {
			add(at)
		}
	}
}
