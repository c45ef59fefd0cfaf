package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A tenant is told what holds its task, in its own numbers, and nothing of others.
func TestI13_ATenantIsToldWhyItsTaskWaitsAndNothingOfOthers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ids := []string{d.submit(t), d.submit(t)}
	plan, lane, pool := &d.policy.Plans[0].Settings, &d.policy.Lanes[0], &d.policy.Pools[0]
	plan.UserMaxRunningTasks, plan.UserMaxRunningImage, plan.UserMaxRunningVideo = 10, 10, 10
	d.policy.PoolGroups[0].CapacityUnits = 100
	for _, c := range []struct {
		gate    string
		change  func(undo bool)
		changes []string
		secret  string
	}{
		{gate: "TURN", change: func(bool) {}},
		{"LANE", func(undo bool) { lane.Paused = !undo }, nil, "MAIN"},
		{"NEVER_FITS", func(undo bool) { plan.MaxRunningUnits = map[bool]int64{false: 0, true: 100}[undo] }, []string{"TENANT_MAX_UNITS"}, "provider:a"},
		{"TENANT", func(undo bool) { plan.MaxRunningTasks = map[bool]int64{false: 0, true: 100}[undo] }, []string{"TENANT_MAX_TASKS"}, "provider:a"},
		{"POOL", func(undo bool) { pool.Paused = !undo }, nil, "provider:a"},
	} {
		d.version++
		c.change(false)
		out := d.send(t, ask{method: http.MethodGet, path: "/v1/tasks/" + ids[1] + "/why"})
		if out.status != http.StatusOK || out.json["held_by"] != c.gate {
			t.Fatalf("%s: %d %s", c.gate, out.status, out.text)
		}
		if from := out.json["place_from"]; from != 2.0 {
			t.Errorf("%s: the second of two has place %v", c.gate, from)
		}
		var changes []string
		for _, x := range out.json["changes"].([]any) {
			changes = append(changes, x.(map[string]any)["what"].(string))
		}
		if !slices.Equal(changes, c.changes) {
			t.Errorf("%s: changes %v, want %v", c.gate, changes, c.changes)
		}
		if c.secret != "" && strings.Contains(out.text, c.secret) {
			t.Errorf("%s: the tenant reads %s in %s", c.gate, c.secret, out.text)
		}
		c.change(true)
	}
	if out := d.send(t, ask{path: "/v1/tasks/" + ids[0] + "/cancel"}); out.status != http.StatusOK {
		t.Fatalf("cancel: %d", out.status)
	}
	if out := d.send(t, ask{method: http.MethodGet, path: "/v1/tasks/" + ids[0] + "/why"}); out.status != http.StatusConflict || out.code() != "CONFLICT" {
		t.Errorf("what does not wait: %d %s", out.status, out.text)
	}
	if out := d.send(t, ask{method: http.MethodGet, path: "/v1/tasks/none/why"}); out.status != http.StatusNotFound {
		t.Errorf("no id: %d %s", out.status, out.text)
	}
}
