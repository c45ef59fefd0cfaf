package schedule

import (
	"context"
	"time"

	"github.com/google/uuid"

	"fairlane/control/plan"
)

// Claim asks for a batch of starts in one transaction.
type Claim struct {
	PoolGroup     string
	PolicyVersion int64          // the version under which it was planned
	Relabels      []plan.Loan    // done first: BORROWED becomes OWN where it still runs and the lane has own units
	Lending       []plan.Lending // lanes that lend again, before the starts are decided; those that stop, after them
	Repaid        []plan.Repaid  // taken from debts
	Starts        []ClaimStart
}

// ClaimStart is one start with what the attempt needs beside it.
type ClaimStart struct {
	plan.Start
	Provider        string
	ProviderAccount string
	AttemptTimeout  time.Duration // the attempt's deadline, from the claim
}

// Refusal says why a start of a batch was not claimed. The rest of the batch is not touched by it.
type Refusal string

// The refusals of a claim.
const (
	RefusedTask    Refusal = "TASK"    // no longer QUEUED at that version, or not yet eligible
	RefusedTenant  Refusal = "TENANT"  // max_running_tasks or max_running_units, or suspended
	RefusedUser    Refusal = "USER"    // running tasks, whole or of its kind
	RefusedLane    Refusal = "LANE"    // paused or switched off
	RefusedAccount Refusal = "ACCOUNT" // own, common or borrowed units
	RefusedPool    Refusal = "POOL"    // leaf or cap group
)

// Claimed is the answer for one start, in the order of the request.
type Claimed struct {
	TaskID       uuid.UUID
	AttemptID    uuid.UUID // zero when refused
	FencingToken int64
	Refused      Refusal // "" when claimed
	Pool         string  // for RefusedPool: the pool that had no room
}

// Claimer commits a plan: counters, units, tasks, attempts, reservations, outbox in one transaction.
type Claimer interface {
	Claim(ctx context.Context, c Claim) ([]Claimed, error)
}

// Snapshotter reads the counters of lanes, pools, and of the tenants and users named.
type Snapshotter interface {
	Snapshot(ctx context.Context, group string, tenants []uuid.UUID, users []plan.TenantUser) (plan.Snapshot, error)
}
