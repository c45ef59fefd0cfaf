package api

import (
	"context"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/admit"
	"fairlane/control/explain"
)

// Tokens tells whose secret this is; control.CodeUnauthorized when it is nobody's.
type Tokens interface {
	Principal(ctx context.Context, secret string) (admit.Principal, error)
}

// Gate answers submissions.
type Gate interface {
	Submit(ctx context.Context, who admit.Principal, r admit.Request, key string) (admit.Answer, error)
}

// Tasks reads tasks of one tenant; control.CodeNotFound when a task is not his.
type Tasks interface {
	Task(ctx context.Context, tenant, id uuid.UUID) (control.Task, error)
	List(ctx context.Context, tenant uuid.UUID, f control.TaskFilter, before uuid.UUID, limit int) (control.TaskPage, error)
}

// Canceler ends a queued task or records that somebody wishes a running one ended. It returns the
// state afterwards and whether a cancel is asked for and not yet decided; control.CodeNotFound when the
// task is not the tenant's.
type Canceler interface {
	Cancel(ctx context.Context, tenant, task uuid.UUID, actor control.Actor) (control.TaskState, bool, error)
}

// Explains tells why a task waits; control.CodeNotFound when it does not.
type Explains interface {
	Explain(ctx context.Context, task uuid.UUID) (explain.Answer, error)
}
