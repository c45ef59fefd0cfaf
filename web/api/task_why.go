package api

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/explain"
	"fairlane/control/plan"
)

// why is an explanation as a tenant may see it: no figures of others, no names of pools and lenders.
type why struct {
	TaskID        uuid.UUID   `json:"task_id"`
	AsOf          time.Time   `json:"as_of"`
	PolicyVersion int64       `json:"policy_version"`
	HeldBy        plan.Gate   `json:"held_by"`
	Gates         []whyGate   `json:"gates"`
	PlaceFrom     int64       `json:"place_from"`
	Changes       []whyChange `json:"changes"`
}

type whyGate struct {
	Gate    plan.Gate        `json:"gate"`
	Holds   bool             `json:"holds"`
	Numbers map[string]int64 `json:"numbers"`
	Options []whyOption      `json:"options"`
}

type whyOption struct {
	Account control.Account `json:"account,omitempty"`
	Reason  plan.Reason     `json:"reason,omitempty"`
}

type whyChange struct {
	What plan.What `json:"what"`
	From int64     `json:"from"`
	To   int64     `json:"to"`
}

func (a *API) why(c *gin.Context) {
	who, id, ok := a.named(c)
	if !ok {
		return
	}
	ctx, cancel := bounded(c)
	defer cancel()
	t, err := a.cfg.Tasks.Task(ctx, who.TenantID, id) // the tenant's own, or not found
	if err != nil {
		a.problem(c, err)
		return
	}
	if t.State != control.TaskQueued {
		a.problem(c, control.Errorf(control.CodeConflict, "the task does not wait: it is %s", t.State))
		return
	}
	x, err := a.cfg.Explains.Explain(ctx, id)
	if control.CodeOf(err) == control.CodeNotFound {
		err = control.Errorf(control.CodeConflict, "the task does not wait any more")
	}
	if err != nil {
		a.problem(c, err)
		return
	}
	c.Header("Cache-Control", "no-store")
	c.JSON(http.StatusOK, showWhy(x.ForTenant()))
}

func showWhy(x explain.Answer) why {
	out := why{
		TaskID: x.TaskID, AsOf: x.At.UTC(), PolicyVersion: x.Version, HeldBy: x.Holds, PlaceFrom: x.PlaceFrom, Gates: []whyGate{}, Changes: []whyChange{},
	}
	for _, g := range x.Gates {
		w := whyGate{Gate: g.Gate, Holds: g.Holds, Numbers: map[string]int64{}, Options: []whyOption{}}
		for _, n := range g.Numbers {
			w.Numbers[n.Name] = n.Value
		}
		for _, o := range g.Options {
			w.Options = append(w.Options, whyOption{o.Account, o.Reason})
		}
		out.Gates = append(out.Gates, w)
	}
	for _, c := range x.Changes {
		out.Changes = append(out.Changes, whyChange{c.What, c.From, c.To})
	}
	return out
}
