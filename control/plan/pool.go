package plan

// pool is a leaf or a cap group with what it holds.
type pool struct {
	rule   *poolRule
	used   int64
	limit  int64            // adaptive limit; -1: none
	broken bool             // its breaker is open
	lanes  map[string]int64 // used units by lane, when lanes have minimums in it
	groups []*pool          // cap groups that contain it
	hold   *passed          // whose units it keeps; nil: nobody's
	stands []*stand         // whose tasks may run in it
	closed int64            // no ticket after this look may have it
}

// ranked is a candidate pool of a need.
type ranked struct {
	*pool
	preference int64
	widest     int64 // largest task of the lane that could ever run in it
}

// setPools follows the policy's pools; those that stay keep their counters.
func (p *Planner) setPools() {
	was := p.pools
	p.pools = make(map[string]*pool, len(p.rules.pools))
	for key, rule := range p.rules.pools {
		o := was[key]
		if o == nil {
			o = &pool{limit: -1}
		}
		o.rule, o.stands = rule, nil
		p.pools[key] = o
	}
	for _, o := range p.pools {
		o.groups = o.groups[:0]
		for _, key := range o.rule.groups {
			o.groups = append(o.groups, p.pools[key])
		}
	}
}

// room is what the pool alone can still take; below 0 when it is over.
func (o *pool) room() int64 {
	if o.rule.paused || o.broken {
		return 0
	}
	free := o.rule.capacity - o.used
	if o.limit >= 0 {
		free = min(free, o.limit-o.used)
	}
	return free
}

// roomFor is what the pool alone can still take of a lane's task: without the minimums of other lanes,
// and without what it keeps for somebody else.
func (o *pool) roomFor(lane string, by *passed) int64 {
	free := o.room()
	if o.rule.entry.LaneMinimums != nil {
		free -= o.kept(lane)
	}
	if o.hold != nil && o.hold != by {
		free -= o.hold.units
	}
	return free
}

// kept is what the minimums of other lanes still keep.
func (o *pool) kept(lane string) (units int64) {
	for _, m := range o.rule.entry.LaneMinimums {
		if m.Lane != lane {
			units += max(0, m.Units-o.lanes[m.Lane])
		}
	}
	return units
}

// free is what the pool and every cap group that contains it can still take, whoever comes.
func (o *pool) free() int64 {
	f := o.room()
	for _, g := range o.groups {
		f = min(f, g.room())
	}
	return f
}

// freeFor is the same for a task of a lane.
func (o *pool) freeFor(lane string, by *passed) int64 {
	f := o.roomFor(lane, by)
	for _, g := range o.groups {
		f = min(f, g.roomFor(lane, by))
	}
	return f
}

// widest is the largest task of a lane that could ever run in the pool under the policy in force.
func (o *pool) widest(lane string) int64 {
	w := o.rule.capacityFor(lane)
	for _, g := range o.groups {
		w = min(w, g.rule.capacityFor(lane))
	}
	return w
}

func (r *poolRule) capacityFor(lane string) int64 { return r.capacity - r.entry.KeptFrom(lane) }

func (o *pool) take(lane string, units int64) {
	o.count(lane, units)
	for _, g := range o.groups {
		g.count(lane, units)
	}
}

func (o *pool) count(lane string, units int64) {
	o.used += units
	if o.rule.entry.LaneMinimums != nil {
		if o.lanes == nil {
			o.lanes = map[string]int64{}
		}
		o.lanes[lane] += units
	}
}

// freer reports whether the pool has a larger share of its own units free than another.
func (o *pool) freer(than *pool) bool {
	return o.room()*than.rule.capacity > than.room()*o.rule.capacity
}

// loadPools takes the pools' counters over.
func (p *Planner) loadPools(pools map[string]PoolUse) {
	for key, o := range p.pools {
		use, ok := pools[key]
		if !ok {
			use.Limit = -1
		}
		o.used, o.limit, o.broken = use.Used, use.Limit, use.Open
		o.lanes = nil
		if o.rule.entry.LaneMinimums != nil {
			o.lanes = make(map[string]int64, len(use.Lanes))
			for lane, units := range use.Lanes {
				o.lanes[lane] = units
			}
		}
	}
}
