package console

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/explain"
	"fairlane/control/monitor"
	"fairlane/control/plan"
	"fairlane/policy/access"
	"fairlane/views"
	"fairlane/views/page"
)

// Explains tells why a task waits. A task that does not wait is control.CodeNotFound.
type Explains interface {
	Explain(ctx context.Context, task uuid.UUID) (explain.Answer, error)
}

// gates is the order in which a page shows them.
var gates = []plan.Gate{
	plan.GateNotEligible, plan.GateNeverFits, plan.GateLane, plan.GateTenant, plan.GateUser, plan.GateAccount, plan.GatePool, plan.GateTurn,
}

// why says why the task waits, if it does.
func (r *Reading) why(c *gin.Context, t *monitor.TaskDetail) (page.Why, error) {
	ctx := c.Request.Context()
	if t.State != control.TaskQueued {
		return page.Why{None: views.T(ctx, "why.not_waiting", "State", views.Word(ctx, "task_state", string(t.State)))}, nil
	}
	if r.cfg.Explains == nil {
		return page.Why{None: views.T(ctx, "why.not_known")}, nil
	}
	w, err := r.cfg.Explains.Explain(ctx, t.ID)
	if control.CodeOf(err) == control.CodeNotFound {
		return page.Why{None: views.T(ctx, "why.not_known")}, nil
	}
	if err != nil {
		return page.Why{}, err
	}
	return sayWaiting(ctx, w), nil
}

// sayWaiting puts an explanation into the reader's language. Gates behind the one that holds were not
// reached; one before it that was not told was passed.
func sayWaiting(ctx context.Context, w explain.Answer) page.Why {
	p := page.Why{As: views.T(ctx, "why.as_of", "Time", views.Time(w.At))}
	if w.PlaceFrom > 0 {
		p.Place = views.T(ctx, "why.place", "From", w.PlaceFrom, "To", w.PlaceTo)
	}
	var changes []string
	for _, c := range w.Changes {
		changes = append(changes, sayChange(ctx, c))
		if p.Href == "" {
			p.Href = changeAt(c, w.TenantID)
		}
	}
	p.Change = strings.Join(changes, " · ")
	if len(changes) > 1 {
		p.Change += " (" + views.T(ctx, "why.changes") + ")"
	}
	held := false
	for _, gate := range gates {
		g := page.WhyGate{Title: views.Word(ctx, "gate", string(gate)), State: page.GateOpen}
		if held {
			g.State = page.GateLater
		}
		for _, told := range w.Gates {
			if told.Gate != gate {
				continue
			}
			g.Numbers = sayNumbers(ctx, told.Numbers)
			for _, o := range told.Options {
				g.Options = append(g.Options, sayOption(ctx, o))
			}
			if told.Holds && !held {
				held = true
				g.State, g.Text = page.GateHolds, views.Word(ctx, "gate_holds", string(gate))
			}
		}
		p.Gates = append(p.Gates, g)
	}
	return p
}

func sayNumbers(ctx context.Context, numbers []plan.Number) []page.Fact {
	var out []page.Fact
	for _, n := range numbers {
		f := page.Fact{Label: views.Word(ctx, "why_number", n.Name)}
		switch n.Unit {
		case plan.Milli:
			f.Value = views.Milli(n.Value)
		case plan.Seconds:
			f.Value = views.Duration(ctx, time.Duration(n.Value)*time.Second)
		case plan.Instant:
			f.Value = views.Time(time.Unix(n.Value, 0))
		default:
			f.Value = views.Int(n.Value)
		}
		out = append(out, f)
	}
	return out
}

func sayOption(ctx context.Context, o plan.Option) page.WhyOption {
	p := page.WhyOption{Open: o.Reason == "", Numbers: sayNumbers(ctx, o.Numbers)}
	if o.Account == "" {
		p.Name, p.Href = o.Pool, "/pools/"+url.PathEscape(o.Pool)
		if o.Reason != "" {
			p.Text = views.Word(ctx, "pool_no", string(o.Reason))
		}
		return p
	}
	p.Name = views.Word(ctx, "account", string(o.Account))
	if o.Lender != "" {
		p.Name += " · " + o.Lender
		p.Href = "/lanes/" + url.PathEscape(o.Lender)
	}
	if o.Reason != "" {
		p.Text = views.Word(ctx, "account_no", string(o.Reason))
	}
	return p
}

// sayChange says what would have to change.
func sayChange(ctx context.Context, c plan.Change) string {
	what := strings.ToLower(string(c.What))
	if c.What == plan.WaitUntil && c.Object != "" {
		what = "wait_adaptive"
	}
	return views.T(ctx, views.Key("why_change."+what), "Object", c.Object, "From", views.Int(c.From), "To", views.Int(c.To), "Until", views.Time(time.Unix(c.To, 0)))
}

// changeAt is the page on which a change can be made; "" when there is none.
func changeAt(c plan.Change, tenant uuid.UUID) string {
	switch c.What {
	case plan.ResumeLane, plan.RaiseReserve, plan.RaiseBorrow:
		return "/lanes/" + url.PathEscape(c.Object)
	case plan.ResumePool, plan.RaisePool, plan.AllowPool, plan.CloseBreaker, plan.EndEarmark:
		return "/pools/" + url.PathEscape(c.Object)
	case plan.RaiseTenant, plan.RaiseTasks, plan.RaiseUser, plan.ReinstateTenant:
		return "/tenants/" + tenant.String()
	case plan.RaiseCommon:
		return "/pools"
	}
	return ""
}

// taskNow answers GET /tasks/:task/now: the part of the page that moves.
func (r *Reading) taskNow(c *gin.Context) {
	t, err := r.findTask(c, access.TaskRead)
	if err != nil {
		_ = c.Error(err)
		return
	}
	p, err := r.taskPage(c, t)
	fragment(c, page.TaskPart(p), err)
}

// starving answers GET /health/starving.
func (r *Reading) starving(c *gin.Context) {
	p, err := r.starvedPart(c, r.state())
	fragment(c, page.StarvedPartPart(p), err)
}

func (r *Reading) starvedPart(c *gin.Context, s *monitor.State) (page.StarvedPart, error) {
	p := page.StarvedPart{Address: "/health/starving"}
	for _, h := range s.Health {
		if h.Kind == "sum" && h.Name == "starvation" {
			p.Seen = jsonTime(h.Since) + " " + decimal(h.Number)
		}
	}
	var err error
	p.Rows, p.Hidden, err = starved(c, r.cfg.Present, s, "")
	return p, err
}

// jsonTime writes an instant as topics do.
func jsonTime(t time.Time) string {
	raw, err := t.MarshalJSON()
	if err != nil {
		return ""
	}
	return strings.Trim(string(raw), `"`)
}
