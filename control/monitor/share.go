package monitor

import (
	"time"

	"github.com/google/uuid"
)

// shareRing keeps what each tenant was served in its home lane during the last few intervals. It is
// fed with running totals; the first feeding must hold every tenant that was ever served: it is the base
// and counts for nothing, so that a restart shows no burst. Only intervals in which something changed cost memory.
type shareRing struct {
	every  time.Duration
	slots  []shareSlot // a circle; next is the oldest
	next   int
	filled int
	lastAt time.Time
	base   map[shareKey]int64
	sums   map[shareKey]shareSum
}

type shareKey struct {
	tenant uuid.UUID
	lane   string
}

type shareSlot map[shareKey]shareSum

type shareSum struct {
	served     int64 // fairness milli-units
	demanded   int   // intervals with queued or running work, or a start
	backlogged int   // intervals that ended with a queue
}

const shareSlots = 12

func newShareRing(window time.Duration) *shareRing {
	return &shareRing{every: max(window/shareSlots, time.Millisecond), slots: make([]shareSlot, shareSlots),
		base: map[shareKey]int64{}, sums: map[shareKey]shareSum{}}
}

// due tells whether an interval has passed since the last one.
func (r *shareRing) due(now time.Time) bool { return r.lastAt.IsZero() || now.Sub(r.lastAt) >= r.every }

// add closes an interval with the totals of every tenant that has work or has had some lately. A
// tenant that is missing keeps its base: it has neither been served nor waits.
func (r *shareRing) add(now time.Time, uses []TenantUse) {
	first := r.lastAt.IsZero()
	r.lastAt = now
	slot := shareSlot{}
	for _, u := range uses {
		key := shareKey{u.TenantID, u.Lane}
		base, known := r.base[key]
		r.base[key] = u.ServedMilli
		var s shareSum
		if known {
			s.served = max(u.ServedMilli-base, 0)
		} else if !first {
			s.served = u.ServedMilli // its first work ever
		}
		if u.QueuedTasks > 0 {
			s.backlogged = 1
		}
		if u.QueuedTasks > 0 || u.RunningTasks > 0 || s.served > 0 {
			s.demanded = 1
			slot[key] = s
		}
	}
	for key, s := range r.slots[r.next] {
		r.move(key, s, -1)
	}
	for key, s := range slot {
		r.move(key, s, 1)
	}
	r.slots[r.next] = slot
	r.next = (r.next + 1) % len(r.slots)
	r.filled = min(r.filled+1, len(r.slots))
}

func (r *shareRing) move(key shareKey, s shareSum, sign int) {
	sum := r.sums[key]
	sum.served += int64(sign) * s.served
	sum.demanded += sign * s.demanded
	sum.backlogged += sign * s.backlogged
	if sum == (shareSum{}) {
		delete(r.sums, key)
		return
	}
	r.sums[key] = sum
}

// shares gives share and entitlement in 1/100 % for every tenant with demand in its home lane.
// Entitlement is by weight among the tenants of the lane that had demand within the window.
func (r *shareRing) shares(uses []TenantUse) map[uuid.UUID]tenantShare {
	weights, served := map[string]int64{}, map[string]int64{}
	for _, u := range uses {
		if u.Lane != u.HomeLane {
			continue
		}
		sum := r.sums[shareKey{u.TenantID, u.Lane}]
		served[u.Lane] += sum.served
		if demands(u, sum) {
			weights[u.Lane] += u.Weight
		}
	}
	out := make(map[uuid.UUID]tenantShare, len(uses))
	for _, u := range uses {
		if u.Lane != u.HomeLane {
			continue
		}
		sum := r.sums[shareKey{u.TenantID, u.Lane}]
		s := tenantShare{served: sum.served, share: -1, entitled: -1, backlogged: sum.backlogged == r.filled && r.filled > 0}
		if served[u.Lane] > 0 {
			s.share = basisPoints(sum.served, served[u.Lane])
		}
		if demands(u, sum) && weights[u.Lane] > 0 {
			s.entitled = basisPoints(u.Weight, weights[u.Lane])
		}
		out[u.TenantID] = s
	}
	return out
}

type tenantShare struct {
	served, share, entitled int64
	backlogged              bool
}

func demands(u TenantUse, sum shareSum) bool {
	return sum.demanded > 0 || u.QueuedTasks > 0 || u.RunningTasks > 0
}

// basisPoints is part of whole in 1/100 %, rounded to the nearest.
func basisPoints(part, whole int64) int64 {
	return int64(float64(part)/float64(whole)*10_000 + 0.5)
}
