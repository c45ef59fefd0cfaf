package access

import "github.com/google/uuid"

// Reach is the union of the scopes in which a permission is held, as lists and searches need it.
type Reach struct {
	All     bool        // not limited
	Lanes   []string    // home lanes of the tenants within reach
	Tenants []uuid.UUID // tenants within reach by themselves
}

// Reach returns where the permission is held; the zero Reach is nowhere.
func (r Rights) Reach(p Permission) Reach {
	out := Reach{Lanes: []string{}, Tenants: []uuid.UUID{}}
	for _, s := range r.scopes[p] {
		if s.Everywhere() {
			return Reach{All: true}
		}
		out.Lanes = append(out.Lanes, s.Lanes...)
		out.Tenants = append(out.Tenants, s.Tenants...)
	}
	return out
}
