package policy

import (
	"context"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
)

// Version is one published document. Nobody changes the document: it is shared by all who hold it.
type Version struct {
	Number       int64 // 1, 2, 3 … without a gap
	Base         int64 // Number - 1
	Document     *Document
	Digest       [32]byte // SHA-256 of the encoded document
	Reason       string
	ActorID      uuid.UUID // zero for the system
	ActorName    string
	RestoredFrom int64 // 0: none
	CreatedAt    time.Time
}

// Summary is a Version without its document, for lists.
type Summary struct {
	Number       int64
	Digest       [32]byte
	Reason       string
	ActorID      uuid.UUID
	ActorName    string
	RestoredFrom int64
	CreatedAt    time.Time
}

// Publication asks for the next version.
type Publication struct {
	Base         int64 // the version it was made from; 0 for the first
	Document     *Document
	Reason       string
	Actor        control.Actor
	RestoredFrom int64
}

// Store keeps versions. A version that does not exist is CodeNotFound; so is the head before the first.
type Store interface {
	Head(ctx context.Context) (Version, error)
	Version(ctx context.Context, number int64) (Version, error)
	// Publish writes the version, everything that it says to the claims, and its audit record in one
	// transaction, in which it compares the base (CodeConflict, see Moved) and validates once more
	// against the tenants of that moment (CodeInvalid).
	Publish(ctx context.Context, p Publication) (Version, error)
}

// Tenants lists all customer accounts.
type Tenants interface {
	PlanList(ctx context.Context) ([]Tenant, error)
}

// Source is what a replica follows. HeadNumber is 0 before the first version.
type Source interface {
	HeadNumber(ctx context.Context) (int64, error)
	Version(ctx context.Context, number int64) (Version, error)
	// Seen writes down which version the replica has in force, and what keeps it from the wanted one ("" for nothing).
	Seen(ctx context.Context, replica string, version int64, problem string) error
}

// Replica is what a process last wrote down about itself.
type Replica struct {
	Name    string
	Version int64
	Problem string
	SeenAt  time.Time
}
