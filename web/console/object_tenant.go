package console

import (
	"context"

	"github.com/gin-gonic/gin"

	"fairlane/control"
	"fairlane/control/monitor"
	"fairlane/policy"
	"fairlane/policy/access"
	"fairlane/views"
	"fairlane/views/page"
)

// tenantEditable are the fields of the form, in its order. The home lane is not among them: moving a
// tenant with its queue is an action of its own.
var tenantEditable = []string{
	"weight", "reserved_units", "burst_units", "max_running_tasks", "max_running_units", "max_queued_tasks", "max_queued_units",
	"user_max_running_tasks", "user_max_running_image", "user_max_running_video", "user_max_queued_tasks",
}

// tenant loads the tenant that the address names.
func (s *Console) tenant(c *gin.Context) loader {
	ref := c.Param("tenant")
	var card *monitor.TenantCard
	return func(ctx context.Context, doc *policy.Document) (object, error) {
		if card == nil {
			found, err := s.cfg.Cards.TenantCard(ctx, ref)
			if err != nil {
				return object{}, err
			}
			card = &found
		}
		return tenantObject(ctx, doc, *card)
	}
}

func tenantObject(ctx context.Context, doc *policy.Document, card monitor.TenantCard) (object, error) {
	who := policy.Tenant{ID: card.ID, Code: card.Code, Name: card.Name, PlanCode: card.Plan, Status: card.Status}
	settings, ok := doc.Effective(card.Plan, card.ID)
	if !ok {
		return object{}, control.Errorf(control.CodeNotFound, "the plan %s is not in this version", card.Plan)
	}
	plan, _ := doc.Plan(card.Plan)
	override, _ := doc.Override(card.ID)
	o := object{
		kind: "object.tenant", title: card.Name, active: "tenants", address: "/tenants/" + card.Code,
		scope: access.Object{Lane: settings.Lane, Tenant: card.ID}, facts: tenantFacts(ctx, settings, card),
		causes: map[string]string{"lanes[" + settings.Lane + "].reserved_units": "reserved_units"},
	}
	if card.LaneWeights > 0 && who.Active() {
		share := float64(card.Weight) / float64(card.LaneWeights)
		o.facts = append(o.facts, page.Fact{Label: views.T(ctx, "tenant.share"), Value: views.T(ctx, "tenant.share_of",
			"Share", views.Percent(share), "Weight", card.Weight, "Sum", card.LaneWeights, "Lane", card.Lane)})
	}
	for _, name := range tenantEditable {
		limit, _ := policy.LimitOf(policy.ObjectTenant, name)
		value, _ := tenantNumber(&settings, name)
		granted, _ := tenantNumber(&plan.Settings, name)
		f := field{
			name: name, label: views.Key("field." + name), unit: limit.Unit, value: decimal(value),
			plan: views.Int(granted), own: override != nil && ownNumber(override, name),
			set: func(v string) policy.Edit { return policy.SetTenant(who, name, v) },
		}
		if f.own {
			f.reset = func() policy.Edit { return policy.ResetTenant(who, name) }
		}
		o.fields = append(o.fields, f)
	}
	return o, nil
}

func tenantFacts(ctx context.Context, settings policy.TenantSettings, card monitor.TenantCard) []page.Fact {
	return []page.Fact{
		{Label: views.T(ctx, "tenant.code"), Value: card.Code},
		{Label: views.T(ctx, "tenant.plan"), Value: card.Plan},
		{Label: views.T(ctx, "tenant.status"), Value: views.Word(ctx, "status", card.Status)},
		{Label: views.T(ctx, "tenant.lane"), Value: settings.Lane, Href: "/lanes/" + settings.Lane},
		{Label: views.T(ctx, "tenant.running"), Value: tasksAnd(ctx, card.Running, "count.slot_units", card.RunningUnits)},
		{Label: views.T(ctx, "tenant.queued"), Value: tasksAnd(ctx, card.QueuedTasks, "count.fairness_units", (card.QueuedMilli+500)/1000)},
		{Label: views.T(ctx, "tenant.tasks"), Value: views.T(ctx, "tenant.tasks_link"), Href: "/tasks?tenant=" + card.Code},
	}
}

// tasksAnd writes a number of tasks and what they come to.
func tasksAnd(ctx context.Context, tasks int64, key views.Key, units int64) string {
	return views.T(ctx, "count.pair", "First", views.N(ctx, "count.tasks", tasks), "Second", views.N(ctx, key, units))
}

// tenantNumber and ownNumber read a setting by its name in the document.
func tenantNumber(s *policy.TenantSettings, name string) (int64, bool) {
	v, ok := map[string]int64{
		"weight": s.Weight, "reserved_units": s.ReservedUnits, "burst_units": s.BurstUnits,
		"max_running_tasks": s.MaxRunningTasks, "max_running_units": s.MaxRunningUnits,
		"max_queued_tasks": s.MaxQueuedTasks, "max_queued_units": s.MaxQueuedUnits,
		"user_max_running_tasks": s.UserMaxRunningTasks, "user_max_running_image": s.UserMaxRunningImage,
		"user_max_running_video": s.UserMaxRunningVideo, "user_max_queued_tasks": s.UserMaxQueuedTasks,
	}[name]
	return v, ok
}

func ownNumber(o *policy.TenantOverride, name string) bool {
	own := map[string]*int64{
		"weight": o.Weight, "reserved_units": o.ReservedUnits, "burst_units": o.BurstUnits,
		"max_running_tasks": o.MaxRunningTasks, "max_running_units": o.MaxRunningUnits,
		"max_queued_tasks": o.MaxQueuedTasks, "max_queued_units": o.MaxQueuedUnits,
		"user_max_running_tasks": o.UserMaxRunningTasks, "user_max_running_image": o.UserMaxRunningImage,
		"user_max_running_video": o.UserMaxRunningVideo, "user_max_queued_tasks": o.UserMaxQueuedTasks,
	}
	return own[name] != nil
}
