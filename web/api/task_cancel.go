package api

import (
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/control"
)

type canceling struct {
	ID    uuid.UUID         `json:"task_id"`
	State control.TaskState `json:"state"`
	Asked bool              `json:"cancel_requested"`
}

// cancel is idempotent: repeating it gives the answer that fits what has become of the task.
func (a *API) cancel(c *gin.Context) {
	who, id, ok := a.named(c)
	if !ok {
		return
	}
	ctx, cancel := bounded(c)
	defer cancel()
	user, err := userName(c.Request.Header, false)
	if err != nil {
		a.problem(c, err)
		return
	}
	if err := a.empty(c); err != nil {
		a.problem(c, err)
		return
	}
	state, _, err := a.cfg.Cancel.Cancel(ctx, who.TenantID, id, actorOf(c, who, user))
	switch {
	case err != nil:
		a.problem(c, err)
	case state == control.TaskCanceled:
		c.JSON(http.StatusOK, canceling{ID: id, State: state, Asked: true})
	case state.Terminal():
		a.problem(c, control.Errorf(control.CodeIllegalMove, "the task has ended as %s already", state))
	default:
		c.Header("Location", "/v1/tasks/"+id.String())
		c.Header("Retry-After", strconv.FormatInt(seconds(firstLook), 10))
		c.JSON(http.StatusAccepted, canceling{ID: id, State: state, Asked: true})
	}
}

// empty lets through no body, or an object without fields.
func (a *API) empty(c *gin.Context) error {
	text, err := a.body(c)
	if err != nil || len(text) == 0 {
		return err
	}
	if err := jsonType(c.Request); err != nil {
		return err
	}
	return decode(text, nil)
}
