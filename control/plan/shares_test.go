package plan_test

import (
	"math"
	"os"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"fairlane/control"
	"fairlane/control/plan"
)

// sequences holds a property against n random sequences, and FAIRLANE_SOAK times as many when that is
// set; n is a multiple of 250, which is what rapid tries at once.
func sequences(t *testing.T, n int, property func(*rapid.T)) {
	t.Helper()
	times := 1
	if soak := os.Getenv("FAIRLANE_SOAK"); soak != "" {
		n, err := strconv.Atoi(soak)
		if err != nil || n < 1 || n > 1000 {
			t.Fatalf("FAIRLANE_SOAK=%s is not a number from 1 to 1000", soak)
		}
		times = n
	}
	for range n / 250 * times {
		rapid.Check(t, property)
	}
}

// worst keeps the largest ratios of what was observed to its bound.
type worst struct {
	mu               sync.Mutex
	ratio, turns     float64
	sequences, picks int
}

func (w *worst) see(ratio float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ratio = max(w.ratio, ratio)
}

func (w *worst) waited(ratio float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turns = max(w.turns, ratio)
}

// account is what the tenants of an arena have had: estimates at the start, corrections at settlement.
type account struct {
	*arena
	base, cMax, owedMax, taskMax int64 // milli-units
	weight                       []float64
	seen                         *worst
	since                        []int64 // round in which each tenant's head became its head
}

// hold compares every two tenants: |Si/wi − Sj/wj| ≤ base_quantum + c/wi + c/wj, with weights relative to
// the largest and c the largest cost, with the largest debt and the largest credit.
func (a *account) hold(t *rapid.T) {
	c := float64(a.cMax + 2*a.owedMax)
	for i := range a.weights {
		for j := range i {
			gap := math.Abs(float64(a.served[i])/a.weight[i] - float64(a.served[j])/a.weight[j])
			bound := float64(a.base) + c/a.weight[i] + c/a.weight[j]
			if gap > bound {
				t.Fatalf("tenants of weight %d and %d differ by %.0f, bound %.0f", a.weights[i], a.weights[j], gap, bound)
			}
			a.seen.see(gap / bound)
		}
	}
}

// settle ends what runs, some of it with another result than was estimated.
func (a *account) settle(t *rapid.T) {
	for _, r := range a.ended() {
		a.finish(r.TaskID)
		if a.owedMax == 0 || rapid.Bool().Draw(t, "as estimated") {
			continue
		}
		tl := plan.TenantLane{Tenant: r.TenantID, Lane: r.Lane}
		by := rapid.Int64Range(-a.taskMax, a.taskMax).Draw(t, "correction")
		was := a.debts[tl]
		a.debts[tl] = min(max(was+by, -a.owedMax), a.owedMax)
		a.served[tenantNumber(r.TenantID)] += a.debts[tl] - was
		a.hold(t)
	}
}

// headsWait holds a start against the turns that its head may wait: ⌈cost ÷ ((1 − repay) × quantum)⌉ + 1.
func (a *account) headsWait(t *rapid.T, i int, cost int64) {
	round := a.planner.Round("L")
	if a.since[i] >= 0 {
		quantum := float64(a.base) * a.weight[i] * float64(1000-a.doc.Scheduling.RepayPermille) / 1000
		bound := math.Ceil(float64(cost)/quantum) + 1
		if turns := float64(round - a.since[i]); turns > bound {
			t.Fatalf("a head of %d of weight %d waits for %.0f turns, bound %.0f", cost, a.weights[i], turns, bound)
		} else {
			a.seen.waited(turns / bound)
		}
	}
	a.since[i] = round
}

// Shares stay inside their bound at every moment, and heads are served in time, without debts and with.
func TestSharesStayInsideTheirBound(t *testing.T) {
	t.Parallel()
	for name, debts := range map[string]bool{"without debts": false, "with debts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen worst
			sequences(t, 1000, func(t *rapid.T) { shares(t, debts, &seen) })
			figure(t, "shares %s: %d sequences, %d starts, worst difference / bound %.3f, worst turns waited / bound %.3f",
				name, seen.sequences, seen.picks, seen.ratio, seen.turns)
		})
	}
}

