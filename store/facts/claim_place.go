package facts

import (
	"slices"

	"fairlane/control/schedule"
)

// poolRoom is one pool, leaf or cap group, during a claim.
type poolRoom struct {
	open           bool
	adaptive       int64 // -1: none
	parents        []string
	shards         []*shardRow
	capacity, used int64
}

// part is one reservation row to be: units in one shard of the leaf, and where the cap groups count them.
type part struct {
	shard       int32
	units       int64
	groups      []string
	groupShards []int32
	groupUnits  []int64
}

type slice struct {
	shard *shardRow
	units int64
}

func (p *poolRoom) setShards(shards []*shardRow) {
	p.shards = shards
	for _, s := range shards {
		p.capacity += s.capacity
		p.used += s.used
	}
}

// fit finds shards for units: one that holds them whole, else several in order; nil without room. The
// pool as a whole must have room too: a shard whose capacity was cut below its use eats the others'.
func (p *poolRoom) fit(units int64) []slice {
	limit := p.capacity
	if p.adaptive >= 0 {
		limit = min(limit, p.adaptive)
	}
	if !p.open || units > limit-p.used {
		return nil
	}
	for _, s := range p.shards {
		if units <= s.capacity-s.used {
			return []slice{{s, units}}
		}
	}
	var out []slice
	for _, s := range p.shards {
		if room := min(units, s.capacity-s.used); room > 0 {
			out = append(out, slice{s, room})
			if units -= room; units == 0 {
				return out
			}
		}
	}
	return nil
}

// place takes a start's units in its leaf and in every cap group, or names the pool without room.
func (d *claimDecision) place(s *schedule.ClaimStart) (parts []part, full string) {
	if missing := d.unnamed(s); missing != "" {
		return nil, missing
	}
	keys := append([]string{s.Pool}, s.CapGroups...)
	fits := make([][]slice, len(keys))
	for i, key := range keys {
		p := d.pools[key]
		if p == nil {
			return nil, key
		}
		if fits[i] = p.fit(s.SlotUnits); fits[i] == nil {
			return nil, key
		}
	}
	for i, key := range keys {
		for _, f := range fits[i] {
			f.shard.used += f.units
			d.pools[key].used += f.units
		}
	}
	for _, f := range fits[0] {
		r := part{shard: f.shard.no, units: f.units}
		for i := 1; i < len(keys); i++ {
			fits[i] = r.count(keys[i], fits[i])
		}
		parts = append(parts, r)
	}
	return parts, ""
}

// count gives the row its units of a cap group's slices and returns the slices that are left.
func (r *part) count(key string, from []slice) []slice {
	for need := r.units; need > 0; {
		n := min(need, from[0].units)
		r.groups, r.groupShards, r.groupUnits = append(r.groups, key), append(r.groupShards, from[0].shard.no), append(r.groupUnits, n)
		need -= n
		if from[0].units -= n; from[0].units == 0 {
			from = from[1:]
		}
	}
	return from
}

// unnamed returns a cap group that contains the leaf, or contains one that does, and that the start
// does not name: an older plan must not pass a limit that a newer policy has set. "" when there is none.
func (d *claimDecision) unnamed(s *schedule.ClaimStart) string {
	for _, key := range append([]string{s.Pool}, s.CapGroups...) {
		p := d.pools[key]
		if p == nil {
			continue
		}
		for _, parent := range p.parents {
			if !slices.Contains(s.CapGroups, parent) {
				return parent
			}
		}
	}
	return ""
}
