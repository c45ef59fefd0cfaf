package facts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/audit"
	"fairlane/control"
	"fairlane/policy/access"
)

// Sessions keeps sessions under the hash of their token: who reads the table cannot take one over. It
// implements the store of alexedwards/scs.
type Sessions struct{ db *DB }

// NewSessions works on db.
func NewSessions(db *DB) *Sessions { return &Sessions{db} }

// FindCtx returns the data of a session that has not ended and whose operator is active.
func (s *Sessions) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	var data []byte
	err := s.db.pool.QueryRow(ctx, `
		SELECT s.data FROM session s JOIN operator o USING (operator_id)
		WHERE s.token_hash = $1 AND s.expiry > clock_timestamp() AND o.status = 'ACTIVE'`, sessionHash(token)).Scan(&data)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	return data, err == nil, away(err)
}

// CommitCtx opens the session of the operator whom ctx carries, with an audit record. A token that was
// used before is refused: nothing brings an ended session back.
func (s *Sessions) CommitCtx(ctx context.Context, token string, data []byte, expiry time.Time) error {
	subject, ok := access.SubjectOf(ctx)
	if !ok || subject.Operator == uuid.Nil {
		return control.Errorf(control.CodeUnauthorized, "a session needs an operator")
	}
	return away(s.db.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `
			INSERT INTO session (token_hash, operator_id, data, expiry) VALUES ($1, $2, $3, $4)`,
			sessionHash(token), subject.Operator, data, expiry); err != nil {
			return err
		}
		actor := access.ActorOf(ctx)
		actor.ID, actor.Name = subject.Operator, subject.Login
		return auditSession(ctx, tx, actor, "", audit.SessionSignIn, subject.Login)
	}))
}

// DeleteCtx ends a session, with an audit record; one that is not there is no error.
func (s *Sessions) DeleteCtx(ctx context.Context, token string) error {
	return away(s.db.Tx(ctx, func(tx pgx.Tx) error {
		var operator uuid.UUID
		var login string
		err := tx.QueryRow(ctx, `
			DELETE FROM session s USING operator o WHERE s.token_hash = $1 AND o.operator_id = s.operator_id
			RETURNING o.operator_id, o.login`, sessionHash(token)).Scan(&operator, &login)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		actor := access.ActorOf(ctx)
		actor.ID, actor.Name = operator, login
		return auditSession(ctx, tx, actor, "", audit.SessionSignOut, login)
	}))
}

// Touch moves the end of a session that has not ended: idle from now, but never past absolute from its
// beginning.
func (s *Sessions) Touch(ctx context.Context, token string, idle, absolute time.Duration) error {
	_, err := s.db.pool.Exec(ctx, `
		UPDATE session SET expiry = least(created_at + $3, clock_timestamp() + $2)
		WHERE token_hash = $1 AND expiry > clock_timestamp()`, sessionHash(token), idle, absolute)
	return away(err)
}

// Alive reports which of the hashes are those of living sessions of active operators.
func (s *Sessions) Alive(ctx context.Context, hashes []string) (map[string]bool, error) {
	rows, err := s.db.pool.Query(ctx, `
		SELECT s.token_hash FROM session s JOIN operator o USING (operator_id)
		WHERE s.token_hash = ANY($1) AND s.expiry > clock_timestamp() AND o.status = 'ACTIVE'`, hashes)
	if err != nil {
		return nil, away(err)
	}
	alive := map[string]bool{}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, hash := range found {
		alive[hash] = true
	}
	return alive, away(err)
}

// RevokeOf ends all sessions of an operator, with an audit record, and returns how many there were.
func (s *Sessions) RevokeOf(ctx context.Context, actor control.Actor, reason string, operator uuid.UUID) (int64, error) {
	var ended int64
	err := s.db.Tx(ctx, func(tx pgx.Tx) error {
		var login string
		err := tx.QueryRow(ctx, `SELECT login FROM operator WHERE operator_id = $1`, operator).Scan(&login)
		if errors.Is(err, pgx.ErrNoRows) {
			return control.Errorf(control.CodeNotFound, "there is no such account")
		}
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `DELETE FROM session WHERE operator_id = $1`, operator)
		if err != nil {
			return err
		}
		ended = tag.RowsAffected()
		return auditSession(ctx, tx, actor, reason, audit.SessionRevoke, login)
	})
	return ended, away(err)
}

// Sweep removes at most a thousand sessions that have ended, and returns how many it removed.
func (s *Sessions) Sweep(ctx context.Context) (int64, error) {
	tag, err := s.db.pool.Exec(ctx, `
		DELETE FROM session WHERE token_hash IN (SELECT token_hash FROM session WHERE expiry <= clock_timestamp() LIMIT 1000)`)
	return tag.RowsAffected(), away(err)
}

// Find is FindCtx without a context. With Commit and Delete it completes the interface of scs; nothing
// calls them, since every caller has a context.
func (s *Sessions) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit is CommitCtx without a context, and so without an operator: always refused.
func (s *Sessions) Commit(token string, data []byte, expiry time.Time) error {
	return s.CommitCtx(context.Background(), token, data, expiry)
}

// Delete is DeleteCtx without a context.
func (s *Sessions) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }

func sessionHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
