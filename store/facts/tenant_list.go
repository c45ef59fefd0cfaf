package facts

import (
	"context"

	"fairlane/policy"
	"fairlane/store/facts/sqlc"
)

// Tenants are the customer accounts and their people.
type Tenants struct{ db *DB }

// NewTenants returns the tenants of that database.
func NewTenants(db *DB) *Tenants { return &Tenants{db: db} }

// PlanList returns every tenant with its plan, by id: what the policy's rules and shares need.
func (t *Tenants) PlanList(ctx context.Context) ([]policy.Tenant, error) {
	return planList(ctx, t.db.pool)
}

func planList(ctx context.Context, db sqlc.DBTX) ([]policy.Tenant, error) {
	rows, err := sqlc.New(db).PlanList(ctx)
	if err != nil {
		return nil, away(err)
	}
	out := make([]policy.Tenant, len(rows))
	for i, r := range rows {
		out[i] = policy.Tenant{ID: r.TenantID, Code: r.Code, Name: r.Name, PlanCode: r.PlanCode, Status: r.Status}
	}
	return out, nil
}
