package policy

import (
	"strconv"

	"fairlane/control"
)

// The largest numbers of objects in one document.
const (
	maxLanes   = 64
	maxGroups  = 64
	maxPlans   = 500
	maxTenants = 200_000
	maxPools   = 5_000
	maxModels  = 1_000
	maxRouting = 500
)

// Validate names every broken rule of the document at once (at most 1,000, then how many more there
// are). tenants are all customer accounts, against which overrides, plans in use and sums of reserves
// are checked; nil means that they are not known, and only the document itself is checked. An empty
// answer means that the document may be published.
//
// Errors of sums lie at the object that is too small: "pool_groups[default].reserved_units"
// (KeySumOverCapacity; its argument "fields" names the lane accounts that add up) and
// "lanes[PAID_SHARED].reserved_units" (KeyReservesOverLane).
func Validate(doc *Document, tenants []Tenant) []control.FieldError {
	f := &faults{}
	x := newIndex(doc)
	if doc.Schema < 1 || doc.Schema > SchemaVersion {
		f.add("schema", KeySchema, args{"value": int64(doc.Schema), "max": int64(SchemaVersion)})
	}
	numbers(f, "scheduling", schedulingNumbers, &doc.Scheduling)
	if !counts(f, doc) {
		return f.all() // the rest would take its time over a document that nobody wrote by hand
	}
	validateLanes(f, x)
	validateGroups(f, x)
	validatePlans(f, x)
	validateModels(f, x)
	validatePools(f, x)
	validateKept(f, x, tenants)
	validateEarmarks(f, doc)
	validateRouting(f, x)
	validateLimits(f, &doc.Limits)
	validateTenants(f, x, tenants)
	validateDemand(f, x)
	validateDedicated(f, x, tenants)
	return f.all()
}

func counts(f *faults, d *Document) bool {
	few := true
	count := func(path string, n, most int) {
		if n > most {
			f.add(path, KeyTooMany, args{"count": int64(n), "max": int64(most)})
			few = false
		}
	}
	count("lanes", len(d.Lanes), maxLanes)
	count("pool_groups", len(d.PoolGroups), maxGroups)
	count("plans", len(d.Plans), maxPlans)
	count("tenants", len(d.Tenants), maxTenants)
	count("pools", len(d.Pools), maxPools)
	count("models", len(d.Models), maxModels)
	count("routing", len(d.Routing), maxRouting)
	if len(d.Lanes) == 0 {
		f.add("lanes", KeyRequired, nil)
	}
	if len(d.PoolGroups) == 0 {
		f.add("pool_groups", KeyRequired, nil)
	}
	return few
}

const codeMarks = "_-."

// names checks the codes of a list and that none comes twice. It returns the path of each object:
// by its code where that can be said, else by its number.
func names[T any](f *faults, list []T, code func(*T) string, name, field, marks string, most int) []string {
	paths := make([]string, len(list))
	seen := make(map[string]bool, len(list))
	for i := range list {
		c := code(&list[i])
		place := name + "[" + strconv.Itoa(i) + "]"
		if !f.code(place+"."+field, c, most, marks) {
			paths[i] = place
			continue
		}
		paths[i] = name + "[" + c + "]"
		if seen[c] {
			f.add(paths[i]+"."+field, KeyDuplicate, args{"value": c})
		}
		seen[c] = true
	}
	return paths
}

// refer checks that a name leads somewhere.
func refer[T any](f *faults, path, name string, in map[string]*T) bool {
	if name == "" {
		f.add(path, KeyRequired, nil)
		return false
	}
	if _, ok := in[name]; !ok {
		f.add(path, KeyUnknown, args{"value": Printable(name, 80)})
		return false
	}
	return true
}

func oneOf[S ~string](f *faults, path string, v S, allowed ...S) {
	names := make([]string, len(allowed))
	for i, a := range allowed {
		if a == v {
			return
		}
		names[i] = string(a)
	}
	f.add(path, KeyNotOneOf, args{"value": Printable(string(v), 80), "allowed": names})
}

func validateLimits(f *faults, l *Limits) {
	numbers(f, "limits", limitNumbers, l)
	f.real("limits.safe_utilisation", l.SafeUtilisation, 0.1, 1, UnitNone)
	f.real("limits.attempt_timeout_p95_factor", l.AttemptTimeoutP95, 1, 100, UnitTimes)
}

func validateRouting(f *faults, x *index) {
	seen := map[string]bool{}
	for i := range x.doc.Routing {
		r := &x.doc.Routing[i]
		path := routePath(Printable(routeKey(r), 140))
		if r.ResourceClass != "" {
			f.code(path+".resource_class", r.ResourceClass, 64, codeMarks)
		}
		oneOf(f, path+".mark", r.Mark, "", MarkRecovery)
		refer(f, path+".lane", r.Lane, x.lanes)
		if key := routeKey(r); seen[key] {
			f.add(path, KeyDuplicate, args{"value": Printable(key, 80)})
		} else {
			seen[key] = true
		}
	}
}

// MarkRecovery is the mark of tasks that an operator or a reconciler set going again.
const MarkRecovery = "RECOVERY"
