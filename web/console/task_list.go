package console

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/monitor"
	"fairlane/policy/access"
	"fairlane/views"
	"fairlane/views/page"
)

// tasks answers GET /tasks?state=&lane=&model=&tenant=&before=: the filter is the address.
func (r *Reading) tasks(c *gin.Context) {
	ctx, doc := c.Request.Context(), r.document()
	p := page.Tasks{State: strings.ToUpper(searchText(c.Query("state"))), Lane: searchText(c.Query("lane")), Model: searchText(c.Query("model")),
		Tenant: searchText(c.Query("tenant")), Lanes: laneCodes(doc)}
	for _, s := range control.TaskStates {
		p.States = append(p.States, string(s))
	}
	for _, m := range doc.Models {
		p.Models = append(p.Models, m.Code)
	}
	if p.State != "" && !slices.Contains(p.States, p.State) {
		p.State = ""
	}
	q := monitor.TaskQuery{State: control.TaskState(p.State), Lane: p.Lane, Model: p.Model, Reach: reach(c, access.TaskRead), Limit: monitor.PageRows}
	if before := c.Query("before"); before != "" {
		id, err := uuid.Parse(before)
		if err != nil {
			_ = c.Error(control.Invalid([]control.FieldError{{Field: "before", Key: "rule.unknown", Args: map[string]any{"value": searchText(before)}}}))
			return
		}
		q.Before = id
		p.Pager.First = address("/tasks", "state", p.State, "lane", p.Lane, "model", p.Model, "tenant", p.Tenant)
	}
	if p.Tenant != "" {
		face, err := r.cfg.Lists.FindTenant(ctx, p.Tenant)
		if control.CodeOf(err) == control.CodeNotFound {
			p.TenantError = views.T(ctx, "tasks.no_tenant")
			show(c, http.StatusOK, page.TasksPage(p))
			return
		}
		if err != nil {
			_ = c.Error(err)
			return
		}
		q.Tenant = face.TenantID
	}
	found, err := r.cfg.Lists.Tasks(ctx, q)
	if err != nil {
		_ = c.Error(err)
		return
	}
	for _, t := range found.Tasks {
		p.Rows = append(p.Rows, taskLine(ctx, t))
	}
	p.Pager.Shown = len(p.Rows)
	if found.Next != uuid.Nil {
		p.More = true
		p.Pager.Next = address("/tasks", "state", p.State, "lane", p.Lane, "model", p.Model, "tenant", p.Tenant, "before", found.Next.String())
	}
	show(c, http.StatusOK, page.TasksPage(p))
}

func taskLine(ctx context.Context, t monitor.TaskEntry) page.TaskLine {
	now := views.Of(ctx).Now
	waited, ran := "—", "—"
	switch {
	case !t.StartedAt.IsZero():
		waited = span(ctx, t.QueuedSince, t.StartedAt)
		ran = span(ctx, t.StartedAt, orNow(t.FinishedAt, now))
	case t.State == control.TaskQueued:
		waited = span(ctx, t.QueuedSince, now)
	}
	return page.TaskLine{ID: t.ID.String(), State: string(t.State), Kind: string(t.Kind), Lane: t.Lane, Model: t.Model, TenantID: t.TenantID.String(),
		Tenant: t.TenantName, Band: int64(t.Band), Attempts: t.Attempts, SlotUnits: t.SlotUnits,
		Created: views.Time(t.CreatedAt), Local: views.LocalTime(ctx, t.CreatedAt), Machine: machineTime(t.CreatedAt), Waited: waited, Ran: ran}
}

// span writes the time between two instants; what should be later and is not took no time.
func span(ctx context.Context, from, to time.Time) string {
	return views.Duration(ctx, max(to.Sub(from), 0).Truncate(time.Second))
}

func orNow(t, now time.Time) time.Time {
	if t.IsZero() {
		return now
	}
	return t
}

func machineTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
