package policy

const keyMarks = "_-.:/@+"

func validatePools(f *faults, x *index) {
	paths := names(f, x.doc.Pools, func(p *Pool) string { return p.Key }, "pools", "key", keyMarks, 200)
	for i := range x.doc.Pools {
		p, path := &x.doc.Pools[i], paths[i]
		numbers(f, path, poolNumbers, p)
		oneOf(f, path+".kind", p.Kind, PoolProvider, PoolWorker, PoolCapGroup)
		if p.Kind != PoolCapGroup || p.Group != "" {
			refer(f, path+".group", p.Group, x.groups) // a cap group may span pool groups
		}
		required := p.Kind == PoolProvider
		part := func(field, v string) {
			if v != "" || required {
				f.code(path+"."+field, v, 64, keyMarks)
			}
		}
		part("provider", p.Provider)
		part("account", p.Account)
		if p.Region != "" {
			f.code(path+".region", p.Region, 64, keyMarks)
		}
		if p.Model != "" || required {
			refer(f, path+".model", p.Model, x.models)
		}
		if n := max(len(p.Parents), len(x.capGroups(p.Key))); n > maxAbove {
			f.add(path+".parents", KeyTooMany, args{"count": int64(n), "max": int64(maxAbove)})
			continue
		}
		seen := map[string]bool{}
		for _, up := range p.Parents {
			place := path + ".parents[" + Printable(up, 200) + "]"
			switch {
			case !refer(f, place, up, x.pools):
			case x.pools[up].Kind != PoolCapGroup:
				f.add(place, KeyNotACapGroup, args{"value": up})
			case seen[up]:
				f.add(place, KeyDuplicate, args{"value": up})
			}
			seen[up] = true
		}
	}
	validateCycles(f, x)
}

// validateCycles names each pool that contains itself. Pools are few and groups shallow, so that
// three colours over the parents' edges are enough.
func validateCycles(f *faults, x *index) {
	const walking, done = 1, 2
	state := make(map[string]int, len(x.pools))
	var walk func(key string)
	walk = func(key string) {
		state[key] = walking
		for _, up := range x.pools[key].Parents {
			if _, ok := x.pools[up]; !ok {
				continue
			}
			switch state[up] {
			case walking:
				f.add(poolPath(key)+".parents["+up+"]", KeyCycle, args{"value": up})
			case done:
			default:
				walk(up)
			}
		}
		state[key] = done
	}
	for i := range x.doc.Pools {
		if k := x.doc.Pools[i].Key; state[k] == 0 {
			walk(k)
		}
	}
}
