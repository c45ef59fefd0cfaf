package simulate

import (
	"fairlane/control"
	"maps"
	"math"
	"slices"
)

// Result is what a run came to. Times are seconds, amounts fairness units, shares parts of one. Fields of
// which nothing can be said (no task started, nobody was held back) are NaN in memory and null in JSON.
type Result struct {
	Mode        Mode           `json:"mode"`
	Seed        uint64         `json:"seed"`
	Hours       float64        `json:"hours"` // of the trace
	Tasks       int            `json:"tasks"`
	Started     int            `json:"started"`
	Rejected    int            `json:"rejected"`
	Expired     int            `json:"expired"`     // their patience ended
	NeverStart  int            `json:"never_start"` // waited to the end of the run
	Reasons     map[string]int `json:"reasons"`     // of rejections, by decision
	Wait        Waits          `json:"wait"`
	Jain        Number         `json:"jain"` // of got ÷ owed over tenants that had to share
	Groups      []GroupResult  `json:"groups"`
	Lanes       []LaneResult   `json:"lanes"`
	Tenants     []TenantResult `json:"tenants"` // in the order of the trace, a row for each of their lanes
	Plans       int            `json:"plans"`   // cycles of the planner
	Refusals    int            `json:"refusals"`
	MeanService float64        `json:"mean_service"` // seconds of a task's work, over the trace
}

// Waits are from arrival to start.
type Waits struct {
	P50 Number `json:"p50"`
	P95 Number `json:"p95"`
	P99 Number `json:"p99"`
	Max Number `json:"max"`
}

// GroupResult is a pool group.
type GroupResult struct {
	Group       string  `json:"group"`
	Capacity    int64   `json:"capacity"` // slot units
	Utilisation float64 `json:"utilisation"`
	Peak        int64   `json:"peak"` // slot units
}

// LaneResult is a lane over all its groups.
type LaneResult struct {
	Lane       string   `json:"lane"`
	Started    int      `json:"started"`
	Expired    int      `json:"expired"`
	NeverStart int      `json:"never_start"`
	Starved    int      `json:"starved"` // tenants with weight whose tasks wait, of which none has ever started
	Wait       Waits    `json:"wait"`
	Share      float64  `json:"share"` // of all that was served
	Busy       float64  `json:"busy"`  // slot units, mean
	Borrowed   int64    `json:"borrowed"`
	Lending    *Lending `json:"lending,omitempty"` // nil: it may lend nothing
}

// Lending is how a lane's lent units came back.
type Lending struct {
	Units     int64  `json:"units"` // lent and returned, each loan for each of its units
	Peak      int64  `json:"peak"`  // out at a time
	Promise   Number `json:"promise"`
	P50       Number `json:"p50"`
	P95       Number `json:"p95"`
	Max       Number `json:"max"`
	Kept      Number `json:"kept"` // share that was back within the promise
	Late      int64  `json:"late"` // units that were not back by the attempt's deadline
	Waited    int    `json:"waited"`
	WaitedP95 Number `json:"waited_p95"` // of the lane's tasks that waited for lent units: for how long
	WaitedMax Number `json:"waited_max"`
}

// TenantResult is a tenant in a lane.
type TenantResult struct {
	Tenant     string  `json:"tenant"`
	Lane       string  `json:"lane"`
	Weight     int64   `json:"weight"`
	Arrivals   int     `json:"arrivals"` // of the tenant, in all lanes
	Rejected   int     `json:"rejected"` // likewise
	Started    int     `json:"started"`
	Expired    int     `json:"expired"`
	NeverStart int     `json:"never_start"`
	Wait       Waits   `json:"wait"`
	Busy       float64 `json:"busy"`       // slot units, mean
	Share      float64 `json:"share"`      // of what its lane was served
	Entitled   Number  `json:"entitled"`   // owed, of what its lane was served
	Got        Number  `json:"got"`        // fairness units by what its tasks really took
	Owed       Number  `json:"owed"`       // what weights alone would have given it of the lane's service, and no more than it asked for
	Error      Number  `json:"error"`      // got ÷ owed − 1
	Backlogged Number  `json:"backlogged"` // part of the time in which it had tasks that nothing of its own held back
	// The longest such time without a break, and the error in it; not known below 15 minutes.
	LongestHours Number `json:"longest_hours"`
	LongestError Number `json:"longest_error"`
	Borrowed     int64  `json:"borrowed"` // slot units that it started on borrowed ones
	Factor       Number `json:"factor"`   // learnt: what its tasks take over what such tasks take
}

