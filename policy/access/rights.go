package access

import (
	"slices"

	"github.com/google/uuid"
)

// Grant gives an operator a role. Empty lanes and tenants: everywhere; else only there.
type Grant struct {
	Operator uuid.UUID
	Role     Role
	Lanes    []string
	Tenants  []uuid.UUID
}

// Object is what a permission is asked for. The zero Object is the platform as a whole.
type Object struct {
	Lane   string    // the lane, or the home lane of the tenant
	Tenant uuid.UUID // zero for a lane
}

// Scope is the reach of one grant.
type Scope struct {
	Lanes   []string
	Tenants []uuid.UUID
}

// Everywhere reports whether the scope is not limited.
func (s Scope) Everywhere() bool { return len(s.Lanes) == 0 && len(s.Tenants) == 0 }

// Contains reports whether the object lies inside the scope: a tenant by itself or by its home lane, a
// lane by its code. The platform as a whole lies in none but the unlimited one.
func (s Scope) Contains(o Object) bool {
	switch {
	case s.Everywhere():
		return true
	case o.Tenant != uuid.Nil && slices.Contains(s.Tenants, o.Tenant):
		return true
	default:
		return o.Lane != "" && slices.Contains(s.Lanes, o.Lane)
	}
}

// Rights is everything that one operator may do, computed once from one access version. The zero Rights
// allow nothing.
type Rights struct {
	Version int64
	Roles   []Role
	scopes  map[Permission][]Scope
}

// May reports whether the permission is held at all, be it for a part of the platform only. It decides
// about routes and topics.
func (r Rights) May(p Permission) bool { return len(r.scopes[p]) > 0 }

// MayOn reports whether the permission is held for that object.
func (r Rights) MayOn(p Permission, o Object) bool {
	return slices.ContainsFunc(r.scopes[p], func(s Scope) bool { return s.Contains(o) })
}
