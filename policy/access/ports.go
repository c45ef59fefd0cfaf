package access

import (
	"context"

	"fairlane/control"
)

// Ruleset is everything that decisions follow from, read in one transaction.
type Ruleset struct {
	Version int64
	Rules   []Rule
	Grants  []Grant // of active operators only
}

// Source reads the rules. Both methods are short reads.
type Source interface {
	AccessVersion(ctx context.Context) (int64, error)
	LoadAccess(ctx context.Context) (Ruleset, error)
}

// Denials takes note of a refused attempt for the audit record. It must not block: a flood of refusals is
// summed up by whoever implements it.
type Denials interface {
	Denied(ctx context.Context, actor control.Actor, permission, object string)
}
