package session

import (
	"context"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/google/uuid"

	"fairlane/policy/access"
)

// Operators finds accounts; a login that nobody has is control.CodeNotFound.
type Operators interface {
	OperatorByLogin(ctx context.Context, login string) (access.Account, error)
}

// Store keeps sessions under the hash of their token. CommitCtx writes the operator whom ctx carries as
// access.Subject beside the session, with an audit record; DeleteCtx ends one, with an audit record.
type Store interface {
	scs.CtxStore
	// Touch moves the end of an unused session; it never brings an ended one back.
	Touch(ctx context.Context, token string, idle, absolute time.Duration) error
	// Alive reports which of the hashes are those of living sessions of active operators.
	Alive(ctx context.Context, hashes []string) (map[string]bool, error)
}

// Rights tells what an operator may do now.
type Rights interface {
	Rights(operator uuid.UUID) (access.Rights, error)
}
