package demo

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Request is one submit of the demo's traffic.
type Request struct {
	At          time.Duration // real time since the start of the traffic
	Tenant      int           // place in Platform.Tenants
	User        int           // place in the tenant's Users
	Model       string
	CancelAfter time.Duration // real time after which the user gives up; 0: never
}

// Traffic is the demo's stream of requests. It belongs to one goroutine.
type Traffic struct {
	platform *Platform
	arrivals *Arrivals
	chance   *rand.Rand
	from     time.Duration
}

// cancelShare of the requests are cancelled, about half of them after they have started.
const cancelShare = 0.015

// Traffic begins at an offset of the trace (virtual; 0 is the busiest hour) and never ends. The same seed
// and offset give the same requests.
func (p *Platform) Traffic(seed uint64, from time.Duration) *Traffic {
	return &Traffic{
		platform: p, from: from,
		arrivals: NewArrivals(p.trace, p.scale, seed, from),
		chance:   rand.New(rand.NewPCG(seed, 1<<32)), // no client has that number
	}
}

// Next returns the next request.
func (t *Traffic) Next() Request {
	a := t.arrivals.Next()
	mix := t.platform.mixes[a.Client]
	at := t.chance.Float64() * mix[len(mix)-1]
	m, _ := slices.BinarySearch(mix, at)
	r := Request{
		At:     divided(a.At-t.from, t.platform.Speed),
		Tenant: a.Client,
		User:   t.chance.IntN(len(t.platform.Tenants[a.Client].Users)),
		Model:  models[min(m, len(models)-1)].code,
	}
	if t.chance.Float64() < cancelShare {
		mean := t.platform.Renders[r.Model].Mean()
		r.CancelAfter = time.Duration((0.1 + 1.9*t.chance.Float64()) * float64(mean))
	}
	return r
}

// busiest is the hour whose load is stated.
const busiest = time.Hour

// demand decides which models each tenant asks for and how the trace is scaled, so that in the busiest
// hour every model is asked for peakLoad times what its pools can do. It starts from the tenants' tastes
// and scales rows (a tenant's requests) and columns (a model's capacity) in turn until both are met.
func (p *Platform) demand() (cumulative [][]float64, scale float64) {
	units := modelUnits()
	columns := make([]float64, len(models))
	var all, requests float64
	for m := range models {
		columns[m] = units[models[m].code] / models[m].render().Mean().Seconds() // starts per second
		all += columns[m]
	}
	rows := make([]float64, len(p.Tenants))
	for t := range rows {
		rows[t] = p.trace.Requests(t, 0, busiest)
		requests += rows[t]
	}
	share := tastes(p.Tenants)
	for range 500 {
		for m := range columns {
			sum := 0.0
			for t := range rows {
				sum += share[t][m]
			}
			for t := range rows {
				share[t][m] *= columns[m] / all * requests / sum
			}
		}
		for t := range rows {
			sum := 0.0
			for m := range columns {
				sum += share[t][m]
			}
			for m := range columns {
				share[t][m] *= max(rows[t], 1) / sum
			}
		}
	}
	for t := range share {
		for m := 1; m < len(models); m++ {
			share[t][m] += share[t][m-1]
		}
	}
	return share, peakLoad * all * busiest.Seconds() / requests
}

// tastes are how much a tenant likes each model before capacity has its say; 0 where its plan forbids it.
func tastes(tenants []Tenant) [][]float64 {
	chance := rand.New(rand.NewPCG(2026, 11))
	list := make([][]float64, len(tenants))
	for t := range tenants {
		for _, m := range models {
			taste := 0.3 + chance.ExpFloat64()
			dear := float64(m.cents) / 50
			switch tenants[t].Plan {
			case planEnterprise, planBusiness:
				taste *= 1 + dear/4
			case planStandard:
				taste /= 1 + dear/2
			case planFree:
				if !slices.Contains(affordable, m.code) {
					taste = 0
				}
			}
			list[t] = append(list[t], taste)
		}
	}
	return list
}
