package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/policy"
)

// TenantPlan is what the planner must know of a tenant beside the document.
type TenantPlan struct {
	ID        uuid.UUID
	Code      string
	PlanCode  string
	Suspended bool
}

// Tenant is what the planner must know of an account.
func Tenant(t policy.Tenant) TenantPlan {
	return TenantPlan{ID: t.ID, Code: t.Code, PlanCode: t.PlanCode, Suspended: !t.Active()}
}

// Tenants is a list of accounts in the planner's words.
func Tenants(list []policy.Tenant) []TenantPlan {
	out := make([]TenantPlan, len(list))
	for i, t := range list {
		out[i] = Tenant(t)
	}
	return out
}

// Policy is a policy version in the form in which the planner uses it. It never changes.
type Policy struct {
	Version int64
	rules   *rules
	tenants map[uuid.UUID]*tenantRule
	top     map[string]int64 // largest tenant weight by lane
}

type rules struct {
	doc       *policy.Document
	plans     map[string]*policy.Plan
	overrides map[uuid.UUID]*policy.TenantOverride
	routed    map[string]bool // lanes that take tasks of every tenant
	groups    map[string]*groupRule
}

type tenantRule struct {
	TenantPlan
	policy.TenantSettings
	capped bool // a user's cap can bind before the tenant's own maximum does
}

type groupRule struct {
	lanes   []laneRule // policy order; those with an account in the group
	laneTop int64      // largest lane weight
	common  int64      // units of the group that no lane holds
	pools   map[string]*poolRule
	byModel map[string][]candidate // by preference, then key
	private []*poolRule            // dedicated to tenants
}

type laneRule struct {
	code     string
	weight   int64
	wrr      bool
	paused   bool
	reserved int64

	headroom, lendable int64
	borrowLimit        int64
	timeout            time.Duration // within which a lent unit is back
	cooldown           int64         // microseconds
	lenders            []lender      // that lend to this lane, in policy order
}

// lender is a lane that lends to another one.
type lender struct {
	code    string
	timeout time.Duration
}

type poolRule struct {
	key      string
	capacity int64
	paused   bool
	groups   []string      // every cap group that contains it, sorted
	entry    policy.Pool   // of the document
	longest  time.Duration // largest P95 of its model
}

// candidate is a pool that can serve a model, with its rank among the others.
type candidate struct {
	pool       *poolRule
	preference int64
}

// Compile prepares a document and its tenants for the planner. It refuses what would break planning
// (names used twice or not at all, settings outside their range); policy's own rules say it in full.
// A tenant whose plan the document does not have is kept out, and its tasks wait at GateTenant.
func Compile(doc *policy.Document, version int64, tenants []TenantPlan) (*Policy, error) {
	r := &rules{
		doc: doc, plans: map[string]*policy.Plan{}, overrides: map[uuid.UUID]*policy.TenantOverride{},
		routed: map[string]bool{}, groups: map[string]*groupRule{},
	}
	if err := checkSettings(doc.Scheduling); err != nil {
		return nil, err
	}
	for i := range doc.Plans {
		if w := doc.Plans[i].Settings.Weight; w < 0 || w > maxWeight {
			return nil, broken("plans."+doc.Plans[i].Code+".weight", "%d is outside 0 to %d", w, maxWeight)
		}
		r.plans[doc.Plans[i].Code] = &doc.Plans[i]
	}
	for i := range doc.Tenants {
		if w := doc.Tenants[i].Weight; w != nil && (*w < 0 || *w > maxWeight) {
			return nil, broken("tenants."+doc.Tenants[i].Code+".weight", "%d is outside 0 to %d", *w, maxWeight)
		}
		r.overrides[doc.Tenants[i].TenantID] = &doc.Tenants[i]
	}
	for _, rule := range doc.Routing {
		r.routed[rule.Lane] = true
	}
	for _, g := range doc.PoolGroups {
		if r.groups[g.Code] != nil {
			return nil, broken("pool_groups", "%s is there twice", g.Code)
		}
		group, err := compileGroup(doc, g)
		if err != nil {
			return nil, err
		}
		r.groups[g.Code] = group
	}
	p := &Policy{Version: version, rules: r, tenants: make(map[uuid.UUID]*tenantRule, len(tenants)), top: map[string]int64{}}
	p.add(tenants)
	return p, nil
}

