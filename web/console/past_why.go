package console

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/monitor"
	"fairlane/control/plan"
	"fairlane/policy/access"
	"fairlane/views"
	"fairlane/views/page"
)

// Explains tells why a task waits. A task that the scheduler does not know yet is control.CodeNotFound.
type Explains interface {
	Explain(ctx context.Context, task uuid.UUID) (Waiting, error)
}

// Waiting is why a task waits: its gates in the order in which they are tried, up to and with the one
// that holds it.
type Waiting struct {
	At        time.Time // of the state that it was found in
	Gates     []WaitingGate
	PlaceFrom int64 // its place in the order of starts, as a range; 0: not known
	PlaceTo   int64
	Change    views.Message // smallest change that would start it now; zero: none is known
	ChangeAt  string        // address of the page on which it can be made, such as /lanes/STANDARD; "": nowhere
}

// WaitingGate is one gate with its numbers.
type WaitingGate struct {
	Gate    plan.Gate
	Holds   bool
	Numbers []WaitingNumber
	Options []WaitingOption // accounts or pools that were tried in it
}

// WaitingNumber is a number with its name, a word of the family "why_number".
type WaitingNumber struct {
	Name  string
	Value int64
	Kind  NumberKind
}

// NumberKind is how a number is written.
type NumberKind int

// The kinds of numbers.
const (
	Whole   NumberKind = iota // units, tasks, rounds
	Milli                     // thousandths of a unit
	Seconds                   // a length of time
	Instant                   // Unix seconds
)

// WaitingOption is an account (OWN, COMMON or BORROWED, with its lender) or a pool that was tried.
type WaitingOption struct {
	Account control.Account // "": it is a pool
	Lender  string
	Pool    string
	Reason  string // why it gives nothing, a word of the family "account_no" or "pool_no"; "": it would
	Numbers []WaitingNumber
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
func sayWaiting(ctx context.Context, w Waiting) page.Why {
	p := page.Why{Change: w.Change.In(ctx), Href: w.ChangeAt, As: views.T(ctx, "why.as_of", "Time", views.Time(w.At))}
	if w.PlaceFrom > 0 {
		p.Place = views.T(ctx, "why.place", "From", w.PlaceFrom, "To", w.PlaceTo)
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

func sayNumbers(ctx context.Context, numbers []WaitingNumber) []page.Fact {
	var out []page.Fact
	for _, n := range numbers {
		f := page.Fact{Label: views.Word(ctx, "why_number", n.Name)}
		switch n.Kind {
		case Milli:
			f.Value = views.Milli(n.Value)
		case Seconds:
			f.Value = views.Duration(ctx, time.Duration(n.Value)*time.Second)
		case Instant:
			f.Value = views.Time(time.Unix(n.Value, 0))
		default:
			f.Value = views.Int(n.Value)
		}
		out = append(out, f)
	}
	return out
}

func sayOption(ctx context.Context, o WaitingOption) page.WhyOption {
	p := page.WhyOption{Open: o.Reason == "", Numbers: sayNumbers(ctx, o.Numbers)}
	if o.Account == "" {
		p.Name, p.Href = o.Pool, "/pools/"+url.PathEscape(o.Pool)
		if o.Reason != "" {
			p.Text = views.Word(ctx, "pool_no", o.Reason)
		}
		return p
	}
	p.Name = views.Word(ctx, "account", string(o.Account))
	if o.Lender != "" {
		p.Name += " · " + o.Lender
		p.Href = "/lanes/" + url.PathEscape(o.Lender)
	}
	if o.Reason != "" {
		p.Text = views.Word(ctx, "account_no", o.Reason)
	}
	return p
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
