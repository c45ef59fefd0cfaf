package console

import (
	"context"

	"fairlane/policy"
	"fairlane/views"
)

// switches loads the switches of the platform.
func switches(ctx context.Context, doc *policy.Document) (object, error) {
	o := object{kind: "object.switches", title: views.T(ctx, "switch.title"), active: "switches", address: "/switches"}
	for _, sw := range []struct {
		name string
		on   bool
	}{{"admission_open", doc.Switches.AdmissionOpen}, {"scheduling_running", doc.Switches.SchedulingRunning}} {
		o.fields = append(o.fields, field{name: sw.name, label: views.Key("field." + sw.name), isSwitch: true, on: sw.on,
			set: func(v string) policy.Edit { return policy.SetSwitch(sw.name, v) }})
	}
	return o, nil
}
