package simulate

// tally is what a whole run counts.
type tally struct {
	reasons  map[string]int // refusals of the gate by decision
	cycles   int
	refusals int // of planned starts by the claim
}

func (t *tally) refused(decision string) { t.reasons[decision]++ }

type tenantTally struct{ arrivals, rejected int }

type laneTally struct {
	lenderWaits []uint32 // milliseconds that started tasks had waited for lent units, those that had
}

// partyTally is what a tenant got in a lane. Amounts are fairness milli-units, times microseconds.
type partyTally struct {
	waits      []uint32 // milliseconds from arrival to start, of every started task
	expired    int
	area       int64 // slot units × microseconds of work, up to the horizon
	got        int64 // started up to the horizon, by what it really took
	backlogged int64 // for how long it took part
	longest    int64 // the longest time without a break, and what it was owed and got in it
	longOwed   float64
	longGot    int64
	borrowed   int64 // slot units that it started on borrowed units
}

// lendingTally is what a lane lent. Each loan counts once for each of its units.
type lendingTally struct {
	promise int64    // microseconds
	peak    int64    // units that were out at a time
	times   []uint32 // milliseconds until a unit was back
	units   int64
	kept    int64 // units that were back within the lane's promise
	late    int64 // units that were not back by the attempt's deadline
}

func millis(micro int64) uint32 { return uint32(min(micro/1000, 1<<32-1)) } //nolint:gosec // bounded

func (l *lendingTally) back(t *task, now int64) {
	for range t.charge.SlotUnits {
		l.times = append(l.times, millis(now-t.began))
	}
	l.units += t.charge.SlotUnits
	if now-t.began <= l.promise {
		l.kept += t.charge.SlotUnits
	}
	if now > t.deadline {
		l.late += t.charge.SlotUnits
	}
}

func (p *party) started(t *task, w *world) {
	p.tally.waits = append(p.tally.waits, millis(w.now-t.at))
	if from, to := min(w.now, w.horizon), min(t.ends, w.horizon); to > from {
		p.tally.area += t.charge.SlotUnits * (to - from)
	}
	if t.start.Lender != "" {
		p.tally.borrowed += t.charge.SlotUnits
	}
	if waited := t.account.shortTime(w.now) - t.lent; waited > 0 {
		t.party.lane.tally.lenderWaits = append(t.party.lane.tally.lenderWaits, millis(waited))
	}
}
