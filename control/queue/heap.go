package queue

// Binary heaps over numbers whose places are written back, so that any element can be taken out.

func (m *Memory) taskBefore(a, b cell) bool {
	return a.since < b.since || a.since == b.since && m.before(a.num, b.num)
}

func (m *Memory) upTask(h []cell, i int) {
	for i > 0 {
		p := (i - 1) / 2
		if !m.taskBefore(h[i], h[p]) {
			return
		}
		h[i], h[p] = h[p], h[i]
		m.at[h[i].num], m.at[h[p].num] = int32(i), int32(p)
		i = p
	}
}

func (m *Memory) downTask(h []cell, i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && m.taskBefore(h[c+1], h[c]) {
			c++
		}
		if !m.taskBefore(h[c], h[i]) {
			return
		}
		h[i], h[c] = h[c], h[i]
		m.at[h[i].num], m.at[h[c].num] = int32(i), int32(c)
		i = c
	}
}

func (m *Memory) lineBefore(a, b cell) bool {
	return a.since < b.since || a.since == b.since && m.before(m.lines[a.num].heap[0].num, m.lines[b.num].heap[0].num)
}

func (m *Memory) upLine(h []cell, i int) {
	for i > 0 {
		p := (i - 1) / 2
		if !m.lineBefore(h[i], h[p]) {
			return
		}
		h[i], h[p] = h[p], h[i]
		m.lines[h[i].num].at, m.lines[h[p].num].at = int32(i), int32(p)
		i = p
	}
}

func (m *Memory) downLine(h []cell, i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && m.lineBefore(h[c+1], h[c]) {
			c++
		}
		if !m.lineBefore(h[c], h[i]) {
			return
		}
		h[i], h[c] = h[c], h[i]
		m.lines[h[i].num].at, m.lines[h[c].num].at = int32(i), int32(c)
		i = c
	}
}

// sooner orders delayed tasks by eligible time, then by arrival: tenants join their ring in that order.
func (m *Memory) sooner(a, b int32) bool {
	x, y := &m.tasks[a], &m.tasks[b]
	if x.eligible != y.eligible {
		return x.eligible < y.eligible
	}
	return int32(x.arrival-y.arrival) < 0
}

func (m *Memory) upDelayed(i int) {
	h := m.delayed
	for i > 0 {
		p := (i - 1) / 2
		if !m.sooner(h[i], h[p]) {
			return
		}
		h[i], h[p] = h[p], h[i]
		m.at[h[i]], m.at[h[p]] = int32(i), int32(p)
		i = p
	}
}

func (m *Memory) downDelayed(i int) {
	h := m.delayed
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && m.sooner(h[c+1], h[c]) {
			c++
		}
		if !m.sooner(h[c], h[i]) {
			return
		}
		h[i], h[c] = h[c], h[i]
		m.at[h[i]], m.at[h[c]] = int32(i), int32(c)
		i = c
	}
}

func (m *Memory) pushDelayed(ref int32) {
	m.delayed = append(m.delayed, ref)
	i := len(m.delayed) - 1
	m.at[ref] = int32(i)
	m.upDelayed(i)
}

func (m *Memory) popDelayed(ref int32) {
	i, last := int(m.at[ref]), len(m.delayed)-1
	m.delayed[i] = m.delayed[last]
	m.at[m.delayed[i]] = int32(i)
	m.delayed = m.delayed[:last]
	if i < last {
		m.upDelayed(i)
		m.downDelayed(i)
	}
	m.at[ref] = -1
}
