package access

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"fairlane/control"
)

// Account is a local account as sign-in needs it.
type Account struct {
	ID           uuid.UUID
	Login        string
	Name         string
	PasswordHash string // argon2id in PHC form
	Active       bool
	Language     string // "", "zh" or "en"
	Theme        string // "", "light" or "dark"
}

// NewAccount asks for an account with its grants.
type NewAccount struct {
	Login        string
	Name         string
	PasswordHash string
	Grants       []Grant // Operator is not read
	Replace      bool    // give an existing account this password and these grants, and end its sessions
}

// Check returns a control.CodeInvalid error that names every wrong field.
func (a NewAccount) Check() error {
	var wrong []control.FieldError
	bad := func(field, key string, args map[string]any) {
		wrong = append(wrong, control.FieldError{Field: field, Key: key, Args: args})
	}
	text := func(field, v string, most int, wrong func(rune) bool) {
		switch n := utf8.RuneCountInString(v); {
		case n == 0:
			bad(field, "required", nil)
		case n > most:
			bad(field, "too_long", map[string]any{"length": n, "max": most})
		case strings.ContainsFunc(v, wrong):
			bad(field, "control_characters", nil)
		}
	}
	text("login", a.Login, 64, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	text("name", a.Name, 200, unicode.IsControl)
	if a.PasswordHash == "" {
		bad("password", "required", nil)
	}
	if len(a.Grants) == 0 {
		bad("roles", "required", nil)
	}
	for _, g := range a.Grants {
		if _, known := shipped[g.Role]; !known {
			bad("roles", "unknown", map[string]any{"value": string(g.Role)})
		}
	}
	return control.Invalid(wrong)
}
