package policy

import (
	"math"
	"slices"
	"strconv"
	"time"
)

func validateModels(f *faults, x *index) {
	paths := names(f, x.doc.Models, func(m *Model) string { return m.Code }, "models", "code", keyMarks, 64)
	for i := range x.doc.Models {
		m, path := &x.doc.Models[i], paths[i]
		numbers(f, path, modelNumbers, m)
		oneOf(f, path+".kind", m.Kind, "IMAGE", "VIDEO")
		f.code(path+".resource_class", m.ResourceClass, 64, codeMarks)
		mean := f.real(path+".mean_seconds", m.MeanSeconds, 0.001, 86_400, UnitSeconds)
		p95 := f.real(path+".p95_seconds", m.P95Seconds, 0.001, 86_400, UnitSeconds)
		if mean && p95 && m.P95Seconds < m.MeanSeconds {
			f.add(path+".p95_seconds", KeyP95BelowMean, args{"p95": m.P95Seconds, "mean": m.MeanSeconds, "unit": string(UnitSeconds)})
		}
		gpu := f.real(path+".gpu_seconds", m.GPUSeconds, 0, 86_400, UnitSeconds)
		date(f, path+".price_as_of", m.PriceAsOf)
		date(f, path+".retire_on", m.RetireOn)
		if m.PriceAsOf == "" && (m.CostMicro > 0 || m.PriceMicro > 0) {
			f.add(path+".price_as_of", KeyRequired, nil) // a price without its day cannot be judged later
		}
		validateAccepted(f, path, m)
		if mean && gpu {
			validateCost(f, path, x.doc, m)
		}
	}
}

// validateAccepted checks what the model accepts: resolutions and, for video, clip lengths.
func validateAccepted(f *faults, path string, m *Model) {
	if len(m.Resolutions) == 0 {
		f.add(path+".resolutions", KeyRequired, nil)
	}
	if len(m.Seconds) == 0 && m.Kind == "VIDEO" {
		f.add(path+".duration_seconds", KeyRequired, nil)
	}
	const most = 64
	if n := len(m.Resolutions); n > most {
		f.add(path+".resolutions", KeyTooMany, args{"count": int64(n), "max": int64(most)})
		return
	}
	if n := len(m.Seconds); n > most {
		f.add(path+".duration_seconds", KeyTooMany, args{"count": int64(n), "max": int64(most)})
		return
	}
	for i, r := range m.Resolutions {
		place := path + ".resolutions[" + strconv.Itoa(i) + "]"
		if f.code(place, r, 32, keyMarks) && slices.Index(m.Resolutions, r) < i {
			f.add(place, KeyDuplicate, args{"value": r})
		}
	}
	for i, s := range m.Seconds {
		place := path + ".duration_seconds[" + strconv.Itoa(i) + "]"
		if f.whole(place, s, 1, 3_600, UnitSeconds) && slices.Index(m.Seconds, s) < i {
			f.add(place, KeyDuplicate, args{"value": strconv.FormatInt(s, 10)})
		}
	}
}

// validateCost holds the estimated cost of the model's longest clip at 10,000 fairness units at most:
// slots × max(seconds / base, cost / base, GPU seconds / base), as in the rules of scheduling.
func validateCost(f *faults, path string, d *Document, m *Model) {
	s := &d.Scheduling
	if s.ProviderSecondBase < 1 || s.CostBaseMicro < 1 || s.GPUSecondBase < 1 || m.SlotUnits < 1 || m.CostMicro < 0 {
		return // each is named at its own place
	}
	longest := 1.0
	if len(m.Seconds) > 0 && m.Seconds[0] > 0 {
		longest = float64(slices.Max(m.Seconds)) / float64(m.Seconds[0])
	}
	units := longest * float64(m.SlotUnits) * max(
		m.MeanSeconds/float64(s.ProviderSecondBase), float64(m.CostMicro)/float64(s.CostBaseMicro), m.GPUSeconds/float64(s.GPUSecondBase))
	if units > MaxCost {
		f.add(path, KeyCostRange, args{"value": int64(min(math.Ceil(units), 1e15)), "min": int64(1), "max": int64(MaxCost), "unit": string(UnitFairness)})
	}
}

func date(f *faults, path, v string) {
	if v == "" {
		return
	}
	if _, err := time.Parse(time.DateOnly, v); err != nil {
		f.add(path, KeyNotADate, args{"value": Printable(v, 40)})
	}
}

// validateDemand holds that every enabled model fits somewhere, and in every lane that its tasks go to.
func validateDemand(f *faults, x *index) {
	rooms := make([]int64, len(x.doc.Pools))
	for i := range x.doc.Pools {
		rooms[i] = x.room(&x.doc.Pools[i])
	}
	for i := range x.doc.Models {
		m := &x.doc.Models[i]
		if !m.Enabled {
			continue
		}
		var serving []*Pool
		var largest int64
		fits := map[string]bool{} // pool groups in which one task has room
		for j := range x.doc.Pools {
			p := &x.doc.Pools[j]
			if !p.takes(m) {
				continue
			}
			serving = append(serving, p)
			largest = max(largest, rooms[j])
			if rooms[j] >= m.SlotUnits {
				fits[p.Group] = true
			}
		}
		switch {
		case len(serving) == 0:
			f.add(modelPath(m.Code), KeyNoPool, nil)
		case len(fits) == 0:
			f.add(modelPath(m.Code)+".slot_units", KeyDemandOverPools, args{"demand": m.SlotUnits, "largest_pool": largest, "unit": string(UnitSlots)})
		default:
			for _, lane := range x.lanesOf(m) {
				l, ok := x.lanes[lane]
				if !ok {
					continue
				}
				if !slices.ContainsFunc(l.Accounts, func(a LaneAccount) bool { return fits[a.PoolGroup] }) {
					f.add(lanePath(lane)+".accounts", KeyLaneCannotRun, args{"model": m.Code, "demand": m.SlotUnits, "unit": string(UnitSlots)})
				} else if room := x.roomLeft(l, serving); room < m.SlotUnits {
					f.add(lanePath(lane)+".accounts", KeyPoolsKept, args{"model": m.Code, "demand": m.SlotUnits, "room": room, "unit": string(UnitSlots)})
				}
			}
		}
	}
}

// lanesOf returns the lanes that tasks of the model can go to, in the order of the document.
func (x *index) lanesOf(m *Model) []string {
	to := map[string]bool{}
	for i := range x.doc.Routing {
		if r := &x.doc.Routing[i]; r.Mark != "" && (r.ResourceClass == "" || r.ResourceClass == m.ResourceClass) {
			to[r.Lane] = true
		}
	}
	if lane := x.doc.routed(m.ResourceClass); lane != "" {
		to[lane] = true
	} else {
		for i := range x.doc.Plans {
			if p := &x.doc.Plans[i]; x.entitles(p, m.Code) {
				to[p.Settings.Lane] = true
			}
		}
	}
	var lanes []string
	for i := range x.doc.Lanes {
		if c := x.doc.Lanes[i].Code; to[c] && !slices.Contains(lanes, c) {
			lanes = append(lanes, c)
		}
	}
	return lanes
}
