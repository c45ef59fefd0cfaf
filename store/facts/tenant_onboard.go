package facts

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/audit"
	"fairlane/control"
	"fairlane/policy"
)

// NewTenant asks for a customer account.
type NewTenant struct {
	ID    uuid.UUID // zero: a new one
	Code  string
	Name  string
	Plan  string // code of a plan of the policy in force
	Users []NewUser
}

// NewUser asks for a person in an account.
type NewUser struct {
	ID         uuid.UUID // zero: a new one
	ExternalID string    // what the platform's service calls the person
}

const (
	maxOnboard    = 10_000
	onboardReason = "onboarding"
)

// Onboard makes the accounts that do not exist yet, with their people, counters in every lane and the
// settings of the policy in force, and a record of each, in one transaction. It is idempotent by code:
// of an account that exists only missing people are added. It answers with all accounts asked for, in
// their order. Refused with CodeInvalid are wrong names, plans that do not exist, and what would break a
// rule of the policy, such as more reserves than a lane has. reason may be empty.
func (t *Tenants) Onboard(ctx context.Context, list []NewTenant, actor control.Actor, reason string) ([]policy.Tenant, error) {
	if reason == "" {
		reason = onboardReason
	}
	reason, wrong := policy.CleanReason(reason)
	if err := control.Invalid(append(wrong, checkOnboard(list)...)); err != nil {
		return nil, err
	}
	// Identifiers are drawn once, so that a transaction that is run again makes the same accounts.
	list = slices.Clone(list)
	if err := drawIDs(list); err != nil {
		return nil, err
	}
	var out []policy.Tenant
	err := t.db.Tx(ctx, func(tx pgx.Tx) (err error) {
		out, err = onboard(ctx, tx, NewPolicies(t.db), list, actor, reason)
		return err
	})
	return out, away(err)
}

func checkOnboard(list []NewTenant) []control.FieldError {
	if len(list) > maxOnboard {
		return []control.FieldError{{Field: "tenants", Key: policy.KeyTooMany, Args: map[string]any{"count": int64(len(list)), "max": int64(maxOnboard)}}}
	}
	var wrong []control.FieldError
	seen := map[string]bool{}
	for i, n := range list {
		path := fmt.Sprintf("tenants[%d]", i)
		wrong = append(wrong, policy.CheckCode(path+".code", n.Code)...)
		wrong = append(wrong, policy.CheckName(path+".name", n.Name, 200)...)
		if seen[n.Code] {
			wrong = append(wrong, control.FieldError{Field: path + ".code", Key: policy.KeyDuplicate, Args: map[string]any{"value": n.Code}})
		}
		seen[n.Code] = true
		for j, u := range n.Users {
			wrong = append(wrong, policy.CheckName(fmt.Sprintf("%s.users[%d].external_id", path, j), u.ExternalID, 128)...)
		}
	}
	return wrong
}

func drawIDs(list []NewTenant) (err error) {
	for i := range list {
		if list[i].ID == uuid.Nil {
			if list[i].ID, err = uuid.NewV7(); err != nil {
				return err
			}
		}
		users := make([]NewUser, len(list[i].Users))
		copy(users, list[i].Users)
		for j := range users {
			if users[j].ID == uuid.Nil {
				if users[j].ID, err = uuid.NewV7(); err != nil {
					return err
				}
			}
		}
		list[i].Users = users
	}
	return nil
}

func onboard(ctx context.Context, tx pgx.Tx, policies *Policies, list []NewTenant, actor control.Actor, reason string) ([]policy.Tenant, error) {
	head, err := lockPolicyHead(ctx, tx)
	if err != nil {
		return nil, err
	}
	if head == 0 {
		return nil, control.Errorf(control.CodeConflict, "tenants need a plan, and no policy version has been published yet")
	}
	v, err := policies.version(ctx, tx, head)
	if err != nil {
		return nil, err
	}
	tenants, err := planList(ctx, tx)
	if err != nil {
		return nil, err
	}
	known := make(map[string]policy.Tenant, len(tenants))
	for _, t := range tenants {
		known[t.Code] = t
	}
	out := make([]policy.Tenant, len(list))
	var fresh []policy.Tenant
	var events []audit.Event
	for i, n := range list {
		if t, exists := known[n.Code]; exists {
			out[i] = t
			continue
		}
		out[i] = policy.Tenant{ID: n.ID, Code: n.Code, Name: n.Name, PlanCode: n.Plan, Status: policy.TenantActive}
		fresh = append(fresh, out[i])
		events = append(events, audit.Event{
			Actor: actor, Action: audit.TenantOnboard, ObjectKind: audit.KindTenant, ObjectID: n.Code, Reason: reason, Result: audit.OK,
			Params: map[string]any{"code": n.Code, "plan": n.Plan, "users": len(n.Users)},
			New:    map[string]any{"id": n.ID.String(), "name": n.Name, "plan": n.Plan},
		})
	}
	if err := control.Invalid(policy.Validate(v.Document, append(tenants, fresh...))); err != nil {
		return nil, err
	}
	if err := insertTenants(ctx, tx, &v, fresh); err != nil {
		return nil, err
	}
	if err := insertUsers(ctx, tx, out, list); err != nil {
		return nil, err
	}
	_, err = appendAudits(ctx, tx, events)
	return out, err
}

func insertTenants(ctx context.Context, tx pgx.Tx, v *policy.Version, fresh []policy.Tenant) error {
	if len(fresh) == 0 {
		return nil
	}
	ids, names := make([]uuid.UUID, len(fresh)), make([]string, len(fresh))
	codes, plans := make([]string, len(fresh)), make([]string, len(fresh))
	for i, t := range fresh {
		ids[i], codes[i], names[i], plans[i] = t.ID, t.Code, t.Name, t.PlanCode
	}
	if _, err := tx.Exec(ctx, `INSERT INTO tenant (tenant_id, code, name, plan_code)
		SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[])`, ids, codes, names, plans); err != nil {
		return err
	}
	if err := copySettings(ctx, tx, v, fresh); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO tenant_runtime (tenant_id) SELECT unnest($1::uuid[])`, ids); err != nil {
		return err
	}
	lanes := make([]string, len(v.Document.Lanes))
	for i := range lanes {
		lanes[i] = v.Document.Lanes[i].Code
	}
	_, err := tx.Exec(ctx, `INSERT INTO tenant_lane_runtime (tenant_id, lane)
		SELECT t, l FROM unnest($1::uuid[]) t CROSS JOIN unnest($2::text[]) l`, ids, lanes)
	return err
}

// insertUsers adds the people that their accounts do not have yet, each with counters.
func insertUsers(ctx context.Context, tx pgx.Tx, tenants []policy.Tenant, list []NewTenant) error {
	var accounts, ids []uuid.UUID
	var names []string
	for i, n := range list {
		for _, u := range n.Users {
			accounts, ids, names = append(accounts, tenants[i].ID), append(ids, u.ID), append(names, u.ExternalID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		WITH made AS (
			INSERT INTO tenant_user (tenant_id, user_id, external_id)
			SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[])
			ON CONFLICT DO NOTHING RETURNING tenant_id, user_id)
		INSERT INTO user_runtime (tenant_id, user_id) SELECT tenant_id, user_id FROM made ON CONFLICT DO NOTHING`, accounts, ids, names)
	return err
}
