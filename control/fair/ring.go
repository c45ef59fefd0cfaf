package fair

// Settings of a ring, in milli-units.
type Settings struct {
	BaseMilli   int64 // quantum of the heaviest member in a round
	BurstRounds int64 // quanta that a member may carry into a visit
	CreditMilli int64 // what a member that leaves may keep: a limit, never a grant
	Repay       int64 // permille of a quantum that goes to a debt, or is added from a credit; below 1000
}

// Ring holds the round, the cursor and the open visit. The zero Ring is not usable; see NewRing.
type Ring struct {
	set   Settings
	w     int64 // largest weight, at least 1; the scale of quanta and costs
	round int64
	cur   int64 // place of the member that had the last turn
	seq   int64 // last place given
	open  *Member
}

// Member is one party of a ring. Its zero value is outside the ring.
type Member struct {
	weight  int64
	pos     int64 // place; 0: outside
	last    int64 // last round of which it has had the quantum
	deficit int64 // scaled
	debt    int64 // scaled; below 0: credit
}

// Key says when a member's turn comes: the round in which it can pay, then its place.
type Key struct{ Round, Pos int64 }

// Less orders keys.
func (k Key) Less(o Key) bool {
	return k.Round < o.Round || k.Round == o.Round && k.Pos < o.Pos
}

// NewRing makes an empty ring whose heaviest member weighs w (less than 1 counts as 1).
func NewRing(set Settings, w int64) *Ring { return &Ring{set: set, w: max(w, 1)} }

// W returns the weight by which costs are scaled.
func (r *Ring) W() int64 { return r.w }

// Now returns the key of the last turn taken: every key still to come is larger.
func (r *Ring) Now() Key { return Key{r.round, r.cur} }

// Cost scales a cost in milli-units.
func (r *Ring) Cost(milli int64) int64 { return milli * r.w }

// In reports whether the member is in a ring.
func (m *Member) In() bool { return m.pos != 0 }

// Pos returns the member's place; places grow in order of joining.
func (m *Member) Pos() int64 { return m.pos }

// Weight returns the member's weight.
func (m *Member) Weight() int64 { return m.weight }

// Deficit returns what the member may spend, scaled by the ring's W.
func (m *Member) Deficit() int64 { return m.deficit }

// Join puts a member at the tail. Its deficit is what it kept when it left.
func (r *Ring) Join(m *Member, weight int64) {
	r.seq++
	m.pos, m.weight = r.seq, weight
	m.last = r.turn(m)
}

// Leave takes a member out; it keeps at most the credit, and an open visit ends.
func (r *Ring) Leave(m *Member) {
	m.deficit = min(m.deficit, r.set.CreditMilli*r.w)
	m.pos = 0
	if r.open == m {
		r.open = nil
	}
}

// Quantum is what a member gets in a round, scaled.
func (r *Ring) Quantum(m *Member) int64 { return r.set.BaseMilli * m.weight }

// Cap is the most that a member carries into a visit when largest is the scaled cost of the most
// expensive thing that it waits for.
func (r *Ring) Cap(m *Member, largest int64) int64 {
	return max(r.Quantum(m)*r.set.BurstRounds, largest)
}

// turn is the last round of which the member's turn has passed.
func (r *Ring) turn(m *Member) int64 {
	if m.pos > r.cur {
		return r.round - 1
	}
	return r.round
}

// Raw is the member's key as if nobody else had had a turn since its own last one. It does not change
// while others are served. Once it is not larger than Now the member can pay in its very next turn.
// The member's weight must be above 0 and the scaled cost c at most its cap.
func (r *Ring) Raw(m *Member, c int64) Key { return Key{m.last + r.need(m, c), m.pos} }

// Key is the round and place of the member's next turn in which it can pay c.
func (r *Ring) Key(m *Member, c int64) Key {
	k := r.Raw(m, c)
	if t := r.turn(m); k.Round <= t {
		k.Round = t + 1
	}
	return k
}

// Continues reports whether the member's visit is open and pays for c.
func (r *Ring) Continues(m *Member, c int64) bool { return r.open == m && c <= m.deficit }

// Open returns the member whose visit is open, or nil.
func (r *Ring) Open() *Member { return r.open }

// Serve gives the member its turn for c and charges it: an open visit that can pay goes on, else the
// ring moves on to the member's key, with what it carries cut to its cap.
func (r *Ring) Serve(m *Member, c, largest int64) {
	if !r.Continues(m, c) {
		limit := r.Cap(m, max(largest, c))
		r.CatchUp(m, limit)
		m.deficit = min(m.deficit, limit)
		n := r.need(m, c)
		r.grow(m, n)
		m.last += n
		r.round, r.cur, r.open = m.last, m.pos, m
	}
	m.deficit -= c
}

// Refund gives back what Serve charged; round, cursor and open visit stay.
func (r *Ring) Refund(m *Member, c int64) { m.deficit += c }

// CatchUp credits the rounds whose turn has passed since the member's last one, up to its cap.
func (r *Ring) CatchUp(m *Member, limit int64) {
	t := r.turn(m)
	if n := t - m.last; n > 0 {
		m.last = t
		r.growTo(m, n, limit)
	}
}

// Next is the member's first turn after a key in which it can pay c, as things stand at its last turn.
func (r *Ring) Next(m *Member, c int64, after Key) Key {
	k := r.Raw(m, c)
	if after.Less(k) {
		return k
	}
	if m.pos > after.Pos {
		return Key{after.Round, m.pos}
	}
	return Key{after.Round + 1, m.pos}
}

// Idle lets the rounds that have passed go by without credit: the member wanted nothing.
func (r *Ring) Idle(m *Member) { m.last = r.turn(m) }

// Seq returns the last place given; places are given anew by Arrange.
func (r *Ring) Seq() int64 { return r.seq }
