package fair

// Due is something that waits for its member's turn in a set of dues. It lies in one set at a time.
type Due struct {
	Member *Member
	Cost   int64 // scaled; at most the member's cap
	at     int32 // place in the heap; ripe when it can pay in its very next turn; 0 is the zero value's
	in     bool
}

const ripe = -1

// Dues finds the due whose key is the smallest, without walking rounds and without touching the others
// while rounds pass: those that still wait for rounds lie in a heap by raw key, those that can pay in
// their very next turn lie in a set of places, where the next one after the cursor is first. One set
// holds at most one due of a member, and serves one ring. Every operation is O(log n).
type Dues struct {
	heap []entry
	ripe Places
}

type entry struct {
	Key
	due *Due
}

// Len returns the number of dues.
func (s *Dues) Len() int { return len(s.heap) + s.ripe.Len() }

// Add puts a due in. It must be taken out before its member's deficit, weight, place or cost changes.
func (s *Dues) Add(r *Ring, d *Due) {
	d.in = true
	k := r.Raw(d.Member, d.Cost)
	if !r.Now().Less(k) {
		s.ripen(d)
		return
	}
	s.heap = append(s.heap, entry{k, d})
	s.up(len(s.heap) - 1)
}

// Del takes a due out; one that is not in is ignored.
func (s *Dues) Del(d *Due) {
	if !d.in {
		return
	}
	d.in = false
	if d.at == ripe {
		s.ripe.Del(d.Member.pos)
		return
	}
	i, last := int(d.at), len(s.heap)-1
	moved := s.heap[last]
	s.heap[last] = entry{}
	s.heap = s.heap[:last]
	if i == last {
		return
	}
	s.heap[i] = moved
	moved.due.at = int32(i)
	s.up(i)
	s.down(int(moved.due.at))
}

// Min returns the key of the due whose turn is next; its place says whose it is. ok is false when there
// is none.
func (s *Dues) Min(r *Ring) (key Key, ok bool) {
	now := r.Now()
	for len(s.heap) > 0 && !now.Less(s.heap[0].Key) {
		d := s.heap[0].due
		s.Del(d)
		d.in = true
		s.ripen(d)
	}
	if len(s.heap) > 0 {
		key, ok = s.heap[0].Key, true
	}
	if place := s.ripe.Next(now.Pos); place >= 0 {
		k := Key{now.Round, place}
		if place <= now.Pos {
			k.Round++
		}
		if !ok || k.Less(key) {
			return k, true
		}
	}
	return key, ok
}

func (s *Dues) ripen(d *Due) {
	d.at = ripe
	s.ripe.Add(d.Member.pos)
}

func (s *Dues) up(i int) {
	e := s.heap[i]
	for i > 0 {
		p := (i - 1) / 2
		if !e.Less(s.heap[p].Key) {
			break
		}
		s.heap[i] = s.heap[p]
		s.heap[i].due.at = int32(i)
		i = p
	}
	s.heap[i] = e
	e.due.at = int32(i)
}

func (s *Dues) down(i int) {
	e := s.heap[i]
	for {
		c := 2*i + 1
		if c >= len(s.heap) {
			break
		}
		if c+1 < len(s.heap) && s.heap[c+1].Less(s.heap[c].Key) {
			c++
		}
		if !s.heap[c].Less(e.Key) {
			break
		}
		s.heap[i] = s.heap[c]
		s.heap[i].due.at = int32(i)
		i = c
	}
	s.heap[i] = e
	e.due.at = int32(i)
}