// With returns the policy with these tenants added or replaced; everything else is shared, and all of it
// when the policy has them as they are.
func (p *Policy) With(tenants ...TenantPlan) *Policy {
	if !slices.ContainsFunc(tenants, p.lacks) {
		return p
	}
	n := &Policy{Version: p.Version, rules: p.rules, tenants: maps.Clone(p.tenants), top: maps.Clone(p.top)}
	n.add(tenants)
	return n
}

func (p *Policy) lacks(t TenantPlan) bool {
	rule, ok := p.tenants[t.ID]
	return !ok || rule.TenantPlan != t
}

func (p *Policy) add(tenants []TenantPlan) {
	for _, t := range tenants {
		plan, ok := p.rules.plans[t.PlanCode]
		if !ok {
			delete(p.tenants, t.ID)
			continue
		}
		rule := &tenantRule{TenantPlan: t, TenantSettings: plan.Settings}
		if o := p.rules.overrides[t.ID]; o != nil {
			rule.TenantSettings = o.Over(plan.Settings)
		}
		rule.capped = min(rule.UserMaxRunningTasks, rule.UserMaxRunningImage, rule.UserMaxRunningVideo) < rule.MaxRunningTasks
		p.tenants[t.ID] = rule
		p.top[rule.Lane] = max(p.top[rule.Lane], rule.Weight)
		for lane := range p.rules.routed {
			p.top[lane] = max(p.top[lane], rule.Weight)
		}
	}
}

// maxWeight bounds weights, so that scaled costs and quanta stay exact.
const maxWeight = 1_000_000

func checkSettings(s policy.Scheduling) error {
	for _, f := range []struct {
		field     string
		v, lo, hi int64
	}{
		{"base_quantum_units", s.BaseQuantumUnits, 1, 10_000},
		{"burst_rounds", s.BurstRounds, 1, 1_000},
		{"initial_burst_credit", s.InitialBurstCredit, 0, 1_000},
		{"aging_step_seconds", s.AgingStepSeconds, 1, 86_400},
		{"aging_cap", s.AgingCap, 3, 4},
		{"fit_scan", s.FitScan, 0, 256},
		{"max_skips", s.MaxSkips, 1, 100},
		{"repay_permille", s.RepayPermille, 0, 900},
	} {
		if f.v < f.lo || f.v > f.hi {
			return broken("scheduling."+f.field, "%d is outside %d to %d", f.v, f.lo, f.hi)
		}
	}
	return nil
}

