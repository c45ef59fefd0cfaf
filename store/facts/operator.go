package facts

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/audit"
	"fairlane/control"
	"fairlane/policy/access"
)

// Operators are the local accounts of the console.
type Operators struct{ db *DB }

// NewOperators works on db.
func NewOperators(db *DB) *Operators { return &Operators{db} }

// OperatorByLogin returns the account of that login; control.CodeNotFound when there is none.
func (o *Operators) OperatorByLogin(ctx context.Context, login string) (access.Account, error) {
	var a access.Account
	err := o.db.pool.QueryRow(ctx, `
		SELECT operator_id, login, name, password_hash, status = 'ACTIVE', language, theme
		FROM operator WHERE login = $1`, login).
		Scan(&a.ID, &a.Login, &a.Name, &a.PasswordHash, &a.Active, &a.Language, &a.Theme)
	if errors.Is(err, pgx.ErrNoRows) {
		return access.Account{}, control.Errorf(control.CodeNotFound, "there is no such account")
	}
	return a, away(err)
}

// SavePreference stores an operator's choice of language and theme; nil leaves one as it is.
func (o *Operators) SavePreference(ctx context.Context, operator uuid.UUID, language, theme *string) error {
	tag, err := o.db.pool.Exec(ctx, `
		UPDATE operator SET language = coalesce($2, language), theme = coalesce($3, theme), updated_at = now()
		WHERE operator_id = $1`, operator, language, theme)
	if err == nil && tag.RowsAffected() == 0 {
		return control.Errorf(control.CodeNotFound, "there is no such account")
	}
	return away(err)
}

// EnsureOperators makes the accounts that are not there yet, with their grants and one audit record each,
// and returns their logins. Accounts that exist are left alone unless they ask to be replaced: then they
// get the new password and grants, and their sessions end.
func (o *Operators) EnsureOperators(ctx context.Context, actor control.Actor, reason string, list []access.NewAccount) ([]string, error) {
	for _, a := range list {
		if err := a.Check(); err != nil {
			return nil, err
		}
	}
	var made []string
	err := o.db.Tx(ctx, func(tx pgx.Tx) error {
		made = nil
		for _, a := range list {
			written, err := ensureOperator(ctx, tx, actor, reason, a)
			if err != nil {
				return err
			}
			if written {
				made = append(made, a.Login)
			}
		}
		if len(made) == 0 {
			return nil
		}
		return bumpAccess(ctx, tx)
	})
	return made, away(err)
}

func ensureOperator(ctx context.Context, tx pgx.Tx, actor control.Actor, reason string, a access.NewAccount) (bool, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return false, err
	}
	action := audit.OperatorAdd
	tag, err := tx.Exec(ctx, `
		INSERT INTO operator (operator_id, login, name, password_hash) VALUES ($1, $2, $3, $4)
		ON CONFLICT (login) DO NOTHING`, id, a.Login, a.Name, a.PasswordHash)
	if err != nil {
		return false, err
	}
	if tag.RowsAffected() == 0 {
		if !a.Replace {
			return false, nil
		}
		action = audit.OperatorChange
		if err := tx.QueryRow(ctx, `
			UPDATE operator SET name = $2, password_hash = $3, status = 'ACTIVE', updated_at = now()
			WHERE login = $1 RETURNING operator_id`, a.Login, a.Name, a.PasswordHash).Scan(&id); err != nil {
			return false, err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM access_grant WHERE operator_id = $1`, id); err != nil {
			return false, err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM session WHERE operator_id = $1`, id); err != nil {
			return false, err
		}
	}
	roles := make([]string, 0, len(a.Grants))
	for _, g := range a.Grants {
		if _, err := tx.Exec(ctx, `
			INSERT INTO access_grant (operator_id, role, lanes, tenants) VALUES ($1, $2, coalesce($3::text[], '{}'), coalesce($4::uuid[], '{}'))`,
			id, g.Role, g.Lanes, g.Tenants); err != nil {
			return false, err
		}
		roles = append(roles, string(g.Role))
	}
	return true, auditOperator(ctx, tx, actor, reason, action, a.Login, roles)
}

// Disable takes an account out of use: its rights are gone within two seconds, its sessions at once.
func (o *Operators) Disable(ctx context.Context, actor control.Actor, reason, login string) error {
	return away(o.db.Tx(ctx, func(tx pgx.Tx) error {
		var id uuid.UUID
		err := tx.QueryRow(ctx, `
			UPDATE operator SET status = 'DISABLED', updated_at = now() WHERE login = $1 RETURNING operator_id`, login).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return control.Errorf(control.CodeNotFound, "there is no account %s", login)
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM session WHERE operator_id = $1`, id); err != nil {
			return err
		}
		if err := bumpAccess(ctx, tx); err != nil {
			return err
		}
		return auditOperator(ctx, tx, actor, reason, audit.OperatorDisable, login, nil)
	}))
}

// None tells whether nobody can sign in.
func (o *Operators) None(ctx context.Context) (bool, error) {
	var none bool
	err := o.db.pool.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM operator WHERE status = 'ACTIVE')`).Scan(&none)
	return none, away(err)
}
