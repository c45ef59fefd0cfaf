package console

import (
	"context"

	"fairlane/policy"
	"fairlane/views"
)

// scheduling loads the settings by which turns are given, debts repaid and units earmarked.
func scheduling(ctx context.Context, doc *policy.Document) (object, error) {
	o := object{kind: "object.scheduling", title: views.T(ctx, "scheduling.title"), active: "scheduling", address: "/scheduling"}
	values := schedulingValues(&doc.Scheduling)
	guides := map[string]views.Key{"earmark_after_seconds": "hint.earmark_after", "earmark_timeout_seconds": "hint.earmark_timeout"}
	for _, name := range policy.SchedulingFields() {
		limit, _ := policy.LimitOf(policy.ObjectScheduling, name)
		o.fields = append(o.fields, field{name: name, label: views.Key("field." + name), unit: limit.Unit, guide: guides[name], value: decimal(values[name]),
			set: func(v string) policy.Edit { return policy.SetScheduling(name, v) }})
	}
	return o, nil
}

func schedulingValues(s *policy.Scheduling) map[string]int64 {
	return map[string]int64{
		"base_quantum_units": s.BaseQuantumUnits, "burst_rounds": s.BurstRounds, "initial_burst_credit": s.InitialBurstCredit,
		"aging_step_seconds": s.AgingStepSeconds, "aging_cap": s.AgingCap, "fit_scan": s.FitScan, "max_skips": s.MaxSkips,
		"earmark_after_seconds": s.EarmarkAfter, "earmark_timeout_seconds": s.EarmarkTimeout,
		"repay_permille": s.RepayPermille, "debt_task_units": s.DebtTaskUnits, "debt_total_units": s.DebtTotalUnits,
		"provider_second_base": s.ProviderSecondBase, "cost_base_micro": s.CostBaseMicro, "gpu_second_base": s.GPUSecondBase,
	}
}
