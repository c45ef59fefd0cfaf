package facts

import (
	"context"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/policy/access"
)

// Access are the rules and grants from which rights follow. Every change of them moves the access version.
type Access struct{ db *DB }

// NewAccess works on db.
func NewAccess(db *DB) *Access { return &Access{db} }

// AccessVersion returns the version of rules and grants.
func (a *Access) AccessVersion(ctx context.Context) (int64, error) {
	var version int64
	err := a.db.pool.QueryRow(ctx, `SELECT version FROM access_head`).Scan(&version)
	return version, away(err)
}

// LoadAccess reads rules, grants of active operators and their version at one instant.
func (a *Access) LoadAccess(ctx context.Context) (access.Ruleset, error) {
	var set access.Ruleset
	err := a.db.Tx(ctx, func(tx pgx.Tx) error {
		set = access.Ruleset{}
		if _, err := tx.Exec(ctx, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `SELECT version FROM access_head`).Scan(&set.Version); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT role, permission, effect FROM access_rule ORDER BY role, permission, effect`)
		if err != nil {
			return err
		}
		if set.Rules, err = pgx.CollectRows(rows, pgx.RowToStructByPos[access.Rule]); err != nil {
			return err
		}
		rows, err = tx.Query(ctx, `
			SELECT g.operator_id, g.role, g.lanes, g.tenants FROM access_grant g JOIN operator o USING (operator_id)
			WHERE o.status = 'ACTIVE' ORDER BY g.operator_id, g.role`)
		if err != nil {
			return err
		}
		set.Grants, err = pgx.CollectRows(rows, pgx.RowToStructByPos[access.Grant])
		return err
	})
	return set, away(err)
}

// EnsureRules writes the shipped rules into a database that has none yet, with an audit record, and
// reports whether it did. Later starts leave what operators made of them alone.
func (a *Access) EnsureRules(ctx context.Context, rules []access.Rule) (bool, error) {
	var wrote bool
	err := a.db.Tx(ctx, func(tx pgx.Tx) error {
		wrote = false
		var version int64
		if err := tx.QueryRow(ctx, `SELECT version FROM access_head FOR UPDATE`).Scan(&version); err != nil {
			return err
		}
		var some bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM access_rule)`).Scan(&some); err != nil || some {
			return err
		}
		roles, permissions, effects := make([]string, len(rules)), make([]string, len(rules)), make([]string, len(rules))
		for i, r := range rules {
			roles[i], permissions[i], effects[i] = string(r.Role), string(r.Permission), string(r.Effect)
		}
		if _, err := tx.Exec(ctx, `
			INSERT INTO access_rule (role, permission, effect) SELECT * FROM unnest($1::text[], $2::text[], $3::text[])`,
			roles, permissions, effects); err != nil {
			return err
		}
		wrote = true
		if err := bumpAccess(ctx, tx); err != nil {
			return err
		}
		return auditRule(ctx, tx, control.System, "shipped with the product", "shipped", map[string]any{
			"role": "*", "permission": strconv.Itoa(len(rules)) + " rules", "effect": string(access.Allow)})
	})
	return wrote, away(err)
}

// Revoke takes a role from an operator. It is felt on every replica within two seconds.
func (a *Access) Revoke(ctx context.Context, actor control.Actor, reason string, operator uuid.UUID, role access.Role) error {
	return away(a.db.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM access_grant WHERE operator_id = $1 AND role = $2`, operator, role)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return control.Errorf(control.CodeNotFound, "the account does not have the role %s", role)
		}
		if err := bumpAccess(ctx, tx); err != nil {
			return err
		}
		return auditRule(ctx, tx, actor, reason, operator.String(), map[string]any{"role": string(role), "permission": "*", "effect": "revoked"})
	}))
}

// bumpAccess moves the access version in the transaction of the change, and tells the replicas after it.
func bumpAccess(ctx context.Context, tx pgx.Tx) error {
	var version int64
	if err := tx.QueryRow(ctx, `UPDATE access_head SET version = version + 1 RETURNING version`).Scan(&version); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `SELECT pg_notify($1, $2)`, control.NotifyAccess, strconv.FormatInt(version, 10))
	return err
}
