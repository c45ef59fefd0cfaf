package monitor

// What schedulers remember is read with the machine, and shown beside the counters that are read more often.

// earmark sets what the schedulers keep in a pool. Whose task it is stays with those who may see it.
func (s *State) earmark(p *PoolRow) {
	for _, e := range s.Schedulers[p.Group].Earmarks {
		if e.Pool == p.Key {
			p.Earmarked, p.EarmarkLane, p.EarmarkEnds = e.Units, e.Lane, e.Until
		}
	}
}

func (s *State) history() HistoryRow {
	if s.SampledAt.IsZero() {
		return HistoryRow{}
	}
	return HistoryRow{SampledMilli: s.SampledAt.UnixMilli()}
}