func (w *world) report() *Result {
	r := &Result{
		Mode: w.cfg.Mode, Seed: max(w.cfg.Seed, 1), Hours: float64(w.horizon) / 3600e6,
		Tasks: len(w.arrival), Reasons: maps.Clone(w.result.reasons), Plans: w.result.cycles, Refusals: w.result.refusals,
	}
	if r.Mode == "" {
		r.Mode = Fairlane
	}
	for i := range w.arrival {
		r.MeanService += float64(w.arrival[i].Duration) / 1e6 / float64(len(w.arrival))
	}
	left := map[*party]int{}
	for _, t := range w.waiting {
		left[t.party]++
	}
	for _, g := range w.groups {
		g.use(0, w.horizon, w.horizon)
		out := GroupResult{Group: g.code, Capacity: g.capacity, Peak: g.peak}
		if g.capacity > 0 && w.horizon > 0 {
			out.Utilisation = float64(g.area) / float64(w.horizon) / float64(g.capacity)
		}
		r.Groups = append(r.Groups, out)
	}
	var served int64
	byLane := map[*lane]int64{}
	for _, t := range w.tenants {
		for _, p := range t.parties {
			if p.takes {
				p.close(w.now, w.horizon)
			}
			served += p.tally.got
			byLane[p.lane] += p.tally.got
		}
	}
	var all []uint32
	for _, l := range w.order {
		out := w.laneResult(l, left)
		out.Share = ratio(byLane[l], served)
		r.Lanes = append(r.Lanes, out)
		r.Started += out.Started
		r.Expired += out.Expired
		r.NeverStart += out.NeverStart
		for _, p := range l.parties {
			all = append(all, p.tally.waits...)
		}
	}
	r.Wait = waitsOf(all)
	for _, t := range w.tenants {
		r.Rejected += t.tally.rejected
		for _, p := range t.parties {
			r.Tenants = append(r.Tenants, w.tenantResult(p, left[p], byLane[p.lane]))
		}
		if len(t.parties) == 0 && t.tally.arrivals > 0 {
			r.Tenants = append(r.Tenants, TenantResult{
				Tenant: t.account.Code, Lane: t.settings.Lane, Weight: t.settings.Weight, Arrivals: t.tally.arrivals, Rejected: t.tally.rejected,
				Wait: waitsOf(nil), Backlogged: none, Got: none, Owed: none, Error: none, Entitled: none, LongestHours: none, LongestError: none, Factor: none,
			})
		}
	}
	r.Jain = jain(r.Tenants)
	return r
}

func (w *world) laneResult(l *lane, left map[*party]int) LaneResult {
	out := LaneResult{Lane: l.rule.Code}
	var waits []uint32
	for _, p := range l.parties {
		waits = append(waits, p.tally.waits...)
		out.Started += len(p.tally.waits)
		out.Expired += p.tally.expired
		out.NeverStart += left[p]
		out.Borrowed += p.tally.borrowed
		out.Busy += float64(p.tally.area)
		if left[p] > 0 && len(p.tally.waits) == 0 && p.tenant.settings.Weight > 0 {
			out.Starved++
		}
	}
	if w.horizon > 0 {
		out.Busy /= float64(w.horizon)
	}
	out.Wait = waitsOf(waits)
	for _, a := range w.every {
		if a.lane != l || a.rule.LendableUnits == 0 {
			continue
		}
		if out.Lending == nil {
			out.Lending = &Lending{Promise: Number(a.rule.BorrowTimeout)}
		}
		out.Lending.add(a)
	}
	if out.Lending != nil {
		out.Lending.finish(w.every, l)
	}
	return out
}

