package demo

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func load(t *testing.T) *Trace {
	t.Helper()
	trace, err := LoadTrace()
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// flat is a trace of one client that asks at one rate all day.
func flat(t *testing.T, perSecond, cv float64) *Trace {
	t.Helper()
	var text strings.Builder
	text.WriteString("window_start_s,client,rate_per_s,cv\n")
	for w := range traceWindows {
		fmt.Fprintf(&text, "%d,0,%g,%g\n", w*600, perSecond, cv)
	}
	trace, err := ReadTrace(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func TestTraceIsADayThatBeginsWithItsBusiestHour(t *testing.T) {
	t.Parallel()
	trace := load(t)
	if trace.Clients() != 60 {
		t.Fatalf("%d clients, want 60", trace.Clients())
	}
	hours := make([]float64, 24)
	for client := range trace.Clients() {
		for h := range hours {
			hours[h] += trace.Requests(client, time.Duration(h)*time.Hour, time.Duration(h+1)*time.Hour)
		}
		if client > 0 && trace.Requests(client, 0, TraceLength) > trace.Requests(client-1, 0, TraceLength)*1.0001 {
			t.Errorf("client %d is larger than the one before", client)
		}
	}
	quietest := hours[0]
	for h, requests := range hours {
		quietest = min(quietest, requests)
		if requests > hours[0] {
			t.Errorf("hour %d has %.0f requests, the first %.0f", h, requests, hours[0])
		}
	}
	if hours[0] < 1.8*quietest {
		t.Errorf("busiest hour %.0f, quietest %.0f: the day is flat", hours[0], quietest)
	}
}

func TestArrivalsKeepRateAndBurstiness(t *testing.T) {
	t.Parallel()
	for _, cv := range []float64{0.3, 1, 2, 5} {
		t.Run(fmt.Sprint(cv), func(t *testing.T) {
			t.Parallel()
			const n, perSecond, scale = 200_000, 4.0, 0.5
			arrivals := NewArrivals(flat(t, perSecond, cv), scale, 7, 0)
			var last time.Duration
			var sum, squares float64
			for range n {
				a := arrivals.Next()
				gap := (a.At - last).Seconds()
				if gap < 0 {
					t.Fatalf("time goes back at %v", a.At)
				}
				last = a.At
				sum += gap
				squares += gap * gap
			}
			mean := sum / n
			got := math.Sqrt(squares/n-mean*mean) / mean
			if rate := 1 / mean; math.Abs(rate/(perSecond*scale)-1) > 0.05 {
				t.Errorf("rate %.3f a second, want %.3f within 5 %%", rate, perSecond*scale)
			}
			if math.Abs(got/cv-1) > 0.15 {
				t.Errorf("coefficient of variation %.3f, want %.3f within 15 %%", got, cv)
			}
		})
	}
}

// A bursty client must not begin with a burst: many short runs from offset 0 bring what the rate says.
func TestArrivalsHaveNoBurstAtTheStart(t *testing.T) {
	t.Parallel()
	trace := flat(t, 0.1, 5)
	total := 0
	const runs = 4000
	for seed := range uint64(runs) {
		arrivals := NewArrivals(trace, 1, seed, 0)
		for arrivals.Next().At < 100*time.Second {
			total++
		}
	}
	if mean := float64(total) / runs; math.Abs(mean/10-1) > 0.15 {
		t.Errorf("%.2f requests in the first 100 s on average, want 10", mean)
	}
}

func TestArrivalsFollowTheTrace(t *testing.T) {
	t.Parallel()
	trace := load(t)
	const scale = 0.1
	arrivals := NewArrivals(trace, scale, 1, 0)
	total, first := 0.0, 0.0
	perClient := make([]float64, trace.Clients())
	var last time.Duration
	for a := arrivals.Next(); a.At < TraceLength; a = arrivals.Next() {
		if a.At < last {
			t.Fatalf("time goes back at %v", a.At)
		}
		last = a.At
		total++
		perClient[a.Client]++
		if a.At < time.Hour {
			first++
		}
	}
	want, wantFirst := 0.0, 0.0
	for client := range trace.Clients() {
		want += trace.Requests(client, 0, TraceLength) * scale
		wantFirst += trace.Requests(client, 0, time.Hour) * scale
	}
	if math.Abs(total/want-1) > 0.05 {
		t.Errorf("%.0f requests in a day, want %.0f within 5 %%", total, want)
	}
	if math.Abs(first/wantFirst-1) > 0.05 {
		t.Errorf("%.0f requests in the busiest hour, want %.0f within 5 %%", first, wantFirst)
	}
	for client := range 10 {
		if want := trace.Requests(client, 0, TraceLength) * scale; math.Abs(perClient[client]/want-1) > 0.1 {
			t.Errorf("client %d: %.0f requests, want %.0f within 10 %%", client, perClient[client], want)
		}
	}
}

func TestArrivalsRepeat(t *testing.T) {
	t.Parallel()
	trace := load(t)
	draw := func(seed uint64) []Arrival {
		arrivals := NewArrivals(trace, 0.01, seed, 30*time.Minute)
		list := make([]Arrival, 500)
		for i := range list {
			list[i] = arrivals.Next()
		}
		return list
	}
	first, second, other := draw(1), draw(1), draw(2)
	same := 0
	for i := range first {
		if first[i] != second[i] {
			t.Fatalf("request %d differs with the same seed: %v, %v", i, first[i], second[i])
		}
		if first[i] == other[i] {
			same++
		}
		if first[i].At < 30*time.Minute {
			t.Fatalf("request %d is before the offset: %v", i, first[i].At)
		}
	}
	if same > 5 {
		t.Errorf("another seed gives the same %d of 500 requests", same)
	}
}

func TestReadTraceRefusesBadRows(t *testing.T) {
	t.Parallel()
	const heading = "window_start_s,client,rate_per_s,cv\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":             {"", "heading"},
		"no rows":           {heading, "no rows"},
		"columns":           {heading + "0,0,1\n", "line 2"},
		"start not aligned": {heading + "0,0,1,1\n601,0,1,1\n", "line 3: window_start_s"},
		"start too late":    {heading + "86400,0,1,1\n", "window_start_s"},
		"negative start":    {heading + "-600,0,1,1\n", "window_start_s"},
		"client":            {heading + "0,x,1,1\n", "client"},
		"huge client":       {heading + "0,1000,1,1\n", "client"},
		"gap in clients":    {heading + "0,1,1,1\n", "client 0 has less than one request"},
		"zero rate":         {heading + "0,0,0,1\n", "rate_per_s"},
		"negative rate":     {heading + "0,0,-1,1\n", "rate_per_s"},
		"NaN rate":          {heading + "0,0,NaN,1\n", "rate_per_s"},
		"infinite rate":     {heading + "0,0,+Inf,1\n", "rate_per_s"},
		"NaN cv":            {heading + "0,0,1,NaN\n", "cv"},
		"huge cv":           {heading + "0,0,1,1e9\n", "cv"},
		"twice":             {heading + "0,0,1,1\n0,0,1,1\n", "twice"},
	} {
		if _, err := ReadTrace(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add("window_start_s,client,rate_per_s,cv\n0,0,1,1\n600,0,2.5,0.3\n")
	f.Add("window_start_s,client,rate_per_s,cv\n0,0,1e-300,1000\n")
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := ReadTrace(strings.NewReader(text))
		if err != nil {
			return
		}
		for client := range trace.Clients() {
			requests := trace.Requests(client, 0, TraceLength)
			if !(requests >= 1) || math.IsInf(requests, 0) {
				t.Errorf("client %d has %g requests", client, requests)
			}
		}
	})
}
