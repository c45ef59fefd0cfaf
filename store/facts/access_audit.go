package facts

import (
	"context"

	"github.com/jackc/pgx/v5"

	"fairlane/audit"
	"fairlane/control"
)

// auditOperator records what was done to an account.
func auditOperator(ctx context.Context, tx pgx.Tx, actor control.Actor, reason string, action audit.Action, login string, roles []string) error {
	e := audit.Event{
		Actor: actor, Action: action, ObjectKind: audit.KindOperator, ObjectID: login, Reason: reason, Result: audit.OK,
		Params: map[string]any{"login": login},
	}
	if roles != nil {
		e.Params["roles"] = roles
		e.New = map[string]any{"roles": roles}
	}
	_, err := appendAudit(ctx, tx, e)
	return err
}

// auditRule records a change of what a role may do or who has it.
func auditRule(ctx context.Context, tx pgx.Tx, actor control.Actor, reason, object string, params map[string]any) error {
	_, err := appendAudit(ctx, tx, audit.Event{
		Actor: actor, Action: audit.RuleChange, ObjectKind: audit.KindRole, ObjectID: object, Reason: reason, Result: audit.OK, Params: params,
	})
	return err
}

// auditSession records the beginning or the end of a session.
func auditSession(ctx context.Context, tx pgx.Tx, actor control.Actor, reason string, action audit.Action, login string) error {
	_, err := appendAudit(ctx, tx, audit.Event{
		Actor: actor, Action: action, ObjectKind: audit.KindSession, ObjectID: login, Reason: reason, Result: audit.OK,
		Params: map[string]any{"login": login},
	})
	return err
}
