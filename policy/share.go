package policy

import "github.com/google/uuid"

// Shares returns every active tenant's part of its home lane in permille: its weight among the weights
// of the lane's active tenants, rounded to the nearest; 0 where all weights of the lane are 0.
func Shares(d *Document, tenants []Tenant) map[uuid.UUID]int64 {
	x := newIndex(d)
	sums := map[string]int64{}
	for _, t := range tenants {
		if s, ok := x.effective(t); ok && t.Active() {
			sums[s.Lane] = addUp(sums[s.Lane], max(0, s.Weight))
		}
	}
	shares := make(map[uuid.UUID]int64, len(tenants))
	for _, t := range tenants {
		if s, ok := x.effective(t); ok && t.Active() {
			shares[t.ID] = permille(s.Weight, sums[s.Lane])
		}
	}
	return shares
}

// LaneShares returns every lane's part in permille by lane weight; lanes of weight 0 have leftovers only.
func LaneShares(d *Document) map[string]int64 {
	var sum int64
	for i := range d.Lanes {
		sum = addUp(sum, max(0, d.Lanes[i].Weight))
	}
	shares := make(map[string]int64, len(d.Lanes))
	for i := range d.Lanes {
		shares[d.Lanes[i].Code] = permille(d.Lanes[i].Weight, sum)
	}
	return shares
}

func permille(part, sum int64) int64 {
	if part <= 0 || sum <= 0 {
		return 0
	}
	// Weights are at most a million, sums of 10^5 tenants at most 10^11: no overflow in a valid document.
	if part > sum {
		part = sum
	}
	return int64(float64(part)/float64(sum)*1000 + 0.5)
}
