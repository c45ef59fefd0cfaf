package console

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/monitor"
	"fairlane/policy"
	"fairlane/policy/access"
	"fairlane/views"
	"fairlane/views/page"
)

// task answers GET /tasks/:task.
func (r *Reading) task(c *gin.Context) {
	t, err := r.findTask(c, access.TaskRead)
	if err != nil {
		_ = c.Error(err)
		return
	}
	p, err := r.taskPage(c, t)
	if err != nil {
		_ = c.Error(err)
		return
	}
	switch c.Query("canceled") {
	case "yes":
		p.Canceled = views.T(c.Request.Context(), "tasks.cancel_done")
	case "over":
		p.Canceled = views.T(c.Request.Context(), "tasks.cancel_over")
	}
	show(c, http.StatusOK, page.TaskPage(p))
}

// taskCancel answers POST /tasks/:task/cancel.
func (r *Reading) taskCancel(c *gin.Context) {
	ctx := c.Request.Context()
	t, err := r.findTask(c, access.TaskCancel)
	if err != nil {
		_ = c.Error(err)
		return
	}
	typed := c.Request.PostFormValue("reason")
	reason, wrong := policy.CleanReason(typed)
	if len(wrong) > 0 {
		p, err := r.taskPage(c, t)
		if err != nil {
			_ = c.Error(err)
			return
		}
		p.Reason, p.ReasonError = typed, sayRules(ctx, wrong)[0]
		show(c, http.StatusUnprocessableEntity, page.TaskPage(p))
		return
	}
	_, changed, err := r.cfg.Canceler.CancelByOperator(ctx, t.ID, access.ActorOf(ctx), reason)
	if err != nil {
		_ = c.Error(err)
		return
	}
	said := "over"
	if changed {
		said = "yes"
	}
	seeOther(c, address("/tasks/"+t.ID.String(), "canceled", said))
}

// findTask returns the task of the address if the operator holds the permission for its tenant. What is
// out of reach looks as if it were not there.
func (r *Reading) findTask(c *gin.Context, p access.Permission) (*monitor.TaskDetail, error) {
	id, err := uuid.Parse(c.Param("task"))
	if err != nil {
		return nil, control.Errorf(control.CodeNotFound, "there is no such task")
	}
	t, err := r.cfg.Lists.Task(c.Request.Context(), id)
	if err != nil {
		return nil, err
	}
	object := access.Object{Lane: t.HomeLane, Tenant: t.TenantID}
	if !may(c, access.TaskRead, object) {
		return nil, control.Errorf(control.CodeNotFound, "there is no such task")
	}
	return t, access.Require(c.Request.Context(), p, object)
}

func (r *Reading) taskPage(c *gin.Context, t *monitor.TaskDetail) (page.Task, error) {
	ctx := c.Request.Context()
	why, err := r.why(c, t)
	if err != nil {
		return page.Task{}, err
	}
	p := page.Task{ID: t.ID.String(), Title: t.ID.String(), State: string(t.State), Facts: taskFacts(ctx, t), Parameters: pretty(t.Parameters), Result: pretty(t.Result)}
	for _, a := range t.Tries {
		try := page.TaskTry{No: views.Int(a.No), Provider: a.Provider, Pool: a.Pool, Job: a.JobID, State: string(a.State), Holds: "—",
			Fence: strconv.FormatInt(a.FencingToken, 10), Began: views.Time(a.CreatedAt), Took: "—", Error: a.ErrorClass}
		if a.ErrorCode != "" && a.ErrorCode != a.ErrorClass {
			try.Error += " " + a.ErrorCode
		}
		if a.HeldUnits > 0 {
			try.Holds = views.Int(a.HeldUnits) + " " + views.Word(ctx, "account", a.Holds)
		}
		if a.Seconds > 0 {
			try.Took = views.Duration(ctx, time.Duration(a.Seconds*float64(time.Second)).Truncate(time.Second))
		}
		p.Tries = append(p.Tries, try)
	}
	for _, e := range t.Events {
		line := page.TaskEvent{UTC: views.Time(e.At), Local: views.LocalTime(ctx, e.At), Machine: machineTime(e.At), Type: e.Type, Actor: e.Actor, Detail: compact(e.Detail)}
		if e.To != e.From {
			line.From, line.To = string(e.From), string(e.To)
		}
		p.Events = append(p.Events, line)
	}
	if t.MoreEvents {
		p.MoreEvents = int64(len(t.Events))
	}
	object := access.Object{Lane: t.HomeLane, Tenant: t.TenantID}
	p.MayCancel = !t.State.Terminal() && t.CancelRequestedAt.IsZero() && may(c, access.TaskCancel, object)
	p.Why, p.Live, p.Address = why, live(r.state(), monitor.Topic(monitor.TaskPrefix+t.ID.String())), "/tasks/"+t.ID.String()+"/now"
	p.Seen = strings.Join([]string{string(t.State), decimal(t.Version), decimal(0)}, " ")
	return p, nil
}

