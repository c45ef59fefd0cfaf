package plan

import "fairlane/control"

// pool is a leaf or a cap group with what it holds.
type pool struct {
	rule   *poolRule
	used   int64
	limit  int64   // adaptive limit; -1: none
	groups []*pool // cap groups that contain it
}

// ranked is a candidate pool of a need.
type ranked struct {
	*pool
	preference int64
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
		o.rule = rule
		p.pools[key] = o
	}
	for _, o := range p.pools {
		o.groups = o.groups[:0]
		for _, key := range o.rule.groups {
			o.groups = append(o.groups, p.pools[key])
		}
	}
	clear(p.needs)
}

// need gives a need of the queue with its pools, resolved once per publish.
func (p *Planner) need(id int) *need {
	for len(p.needs) <= id {
		p.needs = append(p.needs, nil)
	}
	if p.needs[id] == nil {
		p.needs[id] = p.resolve(p.queue.Need(id))
		p.needs[id].id = id
	}
	return p.needs[id]
}

// resolve finds the candidate pools of a need under the policy in force.
func (p *Planner) resolve(what control.Need) *need {
	n := &need{Need: what}
	for _, c := range p.rules.byModel[n.Model] {
		o := p.pools[c.pool.key]
		n.pools = append(n.pools, ranked{o, c.preference})
		n.widest = max(n.widest, o.widest())
	}
	return n
}

// widest is the largest task that could ever run in the pool under the policy in force.
func (o *pool) widest() int64 {
	w := o.rule.capacity
	for _, g := range o.groups {
		w = min(w, g.rule.capacity)
	}
	return w
}

// room is what the pool alone can still take; below 0 when it is over.
func (o *pool) room() int64 {
	if o.rule.paused {
		return 0
	}
	free := o.rule.capacity - o.used
	if o.limit >= 0 {
		free = min(free, o.limit-o.used)
	}
	return free
}

// free is what the pool and every cap group that contains it can still take.
func (o *pool) free() int64 {
	f := o.room()
	for _, g := range o.groups {
		f = min(f, g.room())
	}
	return f
}

func (o *pool) take(units int64) {
	o.used += units
	for _, g := range o.groups {
		g.used += units
	}
}

// fit returns the best candidate pool with room: by preference, then the largest share of free units,
// then key; nil when none has room.
func (n *need) fit() *pool {
	var best *pool
	var rank int64
	for _, c := range n.pools {
		if best != nil && c.preference > rank {
			break
		}
		if c.free() >= n.SlotUnits && (best == nil || c.freer(best)) {
			best, rank = c.pool, c.preference
		}
	}
	return best
}

// freer reports whether the pool has a larger share of its own units free than another.
func (o *pool) freer(than *pool) bool {
	return o.room()*than.rule.capacity > than.room()*o.rule.capacity
}

// account returns whose units a start in the lane would use; "" when there are none.
func (p *Planner) account(l *lane, slots int64) control.Account {
	switch {
	case l.own() >= slots:
		return control.AccountOwn
	case p.rules.common-p.common >= slots:
		return control.AccountCommon
	}
	return ""
}

// own is what the lane has left of its reserve.
func (l *lane) own() int64 { return l.rule.reserved - l.use.Own - l.use.Lent }
