package admit

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/estimate"
	"fairlane/policy"
)

// view is a policy version with the indexes that a submission needs: ten thousand overrides, and the
// pools of a model, are not walked for each.
type view struct {
	doc       *policy.Document
	version   int64
	overrides map[uuid.UUID]*policy.TenantOverride
	places    map[string]place // by model
	groups    map[string]groupUnits
}

// place is where tasks of a model wait, and the largest of them that its pools can ever take.
type place struct {
	group   string
	largest int64 // slot units

	provider string // of all its pools there; "": of several
}

// groupUnits is what the lanes of a pool group share, in slot units.
type groupUnits struct{ capacity, common int64 }

func newView(version *policy.Version) *view {
	doc := version.Document
	v := &view{
		doc: doc, version: version.Number, overrides: make(map[uuid.UUID]*policy.TenantOverride, len(doc.Tenants)),
		places: make(map[string]place), groups: make(map[string]groupUnits),
	}
	for i := range doc.Tenants {
		v.overrides[doc.Tenants[i].TenantID] = &doc.Tenants[i]
	}
	for i := range doc.Pools {
		p := &doc.Pools[i]
		at, found := v.places[p.Model]
		if p.Kind != policy.PoolProvider || (found && at.group != p.Group) {
			continue // a task waits in one group: that of its model's first pool
		}
		room := p.CapacityUnits
		for _, key := range doc.CapGroups(p.Key) {
			if g, ok := doc.Pool(key); ok {
				room = min(room, g.CapacityUnits)
			}
		}
		provider := p.Provider
		if found && at.provider != provider {
			provider = ""
		}
		v.places[p.Model] = place{group: p.Group, largest: max(at.largest, room), provider: provider}
	}
	for _, g := range doc.PoolGroups {
		capacity := doc.GroupCapacity(g.Code)
		v.groups[g.Code] = groupUnits{capacity: capacity, common: max(capacity-doc.GroupReserved(g.Code), 0)}
	}
	return v
}

func (v *view) settings(who Principal) (policy.TenantSettings, error) {
	plan, ok := v.doc.Plan(who.PlanCode)
	if !ok {
		return policy.TenantSettings{}, control.Errorf(control.CodeUnavailable, "the plan %s of this tenant is not in policy version %d", who.PlanCode, v.version)
	}
	if o, ok := v.overrides[who.TenantID]; ok {
		return o.Over(plan.Settings), nil
	}
	return plan.Settings, nil
}

// lane routes: the first rule that matches, else the tenant's home lane; then its switch.
func (v *view) lane(m *policy.Model, s policy.TenantSettings) (*policy.Lane, error) {
	if !v.doc.Switches.AdmissionOpen {
		return nil, refuse(PlatformOverloaded, "platform", "", "admission is closed for the whole platform")
	}
	code := s.Lane
	for _, rule := range v.doc.Routing {
		// Tasks of services carry no mark: only operators and reconcilers set one.
		if rule.Mark == "" && (rule.ResourceClass == "" || rule.ResourceClass == m.ResourceClass) {
			code = rule.Lane
			break
		}
	}
	lane, ok := v.doc.Lane(code)
	if !ok {
		return nil, control.Errorf(control.CodeUnavailable, "the lane %s is not in policy version %d", code, v.version)
	}
	if !lane.AdmissionOpen {
		return nil, refuse(ResourceClassDisabled, "lane", code, "admission is closed for lane %s", code)
	}
	return lane, nil
}

// entitled checks that the plan has the model, that the model is offered, and that a task of this
// size can ever start; it returns the pool group in which it will wait. A task that fits nowhere is
// refused for good instead of waiting for ever.
func (v *view) entitled(who Principal, m *policy.Model, lane *policy.Lane, s policy.TenantSettings, est estimate.Estimate, now time.Time) (string, error) {
	plan, _ := v.doc.Plan(who.PlanCode)
	if plan != nil && len(plan.Models) > 0 && !slices.Contains(plan.Models, m.Code) {
		return "", refuse(NotEntitled, "model", m.Code, "the plan %s does not include the model %s", plan.Code, m.Code)
	}
	if !m.Enabled {
		return "", refuse(ResourceClassDisabled, "model", m.Code, "the model %s is switched off", m.Code)
	}
	if retired(m.RetireOn, now) {
		no := refuse(ResourceClassDisabled, "model", m.Code, "the model %s was retired on %s", m.Code, m.RetireOn)
		no.RetryAfter = 0
		return "", no
	}
	if est.SlotUnits > s.MaxRunningUnits {
		return "", refuse(NotEntitled, "tenant", "", "a task of %d slot units is larger than the %d that this tenant may run", est.SlotUnits, s.MaxRunningUnits).
			numbers(UnitSlots, s.MaxRunningUnits, 0, est.SlotUnits)
	}
	at, ok := v.places[m.Code]
	if !ok {
		return "", refuse(ResourceClassDisabled, "model", m.Code, "no pool serves the model %s", m.Code)
	}
	if est.SlotUnits > at.largest {
		return "", refuse(ResourceClassDisabled, "model", m.Code, "a task of %d slot units is larger than every pool of the model %s (%d)", est.SlotUnits, m.Code, at.largest).
			numbers(UnitSlots, at.largest, 0, est.SlotUnits)
	}
	if !slices.ContainsFunc(lane.Accounts, func(a policy.LaneAccount) bool { return a.PoolGroup == at.group }) {
		return "", refuse(ResourceClassDisabled, "lane", lane.Code, "the lane %s may not run in the pool group %s of the model %s", lane.Code, at.group, m.Code)
	}
	return at.group, nil
}

// crowded is the refusal for a lane or a platform without room, nil when both have some.
func (v *view) crowded(load *Load, lane *policy.Lane, milli int64) *Refusal {
	in := load.lane(lane.Code)
	limits := v.doc.Limits
	switch {
	case in.Tasks+1 > lane.MaxQueuedTasks:
		return QueueFull(LaneQueueFull, "lane", lane.Code, UnitTasks, lane.MaxQueuedTasks, in.Tasks, 1)
	case in.Milli+milli > Milli(lane.MaxQueuedUnits):
		return QueueFull(LaneQueueFull, "lane", lane.Code, UnitFairness, Milli(lane.MaxQueuedUnits), in.Milli, milli)
	case load.Tasks+1 > limits.MaxQueuedTasks:
		return QueueFull(PlatformOverloaded, "platform", "", UnitTasks, limits.MaxQueuedTasks, load.Tasks, 1)
	case load.Milli+milli > Milli(limits.MaxQueuedUnits):
		return QueueFull(PlatformOverloaded, "platform", "", UnitFairness, Milli(limits.MaxQueuedUnits), load.Milli, milli)
	}
	return nil
}

func (l *Load) lane(code string) *LaneLoad {
	if in, ok := l.Lanes[code]; ok {
		return in
	}
	return &LaneLoad{}
}

func (l *Load) tenantTasks(tenant uuid.UUID) int64 {
	var sum int64
	for _, in := range l.Lanes {
		sum += in.Tenants[tenant].Tasks
	}
	return sum
}

// tightest is the smaller of two bounds of which 0 means none.
func tightest(a, b int64) int64 {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// retired tells whether a model's last day, an ISO date, has passed at now. "" never does.
func retired(on string, now time.Time) bool {
	day, err := time.Parse(time.DateOnly, on)
	return err == nil && !now.Before(day.AddDate(0, 0, 1))
}
