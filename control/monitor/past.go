package monitor

import (
	"math"
	"time"

	"github.com/google/uuid"

	"fairlane/policy/access"
)

// The steps of kept samples. A longer step is made of the shorter one, and kept longer.
const (
	StepFine   = 10 * time.Second
	StepMinute = time.Minute
	StepHour   = time.Hour
)

// AccountPoint is what a lane held during one bin, in slot units, as means over its samples and summed
// over pool groups. Oldest is the longest wait of the bin in seconds.
type AccountPoint struct {
	At                                              time.Time
	Reserved, Headroom, Own, Common, Borrowed, Lent float64
	Queued, Running, Oldest                         float64
}

// TenantPoint is a tenant's bin in one lane. Fairness milli-units; Waits counts its first starts by wait.
type TenantPoint struct {
	At                     time.Time
	Served, Lane, Entitled int64 // served to it, to its whole lane, and its part of that by weight
	Debt                   int64 // at the end; below 0: credit
	RunningUnits, Queued   float64
	Starts                 int64
	Waits                  Waits
}

// Share is its part of what the lane served, in 1/100 %; -1 when the lane served nothing.
func (p TenantPoint) Share() int64 { return partOf(p.Served, p.Lane) }

// Entitlement is its part by weight, in 1/100 %; -1 when the lane served nothing, or it is not its home.
func (p TenantPoint) Entitlement() int64 {
	if p.Entitled == 0 {
		return -1
	}
	return partOf(p.Entitled, p.Lane)
}

func partOf(part, whole int64) int64 {
	if whole <= 0 {
		return -1
	}
	return basisPoints(part, whole)
}

// WaitBounds are the upper ends of the classes by which waits are counted, in seconds. What is longer
// than the last one is in a class of its own.
var WaitBounds = []float64{.5, 1, 2, 3, 5, 8, 12, 20, 30, 45, 60, 90, 120, 180, 300, 450, 600, 900, 1800, 3600, 7200, 14400}

// Waits counts by class: one more than WaitBounds.
type Waits []int64

// Add sums the classes up.
func (w Waits) Add(more Waits) Waits {
	sum := make(Waits, len(WaitBounds)+1)
	copy(sum, w)
	for i := range min(len(more), len(sum)) {
		sum[i] += more[i]
	}
	return sum
}

// Quantile estimates the wait that a part of the counted ones do not exceed, straight inside its class;
// those beyond the last bound count as that. -1 when nothing was counted.
func (w Waits) Quantile(part float64) float64 {
	var all int64
	for _, n := range w {
		all += n
	}
	if all == 0 || len(w) > len(WaitBounds)+1 {
		return -1
	}
	want, seen := math.Max(part, 0)*float64(all), 0.0
	for i, n := range w {
		if n == 0 || seen+float64(n) < want {
			seen += float64(n)
			continue
		}
		if i == len(WaitBounds) {
			break
		}
		low := 0.0
		if i > 0 {
			low = WaitBounds[i-1]
		}
		return low + (WaitBounds[i]-low)*math.Min((want-seen)/float64(n), 1)
	}
	return WaitBounds[len(WaitBounds)-1]
}

// PromiseKept is how the promise of a lender to itself was kept: of the loans that fell due in a span,
// those that were back by then. One whose submission is unknown is not back.
type PromiseKept struct{ Loans, Units, Kept, KeptUnits int64 }

// PromiseTarget is the part of loans that is to be back in time.
const PromiseTarget = 0.95

// Part is the part of loans that were kept; -1 when none fell due.
func (p PromiseKept) Part() float64 {
	if p.Loans == 0 {
		return -1
	}
	return float64(p.Kept) / float64(p.Loans)
}

// Promise is a lender's promise over the last hour and day, with the latest loans that missed it.
type Promise struct {
	Hour, Day PromiseKept
	Misses    []MissedLoan // at most MaxMisses
}

// MaxMisses bounds Promise.Misses.
const MaxMisses = 20

// MissedLoan is a loan that was not back in time. ReturnedAt is zero while it is still out.
type MissedLoan struct {
	TaskID     uuid.UUID
	TenantID   uuid.UUID
	TenantCode string
	HomeLane   string // of the tenant, for who may see it
	Lane       string // that borrowed
	Group      string
	Pool       string
	Units      int64
	BorrowedAt time.Time
	DueAt      time.Time
	ReturnedAt time.Time
	Unknown    bool // the fate of its attempt is not known
}

// Loan sums the open loans between a lender and one tenant of a lane.
type Loan struct {
	Lender, Lane, Group string
	TenantID            uuid.UUID
	TenantCode, Tenant  string
	HomeLane            string
	Loans, Units        int64
	NextDueAt           time.Time // of the one that is to be back first
}

// MaxLoanRows bounds how many rows of open loans a page shows.
const MaxLoanRows = 100

// PlaceRow is a tenant's place in a lane's ring as the scheduler last said. Milli-units.
type PlaceRow struct {
	Lane, Group  string
	DeficitMilli int64
	DebtMilli    int64
	At           time.Time
}

// PoolLane is what a lane holds in a pool, in slot units.
type PoolLane struct {
	Lane           string
	Used, Borrowed int64
}

// Shard is one row of a pool's counters, in slot units.
type Shard struct {
	No             int64
	Capacity, Used int64
}

// StarvedQuery asks who waits longer than the bound, as far as the operator may see it.
type StarvedQuery struct {
	Lane   string    // "" for all
	Tenant uuid.UUID // zero for all
	Reach  access.Reach
}

// MaxStarvedRows bounds how many tenants are listed.
const MaxStarvedRows = 100

// Starved is a tenant whose oldest task in a lane waits longer than its bound.
type Starved struct {
	Lane         string
	TenantID     uuid.UUID
	Code, Name   string
	TaskID       uuid.UUID
	OldestAt     time.Time
	BoundSeconds int64
	Turns        int64 // of its ring within which the task is served once nothing else holds it; 0: weight 0
	Capped       bool  // at its own maximum: it waits for itself
	Since        time.Time
}
