package simulate

import (
	"fairlane/control/admit"
	"fairlane/policy"
)

// lane is a lane with what its tenants were owed and got.
//
// Whoever has a task that nothing of its own holds back (its maximum, its user's cap) takes part in the
// lane's service at that moment. Of each milli-unit that is served then, everyone who takes part is owed
// its weight's share: worth counts milli-units per unit of weight since the start, as a clock that runs at
// the speed of the service, so that what a tenant was owed is weight × what worth has grown by meanwhile.
type lane struct {
	rule    *policy.Lane
	index   int
	parties []*party
	load    *admit.LaneLoad
	weights int64 // of those who take part
	worth   float64
	sizes   sizes // of what waits
	tally   laneTally
}

// party is a tenant inside a lane.
type party struct {
	tenant   *tenant
	lane     *lane
	runnable int64 // waiting tasks whose user is below its cap
	takes    bool  // part in the lane's service
	since    int64
	from     float64 // worth when it began to take part
	got      int64   // what it had been served in turn by then
	tally    partyTally
}

func (w *world) party(t *tenant, l *lane) *party {
	for _, p := range t.parties {
		if p.lane == l {
			return p
		}
	}
	p := &party{tenant: t, lane: l}
	t.parties = append(t.parties, p)
	l.parties = append(l.parties, p)
	return p
}

// settleStand looks whether a party takes part now. It must be called whenever what waits or runs changes.
func (w *world) settleStand(p *party) {
	t := p.tenant
	use := w.count.tenants[t.account.ID]
	takes := p.runnable > 0 && t.settings.Weight > 0 && t.account.Active() &&
		use.Tasks < t.settings.MaxRunningTasks && use.Units+p.lane.sizes.least() <= t.settings.MaxRunningUnits
	if takes == p.takes {
		return
	}
	p.takes = takes
	if takes {
		p.lane.weights += t.settings.Weight
		p.since, p.from, p.got = w.now, p.lane.worth, p.tally.inTurn
		p.tally.shares++
		return
	}
	p.close(w.now, w.horizon)
	p.lane.weights -= t.settings.Weight
}

// close accounts for the time that a party has taken part, up to now.
func (p *party) close(now, horizon int64) {
	now, p.since = min(now, horizon), min(p.since, horizon)
	p.tally.backlogged += now - p.since
	owed := float64(p.tenant.settings.Weight) * (p.lane.worth - p.from)
	p.tally.owed += owed
	if now-p.since > p.tally.longest {
		p.tally.longest, p.tally.longOwed, p.tally.longGot = now-p.since, owed, p.tally.inTurn-p.got
	}
	p.since, p.from, p.got = now, p.lane.worth, p.tally.inTurn
}

// serve accounts for milli-units that a party was served, or given back when it took less than estimated.
// After the horizon nothing is owed any more.
func (w *world) serve(p *party, milli int64) {
	if w.now > w.horizon {
		return
	}
	p.tally.served += milli
	if p.takes {
		p.lane.worth += float64(milli) / float64(p.lane.weights)
		p.tally.inTurn += milli
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
