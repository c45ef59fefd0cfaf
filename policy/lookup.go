package policy

import "github.com/google/uuid"

// Lane returns the lane of that code.
func (d *Document) Lane(code string) (*Lane, bool) {
	return find(d.Lanes, func(l *Lane) bool { return l.Code == code })
}

// Plan returns the plan of that code.
func (d *Document) Plan(code string) (*Plan, bool) {
	return find(d.Plans, func(p *Plan) bool { return p.Code == code })
}

// Pool returns the pool of that key.
func (d *Document) Pool(key string) (*Pool, bool) {
	return find(d.Pools, func(p *Pool) bool { return p.Key == key })
}

// Model returns the model of that code.
func (d *Document) Model(code string) (*Model, bool) {
	return find(d.Models, func(m *Model) bool { return m.Code == code })
}

// Override returns the tenant's override.
func (d *Document) Override(tenant uuid.UUID) (*TenantOverride, bool) {
	return find(d.Tenants, func(t *TenantOverride) bool { return t.TenantID == tenant })
}

// Effective returns what the document grants a tenant on a plan: the plan's settings with the
// tenant's overrides laid over them. The second value is false when the plan does not exist.
func (d *Document) Effective(planCode string, tenant uuid.UUID) (TenantSettings, bool) {
	plan, ok := d.Plan(planCode)
	if !ok {
		return TenantSettings{}, false
	}
	if o, found := d.Override(tenant); found {
		return o.Over(plan.Settings), true
	}
	return plan.Settings, true
}

// Over lays the override over a plan's settings.
func (o *TenantOverride) Over(s TenantSettings) TenantSettings {
	lay(&s.Lane, o.Lane)
	lay(&s.Weight, o.Weight)
	lay(&s.ReservedUnits, o.ReservedUnits)
	lay(&s.BurstUnits, o.BurstUnits)
	lay(&s.MaxRunningTasks, o.MaxRunningTasks)
	lay(&s.MaxRunningUnits, o.MaxRunningUnits)
	lay(&s.MaxQueuedTasks, o.MaxQueuedTasks)
	lay(&s.MaxQueuedUnits, o.MaxQueuedUnits)
	lay(&s.UserMaxQueuedTasks, o.UserMaxQueuedTasks)
	lay(&s.UserMaxRunningTasks, o.UserMaxRunningTasks)
	lay(&s.UserMaxRunningImage, o.UserMaxRunningImage)
	lay(&s.UserMaxRunningVideo, o.UserMaxRunningVideo)
	return s
}

func lay[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func find[T any](list []T, is func(*T) bool) (*T, bool) {
	for i := range list {
		if is(&list[i]) {
			return &list[i], true
		}
	}
	return nil, false
}
