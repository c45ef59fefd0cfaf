package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/admit"
)

const (
	pageDefault = 50
	pageMost    = 200
)

// task is a task as a tenant may see it: what the provider takes is not in it.
type task struct {
	ID          uuid.UUID         `json:"task_id"`
	State       control.TaskState `json:"state"`
	Version     int64             `json:"version"`
	Kind        control.Kind      `json:"kind"`
	Model       string            `json:"model"`
	Lane        string            `json:"queue_class"`
	User        string            `json:"user"`
	Project     string            `json:"project"`
	Parameters  json.RawMessage   `json:"parameters"`
	SlotUnits   int64             `json:"slot_units"`
	CostMilli   int64             `json:"fairness_milli"`
	PriceMicro  int64             `json:"price_micro"`
	Attempts    int               `json:"attempts"`
	MaxAttempts int               `json:"max_attempts"`
	Progress    *float64          `json:"progress"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
	StartedAt   *time.Time        `json:"started_at"`
	FinishedAt  *time.Time        `json:"finished_at"`
	DeadlineAt  *time.Time        `json:"deadline_at"`
	CancelAsked *time.Time        `json:"cancel_requested_at"`
	Result      json.RawMessage   `json:"result"`
	Error       *taskError        `json:"error"`
}

type taskError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func show(t control.Task) task {
	out := task{
		ID: t.ID, State: t.State, Version: t.Version, Kind: t.Kind, Model: t.Model, Lane: t.Lane, User: t.User, Project: t.Project,
		Parameters: orNull(t.Parameters), SlotUnits: t.SlotUnits, CostMilli: t.CostMilli, PriceMicro: t.PriceMicro,
		Attempts: t.Attempts, MaxAttempts: t.MaxAttempts, CreatedAt: t.CreatedAt.UTC(), UpdatedAt: t.UpdatedAt.UTC(),
		StartedAt: at(t.StartedAt), FinishedAt: at(t.FinishedAt), DeadlineAt: at(t.DeadlineAt), CancelAsked: at(t.CancelAsked),
		Result: orNull(t.Result),
	}
	if t.Progress >= 0 && !t.State.Terminal() {
		p := min(t.Progress, 1)
		out.Progress = &p
	}
	if t.ErrorCode != "" && t.State.Terminal() {
		out.Error = &taskError{Code: t.ErrorCode, Message: t.ErrorMessage}
	}
	return out
}

func orNull(text json.RawMessage) json.RawMessage {
	if len(text) == 0 {
		return json.RawMessage("null")
	}
	return text
}

func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func (a *API) get(c *gin.Context) {
	who, id, ok := a.named(c)
	if !ok {
		return
	}
	ctx, cancel := bounded(c)
	defer cancel()
	t, err := a.cfg.Tasks.Task(ctx, who.TenantID, id)
	if err != nil {
		a.problem(c, err)
		return
	}
	c.Header("ETag", fmt.Sprintf(`W/"%d"`, t.Version))
	c.Header("Cache-Control", "no-store")
	c.JSON(http.StatusOK, show(t))
}

// named returns who asks, and of which task; when it is not ok the request has its answer.
func (a *API) named(c *gin.Context) (who admit.Principal, id uuid.UUID, ok bool) {
	if who, ok = a.principal(c); !ok {
		return who, id, false
	}
	id, err := taskID(c)
	if err != nil {
		a.problem(c, err)
	}
	return who, id, err == nil
}

// taskID reads the path; what is no id names no task.
func taskID(c *gin.Context) (uuid.UUID, error) {
	text := c.Param("id")
	if id, err := uuid.Parse(text); err == nil && len(text) == 36 {
		return id, nil
	}
	return uuid.Nil, control.Errorf(control.CodeNotFound, "there is no task of this id")
}

func (a *API) list(c *gin.Context) {
	who, ok := a.principal(c)
	if !ok {
		return
	}
	ctx, cancel := bounded(c)
	defer cancel()
	q, err := readList(c.Request.URL)
	if err != nil {
		a.problem(c, err)
		return
	}
	page, err := a.cfg.Tasks.List(ctx, who.TenantID, q.filter, q.before, q.limit)
	if err != nil {
		a.problem(c, err)
		return
	}
	answer := struct {
		Tasks []task  `json:"tasks"`
		Next  *string `json:"next_cursor"`
	}{Tasks: make([]task, len(page.Tasks))}
	for i, t := range page.Tasks {
		answer.Tasks[i] = show(t)
	}
	if page.Next != uuid.Nil {
		next := base64.RawURLEncoding.EncodeToString(page.Next[:])
		answer.Next = &next
	}
	c.Header("Cache-Control", "no-store")
	c.JSON(http.StatusOK, answer)
}

type listQuery struct {
	filter control.TaskFilter
	before uuid.UUID
	limit  int
}

// readList reads the query of a list; every parameter at most once, no unknown ones.
func readList(u *url.URL) (listQuery, error) {
	q := listQuery{limit: pageDefault}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return q, malformedf("", "the query is not well-formed")
	}
	for name, list := range values {
		if len(list) != 1 {
			return q, malformedf(shown(name), "this parameter is there more than once")
		}
		value := list[0]
		switch name {
		case "state":
			for _, s := range strings.SplitN(value, ",", len(control.TaskStates)+2) {
				if !slices.Contains(control.TaskStates, control.TaskState(s)) || len(q.filter.States) == len(control.TaskStates) {
					return q, malformedf("state", "must be states of tasks, separated by commas: %v", control.TaskStates)
				}
				q.filter.States = append(q.filter.States, control.TaskState(s))
			}
		case "user":
			err = filterText(name, value, admit.MaxUserName, &q.filter.User)
		case "project":
			err = filterText(name, value, admit.MaxProject, &q.filter.Project)
		case "model":
			err = filterText(name, value, 64, &q.filter.Model)
		case "queue_class":
			err = filterText(name, value, 64, &q.filter.Lane)
		case "limit":
			n, wrong := strconv.Atoi(value)
			if wrong != nil || n < 1 || n > pageMost {
				return q, malformedf("limit", "must be a whole number between 1 and %d", pageMost)
			}
			q.limit = n
		case "cursor":
			raw, wrong := base64.RawURLEncoding.Strict().DecodeString(value)
			if wrong != nil || len(raw) != len(q.before) {
				return q, malformedf("cursor", "must be the next_cursor of the page before")
			}
			q.before = uuid.UUID(raw)
		default:
			return q, malformedf(shown(name), "this parameter is not known")
		}
		if err != nil {
			return q, err
		}
	}
	return q, nil
}

func filterText(name, value string, most int, to *string) error {
	switch n := utf8.RuneCountInString(value); {
	case n < 1 || n > most:
		return malformedf(name, "must have 1 to %d characters, has %d", most, n)
	case !admit.Printable(value, false):
		return malformedf(name, "has control or directional characters, or is not valid UTF-8")
	}
	*to = value
	return nil
}
