package simulate

import "container/heap"

// fluid is the ideal that a lane is compared with: the same work, arriving at the same times and served at
// the same times and amounts, but poured out to all who have work in exact proportion to their weights
// (generalised processor sharing; Parekh and Gallager, 1993). What a tenant was owed is what it would
// have got there: never more than it asked for.
//
// worth is what one unit of weight has got since the start, if it had work all the time. Whoever has work
// runs out of it when worth reaches its finish, so that a heap by finish is all that pouring needs.
type fluid struct {
	worth   float64
	weights float64 // of those in the heap
	shares  shares
}

// fluidShare is a tenant's place in it. Amounts are milli-units.
type fluidShare struct {
	weight float64
	finish float64 // worth at which its work ends
	from   float64 // worth when owed was last brought up to date
	owedBy float64 // what it had got by then
	rest   float64 // its work, while it is held
	held   bool
	at     int // place in the heap, from 1; 0: not there
}

func (f *fluid) owed(s *fluidShare) float64 {
	if s.at == 0 {
		return s.owedBy
	}
	return s.owedBy + s.weight*(f.worth-s.from)
}

// ask adds work, or takes some back.
func (f *fluid) ask(s *fluidShare, milli float64) {
	if s.weight == 0 {
		return
	}
	if s.held {
		s.rest = max(0, s.rest+milli)
		return
	}
	f.enter(s, f.leave(s)+milli)
}

// hold keeps a tenant out while something of its own holds it back, with what work it has.
func (f *fluid) hold(s *fluidShare, held bool) {
	if s.held == held || s.weight == 0 {
		return
	}
	s.held = held
	if held {
		s.rest = f.leave(s)
		return
	}
	f.enter(s, s.rest)
	s.rest = 0
}

func (f *fluid) enter(s *fluidShare, work float64) {
	if work <= 0 {
		return
	}
	s.from, s.finish = f.worth, f.worth+work/s.weight
	f.weights += s.weight
	heap.Push(&f.shares, s)
}

// leave takes a tenant out and returns the work that it has left.
func (f *fluid) leave(s *fluidShare) float64 {
	if s.at == 0 {
		return 0
	}
	s.owedBy = f.owed(s)
	heap.Remove(&f.shares, s.at-1)
	if f.weights -= s.weight; len(f.shares) == 0 {
		f.weights = 0
	}
	return max(0, (s.finish-f.worth)*s.weight)
}

// serve pours an amount out.
func (f *fluid) serve(milli float64) {
	for milli > 0 && len(f.shares) > 0 {
		first := f.shares[0]
		if need := (first.finish - f.worth) * f.weights; need > milli {
			f.worth += milli / f.weights
			return
		} else {
			milli -= max(0, need)
		}
		f.worth = max(f.worth, first.finish)
		f.leave(first)
	}
}

type shares []*fluidShare

func (h shares) Len() int           { return len(h) }
func (h shares) Less(i, j int) bool { return h[i].finish < h[j].finish }
func (h shares) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i+1, j+1
}
func (h *shares) Push(x any) {
	s := x.(*fluidShare)
	*h = append(*h, s)
	s.at = len(*h)
}
func (h *shares) Pop() any {
	old := *h
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	s.at = 0
	return s
}
