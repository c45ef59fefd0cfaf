package plan

// noted is a number that was true of a party when it was noted.
type noted struct {
	value int64
	party *party
}

// notes is a heap of numbers about parties, the smallest on top. Numbers that are no longer true stay
// until they come to the top or until most of them are like that.
type notes []noted

func (n *notes) push(value int64, m *party) {
	*n = append(*n, noted{value, m})
	h := *n
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if h[i].value >= h[up].value {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (n *notes) pop() noted {
	h := *n
	top, last := h[0], len(h)-1
	h[0], h[last] = h[last], noted{}
	*n = h[:last]
	n.down(0)
	return top
}

func (n *notes) down(i int) {
	h := *n
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1].value < h[c].value {
			c++
		}
		if h[i].value <= h[c].value {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

// keep drops what is no longer true.
func (n *notes) keep(true func(noted) bool) {
	kept := (*n)[:0]
	for _, x := range *n {
		if true(x) {
			kept = append(kept, x)
		}
	}
	clear((*n)[len(kept):])
	*n = kept
	for i := len(kept)/2 - 1; i >= 0; i-- {
		n.down(i)
	}
}

// costs finds the most expensive head of a lane. Costs are noted as negative numbers.
type costs struct{ notes }

// holds reports whether a note is still true; of one that is not, the party is told that it goes.
func (c *costs) holds(x noted) bool {
	if x.party.live && x.party.largest == -x.value {
		return true
	}
	if x.party.noted == -x.value {
		x.party.noted = 0
	}
	return false
}

func (c *costs) note(m *party, live int) {
	if m.noted == m.largest {
		return
	}
	if len(c.notes) > 4*live+64 {
		c.keep(c.holds)
	}
	m.noted = m.largest
	c.push(-m.largest, m)
}

// max returns the cost of the most expensive head in milli-units; 0 when there is none.
func (c *costs) max() int64 {
	for len(c.notes) > 0 {
		if x := c.notes[0]; c.holds(x) {
			return -x.value
		}
		c.pop()
	}
	return 0
}

// agings finds the parties whose heads change their order by time alone.
type agings struct {
	notes
	last int // how many were true when they were last gone through
}

func (a *agings) add(m *party, at int64) {
	if m.ages == at {
		return
	}
	if len(a.notes) > 1024 && len(a.notes) > 4*a.last {
		a.keep(func(x noted) bool { return x.party.ages == x.value })
		a.last = len(a.notes)
	}
	m.ages = at
	a.push(at, m)
}

// due takes out a party whose time has come; nil when there is none.
func (a *agings) due(now int64) *party {
	for len(a.notes) > 0 && a.notes[0].value <= now {
		if x := a.pop(); x.party.ages == x.value {
			x.party.ages = 0
			return x.party
		}
	}
	return nil
}
