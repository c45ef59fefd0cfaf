package access

import (
	"errors"

	"github.com/casbin/casbin/v2/model"
	"github.com/google/uuid"
)

var errLoadOnly = errors.New("access rules are written by SQL with their audit record, not through casbin")

// rulesAdapter hands one loaded ruleset to casbin. Subjects carry a prefix, so that no login can be
// taken for a role.
type rulesAdapter struct{ set Ruleset }

func (a rulesAdapter) LoadPolicy(m model.Model) error {
	for _, r := range a.set.Rules {
		if err := m.AddPolicy("p", "p", []string{role(r.Role), string(r.Permission), string(r.Effect)}); err != nil {
			return err
		}
	}
	for _, g := range a.set.Grants {
		if err := m.AddPolicy("g", "g", []string{user(g.Operator), role(g.Role)}); err != nil {
			return err
		}
	}
	return nil
}

func (rulesAdapter) SavePolicy(model.Model) error                              { return errLoadOnly }
func (rulesAdapter) AddPolicy(string, string, []string) error                  { return errLoadOnly }
func (rulesAdapter) RemovePolicy(string, string, []string) error               { return errLoadOnly }
func (rulesAdapter) RemoveFilteredPolicy(string, string, int, ...string) error { return errLoadOnly }

func user(id uuid.UUID) string { return "user:" + id.String() }
func role(r Role) string       { return "role:" + string(r) }
