package queue

import (
	"time"

	"github.com/google/uuid"
)

// depth counts what waits in a lane; the oldest is found through a heap from which tasks that have
// left are dropped when they come to the top.
type depth struct {
	tasks, milli int64
	oldest       []aged
}

type aged struct {
	since int64
	ref   int32
	part  uint32 // of the task's id, so that a place that was given away is recognised
}

func (m *Memory) depth(lane string) *depth {
	d, ok := m.lanes[lane]
	if !ok {
		d = &depth{}
		m.lanes[lane] = d
	}
	return d
}

func (d *depth) add(m *Memory, ref int32) {
	t := &m.tasks[ref]
	d.tasks++
	d.milli += int64(t.cost)
	if len(d.oldest) > 1024 && int64(len(d.oldest)) > 2*d.tasks {
		d.sweep(m)
	}
	d.oldest = append(d.oldest, aged{t.since, ref, idPart(t.id)})
	for i := len(d.oldest) - 1; i > 0; {
		p := (i - 1) / 2
		if d.oldest[i].since >= d.oldest[p].since {
			break
		}
		d.oldest[i], d.oldest[p] = d.oldest[p], d.oldest[i]
		i = p
	}
}

func (d *depth) remove(cost int32) {
	d.tasks--
	d.milli -= int64(cost)
}

func idPart(id uuid.UUID) uint32 {
	return uint32(id[12])<<24 | uint32(id[13])<<16 | uint32(id[14])<<8 | uint32(id[15])
}

func (d *depth) live(m *Memory, a aged) bool {
	t := &m.tasks[a.ref]
	return t.line >= 0 && t.since == a.since && idPart(t.id) == a.part
}

func (d *depth) sweep(m *Memory) {
	kept := d.oldest[:0]
	for _, a := range d.oldest {
		if d.live(m, a) {
			kept = append(kept, a)
		}
	}
	d.oldest = kept
	for i := len(kept)/2 - 1; i >= 0; i-- {
		d.down(i)
	}
}

func (d *depth) down(i int) {
	h := d.oldest
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1].since < h[c].since {
			c++
		}
		if h[c].since >= h[i].since {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

// Depth returns what waits in a lane, delayed and parked tasks included.
func (m *Memory) Depth(lane string) Depth {
	d, ok := m.lanes[lane]
	if !ok {
		return Depth{}
	}
	for len(d.oldest) > 0 && !d.live(m, d.oldest[0]) {
		last := len(d.oldest) - 1
		d.oldest[0] = d.oldest[last]
		d.oldest = d.oldest[:last]
		d.down(0)
	}
	out := Depth{Tasks: d.tasks, Milli: d.milli}
	if len(d.oldest) > 0 {
		out.Oldest = time.UnixMicro(d.oldest[0].since).UTC()
	}
	return out
}

// tombLimit is the number of removed tasks, at least, whose late events are recognised. Older ones may
// come back for a moment; the claim then refuses them.
const tombLimit = 65_536

// tombs remembers the versions of the tasks removed last, in two generations of which the older one is
// forgotten as a whole.
type tombs struct{ young, old map[uuid.UUID]int64 }

func (g *tombs) add(id uuid.UUID, version int64) {
	if len(g.young) >= tombLimit || g.young == nil {
		g.old, g.young = g.young, make(map[uuid.UUID]int64)
	}
	if !g.covers(id, version) {
		g.young[id] = version
	}
}

func (g *tombs) covers(id uuid.UUID, version int64) bool {
	v, ok := g.young[id]
	if !ok {
		v, ok = g.old[id]
	}
	return ok && version <= v
}

// Len is how many tasks the queue holds, delayed and parked ones included.
func (m *Memory) Len() int { return len(m.byID) }
