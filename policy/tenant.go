package policy

import "github.com/google/uuid"

// The states of a tenant.
const (
	TenantActive    = "ACTIVE"
	TenantSuspended = "SUSPENDED"
)

// Tenant is what the rules of the document need to know of a customer account.
type Tenant struct {
	ID       uuid.UUID
	Code     string
	Name     string
	PlanCode string
	Status   string // TenantActive or TenantSuspended; "" counts as active
}

// Active reports whether the tenant takes part in its lane's shares.
func (t Tenant) Active() bool { return t.Status != TenantSuspended }