func taskFacts(ctx context.Context, t *monitor.TaskDetail) []page.Fact {
	var facts []page.Fact
	add := func(label views.Key, value, href string) {
		if value != "" {
			facts = append(facts, page.Fact{Label: views.T(ctx, label), Value: value, Href: href})
		}
	}
	instant := func(label views.Key, at time.Time) {
		if !at.IsZero() {
			text := views.Time(at)
			if local := views.LocalTime(ctx, at); local != "" {
				text += " (" + local + ")"
			}
			add(label, text, "")
		}
	}
	money := func(micro int64) string {
		if micro < 0 {
			return "—"
		}
		return views.Money(ctx, micro)
	}
	line := taskLine(ctx, t.TaskEntry)
	add("tasks.tenant", t.TenantName+" ("+t.TenantCode+")", "/tenants/"+t.TenantID.String())
	add("tasks.user", t.User, "")
	add("tasks.project", t.Project, "")
	add("tasks.lane", t.Lane, "/lanes/"+t.Lane)
	add("tasks.group", t.Group, "")
	add("tasks.model", t.Model+" · "+views.Word(ctx, "task_kind", string(t.Kind)), "")
	add("tasks.route", t.Route, "")
	add("tasks.resource_class", t.ResourceClass, "")
	add("tasks.band", "P"+strconv.Itoa(int(t.Band)), "")
	add("tasks.slot_units", views.Int(t.SlotUnits), "")
	usedMilli, usedSeconds := "—", "—"
	if t.UsedMilli >= 0 {
		usedMilli, usedSeconds = views.Milli(t.UsedMilli), seconds(ctx, t.UsedSeconds)
	}
	add("tasks.fairness_units", views.Milli(t.CostMilli)+" / "+usedMilli, "")
	add("tasks.expected", seconds(ctx, t.ExpectedSeconds)+", "+seconds(ctx, t.ExpectedP95)+" / "+usedSeconds, "")
	add("tasks.estimate", "v"+strconv.FormatInt(t.EstimateVersion, 10), "")
	add("tasks.waited", line.Waited, "")
	add("tasks.ran", line.Ran, "")
	add("tasks.attempts", views.Int(t.Attempts)+" / "+views.Int(t.MaxAttempts), "")
	add("tasks.cost", money(t.EstimatedCost)+" / "+money(t.ActualCost), "")
	add("tasks.price", money(t.Price), "")
	add("tasks.policy", "v"+strconv.FormatInt(t.PolicyVersion, 10), "/versions/"+strconv.FormatInt(t.PolicyVersion, 10))
	instant("tasks.created", t.CreatedAt)
	if t.State == control.TaskQueued {
		instant("tasks.eligible", t.EligibleAt)
	}
	instant("tasks.started", t.StartedAt)
	instant("tasks.finished", t.FinishedAt)
	instant("tasks.deadline", t.DeadlineAt)
	instant("tasks.cancel_requested", t.CancelRequestedAt)
	if t.ErrorCode != "" || t.ErrorMessage != "" {
		add("tasks.error", t.ErrorCode+" "+t.ErrorMessage, "")
	}
	return facts
}

func seconds(ctx context.Context, s float64) string {
	return views.Duration(ctx, time.Duration(s*float64(time.Second)).Truncate(time.Second))
}

// pretty indents JSON for reading; compact writes it on one line. Both leave alone what is none.
func pretty(raw json.RawMessage) string {
	var out bytes.Buffer
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if json.Indent(&out, raw, "", "  ") != nil {
		return string(raw)
	}
	return out.String()
}

func compact(raw json.RawMessage) string {
	if text := string(raw); text != "{}" && text != "null" {
		return text
	}
	return ""
}
