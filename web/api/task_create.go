package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"fairlane/control/admit"
)

// The first look at a task is worth while when it is expected to start, within these bounds.
const (
	firstLook = 5 * time.Second
	lastLook  = time.Minute
)

func (a *API) create(c *gin.Context) {
	who, ok := a.principal(c)
	if !ok {
		return
	}
	ctx, cancel := bounded(c)
	defer cancel()
	r, key, err := a.newTask(c)
	if err != nil {
		a.problem(c, err)
		return
	}
	answer, err := a.cfg.Gate.Submit(ctx, who, r, key)
	if err != nil {
		a.problem(c, err)
		return
	}
	look := lastLook
	if answer.EstimatedStart != nil {
		look = min(max(answer.EstimatedStart.Sub(answer.QueuedAt), firstLook), lastLook)
	}
	if answer.Replayed {
		c.Header("Idempotency-Replayed", "true")
	}
	c.Header("Location", "/v1/tasks/"+answer.TaskID.String())
	c.Header("Retry-After", strconv.FormatInt(seconds(look), 10))
	c.JSON(http.StatusAccepted, answer)
}

// newTask reads a submission: headers, then the body.
func (a *API) newTask(c *gin.Context) (r admit.Request, key string, err error) {
	h := c.Request.Header
	if key, err = idempotencyKey(h); err != nil {
		return r, "", err
	}
	if r.User, err = userName(h, true); err != nil {
		return r, "", err
	}
	r.TraceParent = trace(h)
	if err = jsonType(c.Request); err != nil {
		return r, "", err
	}
	text, err := a.body(c)
	if err != nil {
		return r, "", err
	}
	return r, key, decodeTask(text, &r)
}

// decodeTask reads the body of a submission into r.
func decodeTask(text []byte, r *admit.Request) error {
	var length, deadline *int64
	err := decode(text, map[string]*field{
		"model":            {text: &r.Model, min: 1, max: 64},
		"prompt":           {text: &r.Prompt, min: 1, max: admit.MaxPrompt},
		"negative_prompt":  {text: &r.NegativePrompt, max: admit.MaxPrompt},
		"resolution":       {text: &r.Resolution, min: 1, max: 32},
		"project":          {text: &r.Project, min: 1, max: admit.MaxProject},
		"duration_seconds": {number: &length, min: 1, max: 3600},
		"deadline_seconds": {number: &deadline, min: 1, max: admit.MaxDeadlineSeconds},
		"seed":             {number: &r.Seed, min: 0, max: admit.MaxSeed},
		// The server's to decide. Old clients send them, so they are passed over, not refused.
		"cost": {ignored: true}, "priority": {ignored: true}, "priority_band": {ignored: true},
		"lane": {ignored: true}, "queue_class": {ignored: true}, "weight": {ignored: true},
	})
	if err != nil {
		return err
	}
	if length != nil {
		r.Seconds = *length
	}
	if deadline != nil {
		r.DeadlineSeconds = *deadline
	}
	return nil
}