func compileGroup(doc *policy.Document, g policy.PoolGroup) (*groupRule, error) {
	out := &groupRule{pools: map[string]*poolRule{}, byModel: map[string][]candidate{}}
	parents := map[string][]string{}
	for i := range doc.Pools {
		if p := &doc.Pools[i]; p.Group == g.Code || p.Kind == policy.PoolCapGroup { // a cap group may span pool groups
			if out.pools[p.Key] != nil {
				return nil, broken("pools", "%s is there twice", p.Key)
			}
			out.pools[p.Key] = &poolRule{
				key: p.Key, capacity: p.CapacityUnits, paused: p.Paused, entry: *p, longest: longest(doc, p.Model),
			}
			parents[p.Key] = p.Parents
		}
	}
	wanted := map[string]bool{}
	for i := range doc.Pools {
		p := &doc.Pools[i]
		if out.pools[p.Key] == nil {
			continue
		}
		groups, err := ancestors(p.Key, parents, out.pools)
		if err != nil {
			return nil, err
		}
		out.pools[p.Key].groups = groups
		if p.Group == g.Code {
			wanted[p.Key] = true
			for _, key := range groups {
				wanted[key] = true
			}
		}
		if len(p.DedicatedTenants) > 0 {
			out.private = append(out.private, out.pools[p.Key])
		}
		if p.Kind != policy.PoolCapGroup {
			out.byModel[p.Model] = append(out.byModel[p.Model], candidate{out.pools[p.Key], p.Preference})
		}
	}
	maps.DeleteFunc(out.pools, func(key string, _ *poolRule) bool { return !wanted[key] })
	for _, list := range out.byModel {
		slices.SortFunc(list, func(a, b candidate) int {
			if a.preference != b.preference {
				return int(max(-1, min(1, a.preference-b.preference)))
			}
			return strings.Compare(a.pool.key, b.pool.key)
		})
	}
	out.common = max(0, doc.GroupCapacity(g.Code)-doc.GroupReserved(g.Code))
	return out, compileLanes(doc, g.Code, out)
}

func compileLanes(doc *policy.Document, group string, out *groupRule) error {
	seen := map[string]bool{}
	for _, l := range doc.Lanes {
		if seen[l.Code] {
			return broken("lanes", "%s is there twice", l.Code)
		}
		seen[l.Code] = true
		if l.Weight < 0 || l.Weight > maxWeight {
			return broken("lanes."+l.Code+".weight", "%d is outside 0 to %d", l.Weight, maxWeight)
		}
		for _, a := range l.Accounts {
			if a.PoolGroup != group {
				continue
			}
			out.laneTop = max(out.laneTop, l.Weight)
			out.lanes = append(out.lanes, laneRule{
				code: l.Code, weight: l.Weight, wrr: l.Strategy == policy.WRR, reserved: a.ReservedUnits,
				paused:   l.Paused || !doc.Switches.SchedulingRunning,
				headroom: a.HeadroomUnits, lendable: a.LendableUnits, borrowLimit: a.BorrowLimit,
				timeout: time.Duration(a.BorrowTimeout) * time.Second, cooldown: a.Cooldown * 1_000_000,
				lenders: lenders(doc, l.Code, group),
			})
		}
	}
	return nil
}

// maxLenders bounds the lanes that lend to one lane.
const maxLenders = 64

// lenders lists the lanes that lend to one lane, in policy order.
func lenders(doc *policy.Document, to, group string) (out []lender) {
	for _, l := range doc.Lanes {
		for _, a := range l.Accounts {
			if a.PoolGroup == group && a.LendableUnits > 0 && l.Code != to && slices.Contains(a.LendsTo, to) && len(out) < maxLenders {
				out = append(out, lender{l.Code, time.Duration(a.BorrowTimeout) * time.Second})
			}
		}
	}
	return out
}

// longest is the largest P95 of a model's clips.
func longest(doc *policy.Document, code string) time.Duration {
	m, ok := doc.Model(code)
	if !ok {
		return 0
	}
	return time.Duration(m.LongestP95() * float64(time.Second))
}

// ancestors lists the cap groups that contain a pool, directly or through others.
func ancestors(key string, parents map[string][]string, pools map[string]*poolRule) ([]string, error) {
	var out []string
	todo := slices.Clone(parents[key])
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		switch {
		case next == key:
			return nil, broken("pools."+key+".parents", "it contains itself")
		case pools[next] == nil:
			return nil, broken("pools."+key+".parents", "%s is not a cap group, nor a pool of its group", next)
		case !slices.Contains(out, next):
			out = append(out, next)
			todo = append(todo, parents[next]...)
		}
	}
	slices.Sort(out)
	return out, nil
}

func broken(field, format string, args ...any) error {
	return control.Errorf(control.CodeInvalid, "policy: %s: %s", field, fmt.Sprintf(format, args...))
}
