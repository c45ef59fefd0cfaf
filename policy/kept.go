package policy

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Admits reports whether the pool takes tasks of the lane and of the tenant, as far as it is dedicated.
func (p *Pool) Admits(lane string, tenant uuid.UUID) bool {
	return p.admitsLane(lane) && (len(p.DedicatedTenants) == 0 || slices.Contains(p.DedicatedTenants, tenant))
}

func (p *Pool) admitsLane(lane string) bool {
	return len(p.DedicatedLanes) == 0 || slices.Contains(p.DedicatedLanes, lane)
}

// KeptFrom returns the slot units of the pool that only other lanes than this one may take.
func (p *Pool) KeptFrom(lane string) int64 {
	var sum int64
	for _, m := range p.LaneMinimums {
		if m.Lane != lane && m.Units > 0 {
			sum = addUp(sum, m.Units)
		}
	}
	return sum
}

// LongestP95 returns the P95 in seconds of the longest clip that the model accepts.
func (m *Model) LongestP95() float64 {
	if len(m.Seconds) == 0 || m.Seconds[0] < 1 {
		return m.P95Seconds
	}
	return m.P95Seconds * float64(slices.Max(m.Seconds)) / float64(m.Seconds[0])
}

// LargestP95 returns the largest P95 in seconds of the enabled models that the pool serves, a cap group
// those of the pools in it; 0 where there are none.
func (d *Document) LargestP95(key string) float64 { return d.largestP95s()[key] }

func (d *Document) largestP95s() map[string]float64 {
	x := newIndex(d)
	slowest := make(map[string]float64, len(d.Pools))
	for i := range d.Pools {
		p := &d.Pools[i]
		if p.Kind == PoolCapGroup {
			continue
		}
		var most float64
		for j := range d.Models {
			if m := &d.Models[j]; m.Enabled && p.takes(m) && !math.IsNaN(m.P95Seconds) {
				most = max(most, m.LongestP95())
			}
		}
		for _, key := range append(x.capGroups(p.Key), p.Key) {
			slowest[key] = max(slowest[key], most)
		}
	}
	return slowest
}

// minimumTexts writes lane minimums as forms and differences do: "RECOVERY 2".
func minimumTexts(list []LaneMinimum) []string {
	out := make([]string, len(list))
	for i, m := range list {
		out[i] = fmt.Sprintf("%s %d", m.Lane, m.Units)
	}
	return out
}

func idTexts(list []uuid.UUID) []string {
	out := make([]string, len(list))
	for i, id := range list {
		out[i] = id.String()
	}
	return out
}

// words splits a list that somebody typed: by commas, also full-width ones, semicolons and line ends.
func words(text string) []string {
	parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",，、;；\n\r", r) })
	out := make([]string, 0, len(parts))
	for _, p := range parts {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}
