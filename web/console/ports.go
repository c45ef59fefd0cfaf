package console

import (
	"context"

	"fairlane/audit"
	"fairlane/control/monitor"
	"fairlane/policy"
)

// Versions reads published versions. One that does not exist is control.CodeNotFound.
type Versions interface {
	Head(ctx context.Context) (policy.Version, error)
	Version(ctx context.Context, number int64) (policy.Version, error)
	// List returns versions below before (0: from the newest), the newest first.
	List(ctx context.Context, before int64, limit int) ([]policy.Summary, error)
}

// Publisher makes the next version; see policy.Publisher.
type Publisher interface {
	Publish(ctx context.Context, p policy.Publication) (policy.Version, error)
}

// Tenants lists customer accounts.
type Tenants interface {
	PlanList(ctx context.Context) ([]policy.Tenant, error)
}

// Cards reads one tenant by code or id, with its use and the sum of the weights of its lane's active
// tenants; control.CodeNotFound when there is none.
type Cards interface {
	TenantCard(ctx context.Context, ref string) (monitor.TenantCard, error)
}

// Audit reads the record.
type Audit interface {
	// List returns events that the filter wants with a sequence below before (0: from the newest), the
	// newest first.
	List(ctx context.Context, f audit.Filter, before int64, limit int) ([]audit.Row, error)
	// Get returns one; control.CodeNotFound when there is none.
	Get(ctx context.Context, sequence int64) (audit.Row, error)
}
