package workload

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"fairlane/control/simulate"
	"fairlane/policy"
)

func embedded(t *testing.T) *Source {
	t.Helper()
	s, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func derive(t *testing.T, o Options) *simulate.Trace {
	t.Helper()
	trace, err := Derive(embedded(t), Fair(), o)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func TestReadyPoliciesAreValidForTheirTraces(t *testing.T) {
	t.Parallel()
	trace := derive(t, Options{Hours: 1, Load: 0.7, Hostile: 1, Endless: EndlessWeights})
	for name, make := range Policies {
		if err := simulate.Validate(trace, make(), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := trace.Check(make()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Ready("none"); err == nil {
		t.Error("an unknown policy is ready")
	}
}

func TestATraceOffersItsLoad(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{Hours: 24, Load: 0.7}, {Hours: 6, Load: 1.3, Seed: 3}, {Hours: 12, Load: 0.95, Clients: 20}, {Hours: 6, From: 8, Load: 0.7}, {Hours: 12, Load: 0.7, Steady: true},
	} {
		trace := derive(t, o)
		busy := 0.0
		for _, a := range trace.Arrivals {
			busy += float64(a.Duration) / 1e6
		}
		if load := busy / (o.Hours * 3600 * Units); math.Abs(load/o.Load-1) > 0.1 {
			t.Errorf("%+v offers %.3f", o, load)
		}
		if o.Clients > 0 && len(trace.Tenants) != o.Clients {
			t.Errorf("%d clients", len(trace.Tenants))
		}
	}
}

func TestSameOptionsSameTrace(t *testing.T) {
	t.Parallel()
	o := Options{Hours: 2, Load: 0.7, Hostile: 0.2, Endless: []int64{1}, Seed: 5}
	first := derive(t, o)
	if !reflect.DeepEqual(first, derive(t, o)) {
		t.Error("another trace")
	}
	o.Seed = 6
	if reflect.DeepEqual(first.Arrivals, derive(t, o).Arrivals) {
		t.Error("another seed, the same trace")
	}
}

// What is said of the published traces must be true of what is made of them: few clients send most, sizes
// differ widely, the hostile tenant is far burstier than chance.
func TestTheTraceIsLikeThePublishedOnes(t *testing.T) {
	t.Parallel()
	trace := derive(t, Options{Hours: 24, Load: 0.7, Hostile: HostileLoad})
	n, sum := map[string]float64{}, map[string]float64{}
	var gaps []float64
	last := -1.0
	for _, a := range trace.Arrivals {
		name := trace.Tenants[a.Tenant]
		n[name]++
		sum[name] += float64(a.Duration)
		if name == HostileTenant {
			at := float64(a.At) / 1e6
			if last >= 0 && at < 3600 {
				gaps = append(gaps, at-last)
			}
			last = at
		}
	}
	all := float64(len(trace.Arrivals)) - n[HostileTenant]
	if share := n[ClientTenant(0)] / all; share < 0.17 || share > 0.32 {
		t.Errorf("the largest client sends %.3f", share)
	}
	least, most := math.Inf(1), 0.0
	for name := range n {
		if n[name] > 200 && name != HostileTenant {
			least, most = min(least, sum[name]/n[name]), max(most, sum[name]/n[name])
		}
	}
	if most/least < 10 {
		t.Errorf("the largest mean size is %.1f times the smallest", most/least)
	}
	mean, square := 0.0, 0.0
	for _, g := range gaps {
		mean += g / float64(len(gaps))
	}
	for _, g := range gaps {
		square += (g - mean) * (g - mean) / float64(len(gaps))
	}
	if cv := math.Sqrt(square) / mean; cv < 5 {
		t.Errorf("the hostile tenant's time between requests has a coefficient of variation of %.1f", cv)
	}
}

func TestDrawsHaveTheirMoments(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(1, 2))
	const n = 50_000
	moments := func(draw func() float64) (mean, cv float64) {
		sum, square := 0.0, 0.0
		for range n {
			x := draw()
			sum, square = sum+x, square+x*x
		}
		mean = sum / n
		return mean, math.Sqrt(square/n-mean*mean) / mean
	}
	for _, w := range []Window{{Shape: 1}, {Shape: 4}, {Shape: 0.25}, {Shape: 0.7, Weibull: true}, {Shape: 2, Weibull: true}} {
		mean, cv := moments(func() float64 { return w.gap(chance) })
		want := 1 / math.Sqrt(w.Shape)
		if w.Weibull {
			g := math.Gamma(1 + 1/w.Shape)
			want = math.Sqrt(math.Gamma(1+2/w.Shape)/(g*g) - 1)
		}
		if math.Abs(mean-1) > 0.03 || math.Abs(cv/want-1) > 0.05 {
			t.Errorf("%+v: mean %.3f, variation %.3f, want %.3f", w, mean, cv, want)
		}
		first, _ := moments(func() float64 { return w.firstGap(chance) })
		if left := (1 + want*want) / 2; math.Abs(first/left-1) > 0.1 { // the mean residual life of a renewal process
			t.Errorf("%+v: the first gap has the mean %.3f, want %.3f", w, first, left)
		}
	}
	for _, m := range []struct{ mean, p95 float64 }{{45, 110}, {125, 300}, {60, 61}, {10, 38}, {10, 100}} {
		l := workOf(m.mean, m.p95)
		above := 0
		mean, _ := moments(func() float64 {
			x := l.draw(chance)
			if x > m.p95 {
				above++
			}
			return x
		})
		if math.Abs(mean/m.mean-1) > 0.1 || m.p95 < 3.8*m.mean && math.Abs(float64(above)/n-0.05) > 0.005 {
			t.Errorf("%+v: mean %.2f, %.4f above the 95th percentile", m, mean, float64(above)/n)
		}
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	source := embedded(t)
	good := Options{Hours: 1, Load: 0.7}
	for _, c := range []struct {
		says   string
		change func(*Options)
	}{
		{"hours: 0 is outside 0.1 to 168", func(o *Options) { o.Hours = 0 }},
		{"hours: NaN is outside", func(o *Options) { o.Hours = math.NaN() }},
		{"from: 25 is outside 0 to 24", func(o *Options) { o.From = 25 }},
		{"load: 0 is outside 0.01 to 10", func(o *Options) { o.Load = 0 }},
		{"load: +Inf is outside", func(o *Options) { o.Load = math.Inf(1) }},
		{"hostile: -1 is outside 0 to 10", func(o *Options) { o.Hostile = -1 }},
		{"clients: 5000 are wanted, the published trace has", func(o *Options) { o.Clients = 5000 }},
		{"users: 20000 is outside 0 to 10000", func(o *Options) { o.Users = 20_000 }},
		{"endless: a weight of 0 is outside", func(o *Options) { o.Endless = []int64{0} }},
	} {
		o := good
		c.change(&o)
		if _, err := Derive(source, Fair(), o); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
	if _, err := Derive(source, policy.Default(), good); err == nil || !strings.Contains(err.Error(), "no enabled model") {
		t.Errorf("a policy without models: %v", err)
	}
}

const (
	someClients = "client_id,window_start_s,rate_per_s,iat_cv,iat_dist,p1,p2\n1,0,0.5,1,Gamma,1,2\n1,600,0.1,,,,\n2,0,0.1,2,Weibull,0.6,1\n"
	someSizes   = "client_id,window_start_s,field,mean\n1,0,input_tokens,5\n1,0,output_tokens,10\n1,600,output_tokens,30\n"
	someBurst   = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:05.0000000,1,1\n"
)

func TestOtherFilesAreRead(t *testing.T) {
	t.Parallel()
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	fmt.Fprint(z, someClients)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Read(&zipped, strings.NewReader(someSizes), strings.NewReader(someBurst))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Clients) != 2 || s.Clients[0].Tokens != 20 || s.Clients[1].Tokens != 0 || !s.Clients[1].Windows[0].Weibull || s.Clients[0].Windows[1].Shape != 1 {
		t.Errorf("%+v", s.Clients)
	}
	if len(s.Burst) != 2 || math.Abs(s.Burst[1]-1.02004) > 1e-9 {
		t.Errorf("%v", s.Burst)
	}
}

func TestBadFilesAreRefusedWithNameAndLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ clients, sizes, burst, says string }{
		{"", someSizes, someBurst, "clients: header: EOF"},
		{"a,b\n", someSizes, someBurst, `clients: line 1: no column "client_id"`},
		{strings.SplitAfter(someClients, "\n")[0], someSizes, someBurst, "clients: nobody asks for anything"},
		{someClients + "x,0,1,1,Gamma,1,1\n", someSizes, someBurst, `clients: line 5: client_id: "x" is not a whole number`},
		{someClients + "3,0,-1,1,Gamma,1,1\n", someSizes, someBurst, `clients: line 5: rate_per_s: "-1" is not a number from 0`},
		{someClients + "3,0,NaN,1,Gamma,1,1\n", someSizes, someBurst, `clients: line 5: rate_per_s: "NaN"`},
		{someClients + "3,5,1,1,Gamma,1,1\n", someSizes, someBurst, "clients: line 5: window_start_s: 5 is not a multiple of 600"},
		{someClients + "3,0,1,1,Pareto,1,1\n", someSizes, someBurst, `clients: line 5: iat_dist: "Pareto" is neither`},
		{someClients + "3,0,1\n", someSizes, someBurst, "clients: line 5: record on line 5: wrong number of fields"},
		{someClients + "1,0,1,1,Gamma,1,1\n", someSizes, someBurst, "clients: client 1 has the window 0 twice"},
		{someClients, someSizes + "1,0,output_tokens,-3\n", someBurst, `sizes: line 5: mean: "-3"`},
		{someClients, someSizes, someBurst + "yesterday,1,1\n", `burst: line 4: TIMESTAMP: "yesterday"`},
		{someClients, someSizes, someBurst + "2023-11-16 18:17:04.0,1,1\n", "burst: line 4: TIMESTAMP: 2023-11-16 18:17:04.0 is out of order"},
		{someClients, someSizes, "TIMESTAMP\n", "burst: no requests"},
		{"\x1f\x8bno", someSizes, someBurst, "clients: "},
	} {
		_, err := Read(strings.NewReader(c.clients), strings.NewReader(c.sizes), strings.NewReader(c.burst))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(someClients, someSizes, someBurst)
	f.Add(someClients+"3,0,1e5,0,Gamma,0,1\n", someSizes, "TIMESTAMP\n2023-11-16 18:17:04\n")
	f.Fuzz(func(t *testing.T, clients, sizes, burst string) {
		s, err := Read(strings.NewReader(clients), strings.NewReader(sizes), strings.NewReader(burst))
		if err != nil {
			return
		}
		trace, err := Derive(s, Fair(), Options{Hours: 0.1, Load: 0.02, Hostile: 0.01})
		if err != nil {
			return
		}
		for i, a := range trace.Arrivals {
			if a.At < 0 || a.Duration < 1 || i > 0 && a.At < trace.Arrivals[i-1].At {
				t.Fatalf("%+v", a)
			}
		}
	})
}