func shares(t *rapid.T, debts bool, seen *worst) {
	weight := rapid.OneOf(rapid.Int64Range(1, 10), rapid.Int64Range(1, 1_000_000))
	weights := rapid.SliceOfN(weight, 2, 6).Draw(t, "weights")
	base := rapid.OneOf(rapid.Int64Range(1, 10), rapid.Int64Range(1, 10_000)).Draw(t, "base")
	top := rapid.OneOf(rapid.Int64Range(1, 50), rapid.Int64Range(1, 10_000)).Draw(t, "largest cost")
	cost := rapid.Int64Range(control.Milli, top*control.Milli)
	a := &account{
		arena: newArena(t, base, 1_000_000, weights, func(int) int64 { return cost.Draw(t, "cost") }),
		base:  base * control.Milli, cMax: top * control.Milli, seen: seen,
	}
	if debts {
		a.doc.Scheduling.RepayPermille = rapid.SampledFrom([]int64{500, 900, 100, 0}).Draw(t, "repay")
		a.owedMax = rapid.SampledFrom([]int64{500, 5, 100_000}).Draw(t, "owed at most") * control.Milli
		a.taskMax = rapid.SampledFrom([]int64{50, 1, 100_000}).Draw(t, "at most a task") * control.Milli
		if err := a.publish(); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range weights {
		a.weight = append(a.weight, float64(w)/float64(maxOf(weights)))
		a.since = append(a.since, -1)
	}
	batch := rapid.SampledFrom([]int{1, 7, 50}).Draw(t, "batch")
	starts := 0
	for range 100 / batch {
		for i := range weights {
			a.add(t, i, batch+1-a.waiting[i])
		}
		tenants, costs := a.some(batch)
		if len(tenants) != batch {
			t.Fatalf("%d of %d started although all are backlogged", len(tenants), batch)
		}
		for n, i := range tenants {
			a.served[i] += costs[n]
			a.hold(t)
			if batch == 1 {
				a.headsWait(t, i, costs[n])
			}
		}
		starts += batch
		a.settle(t)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	seen.sequences++
	seen.picks += starts
}

// Settled shares follow the weights as long as tasks cost less than 1 ÷ (1 − repay) and more than
// 1 ÷ (1 + repay) times their estimate: that much a visit can pay, or pay out. Beyond, the estimate must
// follow, and the share shows by how much.
func TestSettledSharesFollowWeights(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		repay, actual int64   // permille; per cent of the estimate
		want          float64 // share of the tenant with the wrong estimate, of two of equal weight
	}{
		{500, 190, 0.5}, {500, 110, 0.5}, {500, 70, 0.5}, {900, 900, 0.5}, {0, 150, 0.6}, {500, 300, 0.6}, {500, 50, 3.0 / 7},
	} {
		a := newArena(t, 4, 1_000_000, []int64{1, 1}, func(int) int64 { return 4 * control.Milli })
		a.doc.Scheduling.RepayPermille = c.repay
		if err := a.publish(); err != nil {
			t.Fatal(err)
		}
		const owedMax, each = 500 * control.Milli, 4 * control.Milli
		settled := [2]float64{}
		for range 4000 {
			a.add(t, 0, 3-a.waiting[0])
			a.add(t, 1, 3-a.waiting[1])
			tenants, _ := a.some(2)
			for _, r := range a.ended() {
				a.finish(r.TaskID)
			}
			for _, i := range tenants {
				actual := int64(each)
				if i == 0 {
					actual = each * c.actual / 100
					tl := plan.TenantLane{Tenant: numbered('t', 1), Lane: "L"}
					a.debts[tl] = min(max(a.debts[tl]+actual-each, -owedMax), owedMax)
				}
				settled[i] += float64(actual)
			}
		}
		share := settled[0] / (settled[0] + settled[1])
		if math.Abs(share-c.want) > 0.01 {
			t.Errorf("at repay %d and tasks of %d %% of their estimate the share is %.3f, want %.3f", c.repay, c.actual, share, c.want)
		}
		figure(t, "settled share of one of two equal tenants whose tasks cost %d %% of their estimate, repay %d: %.3f, want %.3f", c.actual, c.repay, share, c.want)
	}
}

// jain is Jain's fairness index of what tenants had by weight: 1 is even, 1/n is all to one of n.
func jain(served []int64, weights []int64) float64 {
	sum, squares := 0.0, 0.0
	for i := range served {
		x := float64(served[i]) / float64(weights[i])
		sum, squares = sum+x, squares+x*x
	}
	return sum * sum / (float64(len(served)) * squares)
}

// On one trace of six tenants that send at rates and costs of their own, what each has had by weight is
// even, which neither first come, first served nor plain round robin gives.
func TestSharesAreEvenBesideOtherOrders(t *testing.T) {
	t.Parallel()
	weights, rate, units := []int64{1, 1, 2, 2, 4, 8}, []int{40, 5, 20, 5, 10, 10}, []int64{1, 7, 3, 12, 2, 5}
	const starts, rounds = 3000, 3000
	costOf := func(i int) int64 { return units[i] * control.Milli }
	a := newArena(t, 4, 1_000_000, weights, costOf)
	var trace []int // tenants in order of arrival; all are backlogged from the first on
	for range rounds {
		for i, n := range rate {
			for range n {
				trace = append(trace, i)
			}
		}
	}
	for i := range weights {
		a.add(t, i, starts)
	}
	fifo, robin := make([]int64, len(weights)), make([]int64, len(weights))
	for done := 0; done < starts; done += 100 {
		tenants, costs := a.some(100)
		for n, i := range tenants {
			a.served[i] += costs[n]
		}
	}
	for n := range starts {
		fifo[trace[n]] += costOf(trace[n])
		robin[n%len(weights)] += costOf(n % len(weights))
	}
	ours, first, plain := jain(a.served, weights), jain(fifo, weights), jain(robin, weights)
	if ours < 0.999 || ours <= first || ours <= plain {
		t.Errorf("Jain's index is %.4f, FIFO %.4f, round robin %.4f", ours, first, plain)
	}
	figure(t, "Jain index of served units by weight, six backlogged tenants, %d starts: %.4f; FIFO %.4f, plain round robin %.4f", starts, ours, first, plain)
}
