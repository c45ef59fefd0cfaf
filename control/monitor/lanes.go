package monitor

import (
	"sort"

	"fairlane/policy"
)

// laneSet builds the lane rows: those of the policy in its order, then what is no longer in it but
// still counts.
type laneSet struct {
	order []string
	rows  map[string]*LaneRow
	known int
}

func lanesOf(doc *policy.Document, c Capacity) *laneSet {
	s := &laneSet{rows: map[string]*LaneRow{}}
	if doc != nil {
		for _, l := range doc.Lanes {
			r := s.row(l.Code)
			r.Weight, r.TargetSeconds, r.Paused, r.AdmissionOpen = l.Weight, l.WaitTargetSeconds, l.Paused, l.AdmissionOpen
		}
	}
	s.known = len(s.order)
	return s
}

func (s *laneSet) row(code string) *LaneRow {
	r := s.rows[code]
	if r == nil {
		r = &LaneRow{Lane: code}
		s.rows[code] = r
		s.order = append(s.order, code)
	}
	return r
}

// list computes what follows from the sums.
func (s *laneSet) list() []LaneRow {
	sort.Strings(s.order[s.known:])
	out := make([]LaneRow, 0, len(s.order))
	for _, code := range s.order {
		r := *s.rows[code]
		r.Used = r.Own + r.Common + r.Borrowed
		out = append(out, r)
	}
	return out
}

func (r *LaneRow) addAccount(a AccountUse, g GroupUse) {
	r.Own, r.Common, r.Borrowed, r.Lent = r.Own+a.Own, r.Common+a.Common, r.Borrowed+a.Borrowed, r.Lent+a.Lent
	r.Headroom, r.Reserved = r.Headroom+a.Headroom, r.Reserved+a.Reserved
	r.Capacity += a.Reserved + g.Common
	r.Free += max(a.Reserved-a.Own-a.Lent, 0) + max(g.Common-g.CommonUse, 0)
	r.Over += max(a.Own+a.Lent-a.Reserved, 0)
	r.Lendable, r.BorrowLimit = r.Lendable+a.Lendable, r.BorrowLimit+a.BorrowLimit
	r.Paused, r.Stopped = r.Paused || a.Paused, r.Stopped || a.Stopped
	if a.Stopped && (r.StoppedSince.IsZero() || a.StoppedSince.Before(r.StoppedSince)) {
		r.StoppedSince = a.StoppedSince
	}
}