func (n *Lending) add(a *account) {
	n.Units += a.lending.units
	n.Peak += a.lending.peak
	n.Late += a.lending.late
	n.Promise = max(n.Promise, Number(a.rule.BorrowTimeout))
}

func (n *Lending) finish(accounts []*account, l *lane) {
	var times []uint32
	var kept int64
	for _, a := range accounts {
		if a.lane == l {
			times = append(times, a.lending.times...)
			kept += a.lending.kept
		}
	}
	back := waitsOf(times)
	n.P50, n.P95, n.Max = back.P50, back.P95, back.Max
	n.Kept = none
	if n.Units > 0 {
		n.Kept = Number(float64(kept) / float64(n.Units))
	}
	n.Waited = len(l.tally.lenderWaits)
	waited := waitsOf(slices.Clone(l.tally.lenderWaits))
	n.WaitedP95, n.WaitedMax = waited.P95, waited.Max
}

func (w *world) tenantResult(p *party, left int, served int64) TenantResult {
	t := &p.tally
	out := TenantResult{
		Tenant: p.tenant.account.Code, Lane: p.lane.rule.Code, Weight: p.tenant.settings.Weight,
		Arrivals: p.tenant.tally.arrivals, Rejected: p.tenant.tally.rejected,
		Started: len(t.waits), Expired: t.expired, NeverStart: left, Wait: waitsOf(slices.Clone(t.waits)),
		Share: ratio(t.got, served), Borrowed: t.borrowed,
		Backlogged: none, Got: none, Owed: none, Error: none, Entitled: none, LongestHours: none, LongestError: none, Factor: none,
	}
	if w.horizon > 0 {
		out.Busy = float64(t.area) / float64(w.horizon)
		out.Backlogged = Number(float64(t.backlogged) / float64(w.horizon))
	}
	out.Got = Number(float64(t.got) / control.Milli)
	if owed := p.lane.fluid.owed(&p.fluidShare); owed > 0 {
		out.Owed = Number(owed / control.Milli)
		out.Error = Number(float64(t.got)/owed - 1)
		if served > 0 {
			out.Entitled = Number(owed / float64(served))
		}
	}
	if t.longOwed > 0 && t.longest >= leastLongest {
		out.LongestHours = Number(float64(t.longest) / 3600e6)
		out.LongestError = Number(float64(t.longGot)/t.longOwed - 1)
	}
	if p.tenant.factor.Tasks > 0 {
		out.Factor = Number(p.tenant.factor.Value)
	}
	return out
}

// leastLongest is the shortest time without a break over which a share means anything.
const leastLongest = 15 * 60 * secondsInMicro

func ratio(part, of int64) float64 {
	if of <= 0 {
		return 0
	}
	return float64(part) / float64(of)
}

// leastOwed is the fairness units that a tenant must have been owed to count in Jain's index.
const leastOwed = 50

// jain is (Σx)² ÷ (n·Σx²) of x = got ÷ owed (Jain, Chiu, Hawe, DEC TR-301, 1984): 1 when everyone got
// what it was owed, 1/n when one got everything.
func jain(list []TenantResult) Number {
	var n, sum, squares float64
	for i := range list {
		if t := &list[i]; t.Owed >= leastOwed {
			x := float64(t.Got / t.Owed)
			n, sum, squares = n+1, sum+x, squares+x*x
		}
	}
	if n < 2 || squares == 0 {
		return none
	}
	return Number(sum * sum / (n * squares))
}

// waitsOf sorts the list, of milliseconds.
func waitsOf(list []uint32) Waits {
	if len(list) == 0 {
		return Waits{none, none, none, none}
	}
	slices.Sort(list)
	at := func(q float64) Number { // the smallest value that at least q of the list do not pass
		return Number(float64(list[max(0, int(math.Ceil(q*float64(len(list))))-1)]) / 1000)
	}
	return Waits{at(0.5), at(0.95), at(0.99), at(1)}
}
