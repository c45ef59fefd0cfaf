package facts_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/admit"
	"fairlane/store/facts"
)

// D62: 300 tasks of one transaction, one created_at; every page boundary falls into the tie.
func TestTrap_D62_TaskPagesShowEachTaskOnce(t *testing.T) {
	t.Parallel()
	g := newGatehouse(t, 2)
	g.do(t, `UPDATE tenant_scheduling_policy SET max_queued_tasks = 1000, max_queued_units = 100000, user_max_queued_tasks = 1000`)
	var tasks []admit.NewTask
	for i := range 300 {
		n := g.newTask(0, fmt.Sprint("u", i%3), fmt.Sprint(i))
		if i%2 == 0 {
			n.Project = "film"
		}
		tasks = append(tasks, n)
	}
	g.insert(t, tasks...)
	g.insert(t, g.newTask(1, "u0", "other"))
	if ties := one[int64](t, g, `SELECT count(DISTINCT created_at) FROM generation_task WHERE tenant_id = $1`, g.tenants[0]); ties != 1 {
		t.Fatalf("%d different created_at", ties)
	}
	reads := facts.NewTasks(g.db)
	for _, tc := range []struct {
		filter control.TaskFilter
		want   int
	}{
		{control.TaskFilter{}, 300},
		{control.TaskFilter{User: "u1"}, 100},
		{control.TaskFilter{Project: "film"}, 150},
		{control.TaskFilter{Project: "film", User: "u2"}, 50},
		{control.TaskFilter{States: []control.TaskState{control.TaskQueued, control.TaskFailed}, Model: "clip", Lane: "MAIN"}, 300},
		{control.TaskFilter{States: []control.TaskState{control.TaskRunning}}, 0},
		{control.TaskFilter{Model: "nosuch"}, 0},
	} {
		seen := map[uuid.UUID]bool{}
		before := uuid.Nil
		for pages := 0; ; pages++ {
			page, err := reads.List(t.Context(), g.tenants[0], tc.filter, before, 50)
			if err != nil || len(page.Tasks) > 50 || pages > 10 {
				t.Fatalf("%d tasks on page %d: %v", len(page.Tasks), pages, err)
			}
			for _, task := range page.Tasks {
				if seen[task.ID] || task.TenantID != g.tenants[0] {
					t.Fatalf("task %s of %s again, or another's", task.ID, task.TenantID)
				}
				seen[task.ID] = true
			}
			if before = page.Next; before == uuid.Nil {
				break
			}
		}
		if len(seen) != tc.want {
			t.Errorf("%+v: %d tasks, want %d", tc.filter, len(seen), tc.want)
		}
	}
}

func TestI13_TasksOfAnotherTenantAreNotFound(t *testing.T) {
	t.Parallel()
	g := newGatehouse(t, 2)
	n := g.newTask(0, "u", "k")
	g.insert(t, n)
	reads := facts.NewTasks(g.db)
	if _, err := reads.Task(t.Context(), g.tenants[1], n.TaskID); control.CodeOf(err) != control.CodeNotFound {
		t.Errorf("another tenant's task: %v", err)
	}
	if _, err := reads.Task(t.Context(), g.tenants[0], uuid.New()); control.CodeOf(err) != control.CodeNotFound {
		t.Errorf("no task: %v", err)
	}
	page, err := reads.List(t.Context(), g.tenants[1], control.TaskFilter{}, uuid.Nil, 10)
	if err != nil || len(page.Tasks) != 0 {
		t.Errorf("list: %+v %v", page, err)
	}
	if _, err := g.admit.StoredAnswer(t.Context(), g.tenants[1], "k"); control.CodeOf(err) != control.CodeNotFound {
		t.Errorf("another tenant's key: %v", err)
	}
}
