package policy

import (
	"strings"

	"github.com/google/uuid"
)

func editAccount(f *faults, path string, e Edit, a *LaneAccount) {
	if e.Field == "lends_to" {
		a.LendsTo = words(e.Value)
		return
	}
	setNumber(f, path, e, accountNumbers, a)
}

func editPool(f *faults, path string, e Edit, p *Pool) {
	if at, isSwitch := poolSwitches[e.Field]; isSwitch {
		setBool(f, path, e, at(p))
		return
	}
	switch e.Field {
	case "lane_minimums":
		if list, ok := readMinimums(f, path, e.Value); ok {
			p.LaneMinimums = list
		}
	case "dedicated_lanes":
		p.DedicatedLanes = words(e.Value)
	case "dedicated_tenants":
		if list, ok := readIDs(f, path, e.Value); ok {
			p.DedicatedTenants = list
		}
	default:
		setNumber(f, path, e, poolNumbers, p)
	}
}

// readMinimums reads lanes with their units: "RECOVERY 2, PAID_SHARED 1".
func readMinimums(f *faults, path, text string) ([]LaneMinimum, bool) {
	list, good := []LaneMinimum{}, true
	for _, word := range words(text) {
		parts := strings.Fields(word)
		if len(parts) != 2 {
			f.add(path, KeyNotAMinimum, args{"value": Printable(word, 80)})
			good = false
			continue
		}
		units, ok := readNumber(f, path, parts[1], 0, MaxUnits, UnitSlots)
		good = good && ok
		list = append(list, LaneMinimum{Lane: parts[0], Units: units})
	}
	return list, good
}

// readIDs reads ids of tenants. Whoever shows codes gives the ids that they stand for; what is left is not there.
func readIDs(f *faults, path, text string) ([]uuid.UUID, bool) {
	list, good := []uuid.UUID{}, true
	for _, word := range words(text) {
		id, err := uuid.Parse(word)
		if err != nil || len(word) != 36 {
			f.add(path, KeyUnknown, args{"value": Printable(word, 80)})
			good = false
			continue
		}
		list = append(list, id)
	}
	return list, good
}

// SetDedicatedTenants sets dedicated_tenants of a pool; codes of the tenants may be typed for their ids.
func SetDedicatedTenants(key, value string, tenants []Tenant) Edit {
	known := keyed(tenants, func(t *Tenant) string { return t.Code })
	list := words(value)
	for i, word := range list {
		if t, ok := known[word]; ok {
			list[i] = t.ID.String()
		}
	}
	return SetPool(key, "dedicated_tenants", strings.Join(list, ", "))
}
