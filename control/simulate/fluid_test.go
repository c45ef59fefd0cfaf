package simulate

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// naiveFluid pours in many small drops: each goes to all who have work, by weight.
type naiveFluid struct{ work, got, weight []float64 }

func (n *naiveFluid) serve(milli float64) {
	for milli > 1e-9 {
		weights, smallest := 0.0, math.Inf(1)
		for i, w := range n.work {
			if w > 1e-9 {
				weights += n.weight[i]
				smallest = min(smallest, w/n.weight[i])
			}
		}
		if weights == 0 {
			return
		}
		drop := min(milli, smallest*weights)
		for i, w := range n.work {
			if w > 1e-9 {
				part := drop * n.weight[i] / weights
				n.work[i] -= part
				n.got[i] += part
			}
		}
		milli -= drop
	}
}

func TestTheFluidIsThatOfDrops(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int64Range(1, 8), 1, 6).Draw(t, "weights")
		f, naive := &fluid{}, &naiveFluid{}
		list := make([]*fluidShare, len(weights))
		asked := make([]float64, len(weights))
		var heldWork []float64
		for i, w := range weights {
			list[i] = &fluidShare{weight: float64(w)}
			naive.weight = append(naive.weight, float64(w))
			naive.work, naive.got, heldWork = append(naive.work, 0), append(naive.got, 0), append(heldWork, -1)
		}
		poured := 0.0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, len(list)-1).Draw(t, "who")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				milli := float64(rapid.IntRange(1, 5000).Draw(t, "milli"))
				f.ask(list[i], milli)
				asked[i] += milli
				if heldWork[i] >= 0 {
					heldWork[i] += milli
				} else {
					naive.work[i] += milli
				}
			case 2:
				milli := float64(rapid.IntRange(1, 5000).Draw(t, "milli"))
				poured += milli
				f.serve(milli)
				naive.serve(milli)
			case 3:
				held := heldWork[i] < 0
				f.hold(list[i], held)
				if held {
					heldWork[i], naive.work[i] = naive.work[i], 0
				} else {
					naive.work[i], heldWork[i] = heldWork[i], -1
				}
			}
			sum := 0.0
			for j, s := range list {
				owed := f.owed(s)
				if math.Abs(owed-naive.got[j]) > 1e-3 {
					t.Fatalf("tenant %d was owed %v, in drops %v", j, owed, naive.got[j])
				}
				if owed > asked[j]+1e-3 {
					t.Fatalf("tenant %d was owed %v and asked for %v", j, owed, asked[j])
				}
				sum += owed
			}
			if sum > poured+1e-3 {
				t.Fatalf("%v were owed of %v", sum, poured)
			}
		}
	})
}

func TestWeightZeroIsOwedNothing(t *testing.T) {
	t.Parallel()
	f := &fluid{}
	none, one := &fluidShare{}, &fluidShare{weight: 1}
	f.ask(none, 100)
	f.ask(one, 100)
	f.hold(none, true)
	f.hold(none, false)
	f.serve(50)
	if f.owed(none) != 0 || f.owed(one) != 50 {
		t.Errorf("%v, %v", f.owed(none), f.owed(one))
	}
}
