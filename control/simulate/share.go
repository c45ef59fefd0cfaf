package simulate

import (
	"fairlane/control/admit"
	"fairlane/policy"
)

// lane is a lane with what its tenants were owed and got.
type lane struct {
	rule    *policy.Lane
	index   int
	parties []*party
	load    *admit.LaneLoad
	sizes   sizes // of what waits
	taking  int   // parties that take part
	fluid   fluid
	tally   laneTally
}

// party is a tenant inside a lane.
type party struct {
	fluidShare
	tenant   *tenant
	lane     *lane
	waiting  int64 // tasks
	runnable int64 // those whose user is below its cap
	takes    bool  // something waits that nothing of the tenant's own holds back
	held     bool  // something waits, and something of its own holds all of it back
	since    int64 // it takes part, and what it had got and was owed by then
	had      int64
	due      float64
	tally    partyTally
}

func (w *world) party(t *tenant, l *lane) *party {
	for _, p := range t.parties {
		if p.lane == l {
			return p
		}
	}
	p := &party{tenant: t, lane: l}
	p.weight = float64(t.settings.Weight)
	t.parties = append(t.parties, p)
	l.parties = append(l.parties, p)
	return p
}

// settleStand looks whether a party takes part now. It must be called whenever what waits or runs changes.
func (w *world) settleStand(p *party) {
	t := p.tenant
	use := w.count.tenants[t.account.ID]
	takes := p.runnable > 0 && t.account.Active() &&
		use.Tasks < t.settings.MaxRunningTasks && use.Units+p.lane.sizes.least() <= t.settings.MaxRunningUnits
	if held := p.waiting > 0 && !takes; held != p.held {
		p.held = held
		p.lane.fluid.hold(&p.fluidShare, held)
	}
	if takes == p.takes {
		return
	}
	p.takes = takes
	if takes {
		p.lane.taking++
		p.since, p.had, p.due = w.now, p.tally.got, p.lane.fluid.owed(&p.fluidShare)
		return
	}
	p.lane.taking--
	p.close(w.now, w.horizon)
}

// close accounts for the time that a party has taken part, up to now.
func (p *party) close(now, horizon int64) {
	now, since := min(now, horizon), min(p.since, horizon)
	p.tally.backlogged += now - since
	if now-since > p.tally.longest {
		p.tally.longest, p.tally.longGot = now-since, p.tally.got-p.had
		p.tally.longOwed = p.lane.fluid.owed(&p.fluidShare) - p.due
	}
	p.since = now
}

// serve accounts for a start: milli-units by what the task will really take. After the horizon nobody is
// owed anything any more.
func (w *world) serve(p *party, milli int64) {
	if w.now > w.horizon {
		return
	}
	p.tally.got += milli
	if p.weight > 0 {
		p.lane.fluid.serve(float64(milli))
	}
}

// sizes counts waiting tasks by slot units; there are a handful of sizes.
type sizes []size

type size struct{ slots, n int64 }

func (s *sizes) count(slots, by int64) {
	for i := range *s {
		if (*s)[i].slots == slots {
			(*s)[i].n += by
			return
		}
	}
	*s = append(*s, size{slots, by})
}

// least is the smallest of the waiting tasks; 1 when none waits.
func (s sizes) least() int64 {
	var least int64
	for _, x := range s {
		if x.n > 0 && (least == 0 || x.slots < least) {
			least = x.slots
		}
	}
	return max(least, 1)
}
