package facts

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/audit"
	"fairlane/control"
)

// CancelByOperator cancels any tenant's task for a stated reason, as Cancel does, with its audit record
// in the same transaction. A task that had ended, or that somebody has asked to cancel already, is left
// as it is and leaves no record. It returns the state after the call and whether anything was changed.
func (c *Cancels) CancelByOperator(ctx context.Context, task uuid.UUID, actor control.Actor, reason string) (control.TaskState, bool, error) {
	var state control.TaskState
	var changed bool
	err := c.db.Tx(ctx, func(tx pgx.Tx) error {
		var tenant uuid.UUID
		var before control.TaskState
		err := tx.QueryRow(ctx, `SELECT tenant_id, state FROM generation_task WHERE task_id = $1`, task).Scan(&tenant, &before)
		if errors.Is(err, pgx.ErrNoRows) {
			return control.Errorf(control.CodeNotFound, "there is no task %s", task)
		} else if err != nil {
			return err
		}
		if state, _, err = cancelIn(ctx, tx, tenant, task, actor); err != nil {
			return err
		}
		// Whether it was this transaction that wrote the row: somebody may have been faster.
		if err := tx.QueryRow(ctx, `SELECT xmin = pg_current_xact_id()::xid FROM generation_task WHERE task_id = $1`, task).Scan(&changed); err != nil || !changed {
			return err
		}
		_, err = appendAudit(ctx, tx, audit.Event{Actor: actor, Action: audit.TaskCancel, ObjectKind: audit.KindTask, ObjectID: task.String(),
			Params: map[string]any{"state": state}, Old: map[string]any{"state": before}, New: map[string]any{"state": state, "cancel_requested": true},
			Reason: reason, Result: audit.OK})
		return err
	})
	if err != nil {
		return "", false, fmt.Errorf("cancel: %w", err)
	}
	return state, changed, nil
}
