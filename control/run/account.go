package run

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/policy/access"
	"fairlane/store/facts"
	"fairlane/web/session"
)

// shell is the actor of what is done on the command line: whoever may read the data directory.
var shell = control.Actor{Name: "command line"}

type userCmd struct {
	Add     userAddCmd     `cmd:"" help:"Add a console account, or replace its password and roles."`
	Disable userDisableCmd `cmd:"" help:"Disable a console account and end its sessions."`
}

type userAddCmd struct {
	storeSettings
	Login         string        `arg:"" help:"Name to sign in with."`
	Role          []access.Role `help:"viewer, operator, approver, auditor, admin or wall; repeat for several." enum:"viewer,operator,approver,auditor,admin,wall" required:""`
	Name          string        `help:"Name to show; the login when empty."`
	PasswordStdin bool          `name:"password-stdin" help:"Read the password from standard input instead of making one."`
	Replace       bool          `help:"Replace an account that exists and end its sessions."`
	Reason        string        `help:"Why; kept in the audit record." default:"added on the command line"`
}

// Run adds the account and prints a password that was made.
func (c *userAddCmd) Run(e *env) error {
	password, made := "", false
	if c.PasswordStdin {
		line, err := bufio.NewReader(io.LimitReader(os.Stdin, 1024)).ReadString('\n')
		if err != nil && err != io.EOF {
			return err
		}
		password = strings.TrimRight(line, "\r\n")
	} else {
		password, made = newPassword(), true
	}
	hash, err := session.HashPassword(e.ctx, password)
	if err != nil {
		return err
	}
	account := access.NewAccount{Login: c.Login, Name: cmp.Or(c.Name, c.Login), PasswordHash: hash, Replace: c.Replace}
	for _, role := range c.Role {
		account.Grants = append(account.Grants, access.Grant{Role: role})
	}
	if err := account.Check(); err != nil {
		return err
	}
	return withDatabase(e.ctx, &c.storeSettings, func(db *facts.DB, _ string) error {
		if _, err := facts.NewAccess(db).EnsureRules(e.ctx, access.Shipped()); err != nil {
			return err
		}
		changed, err := facts.NewOperators(db).EnsureOperators(e.ctx, shell, c.Reason, []access.NewAccount{account})
		switch {
		case err != nil:
			return err
		case len(changed) == 0:
			return fmt.Errorf("an account %s exists already; --replace replaces it", c.Login)
		case made:
			fmt.Fprintf(e.out, "account %s, password %s\n", c.Login, password)
		}
		return nil
	})
}

type userDisableCmd struct {
	storeSettings
	Login  string `arg:""`
	Reason string `help:"Why; kept in the audit record." required:""`
}

// Run disables the account.
func (c *userDisableCmd) Run(e *env) error {
	return withDatabase(e.ctx, &c.storeSettings, func(db *facts.DB, _ string) error {
		return facts.NewOperators(db).Disable(e.ctx, shell, c.Reason, c.Login)
	})
}

type tenantCmd struct {
	Add tenantAddCmd `cmd:"" help:"Add a tenant on a plan of the policy in force."`
}

type tenantAddCmd struct {
	storeSettings
	Code   string `arg:"" help:"Short code, unique."`
	Plan   string `help:"Code of its plan." required:""`
	Name   string `help:"Name to show; the code when empty."`
	Reason string `help:"Why; kept in the audit record." default:"added on the command line"`
}

// Run adds the tenant.
func (c *tenantAddCmd) Run(e *env) error {
	return withDatabase(e.ctx, &c.storeSettings, func(db *facts.DB, _ string) error {
		inForce, err := facts.NewPolicies(db).Head(e.ctx)
		if err != nil {
			return err
		}
		if _, ok := inForce.Document.Plan(c.Plan); !ok {
			return fmt.Errorf("there is no plan %q in policy version %d", c.Plan, inForce.Number)
		}
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		tenant := facts.NewTenant{ID: id, Code: c.Code, Name: cmp.Or(c.Name, c.Code), Plan: c.Plan}
		made, err := facts.NewTenants(db).Onboard(e.ctx, []facts.NewTenant{tenant}, shell, c.Reason)
		switch {
		case err != nil:
			return err
		case made[0].ID != id:
			return fmt.Errorf("a tenant %s exists already, on plan %s", c.Code, made[0].PlanCode)
		}
		fmt.Fprintf(e.out, "tenant %s on plan %s, id %s\n", made[0].Code, made[0].PlanCode, made[0].ID)
		return nil
	})
}

type tokenCmd struct {
	Add tokenAddCmd `cmd:"" help:"Make an API token of a tenant; its secret is printed once."`
}

type tokenAddCmd struct {
	storeSettings
	Tenant string        `arg:"" help:"Code of the tenant."`
	Name   string        `help:"What the token is for." default:"command line"`
	Valid  time.Duration `help:"How long it is valid; for ever when 0." default:"0s"`
}

// Run makes the token.
func (c *tokenAddCmd) Run(e *env) error {
	if c.Valid < 0 {
		return settingError{"--valid", fmt.Sprintf("%v is negative", c.Valid)}
	}
	return withDatabase(e.ctx, &c.storeSettings, func(db *facts.DB, _ string) error {
		list, err := facts.NewTenants(db).PlanList(e.ctx)
		if err != nil {
			return err
		}
		for _, t := range list {
			if t.Code != c.Tenant {
				continue
			}
			var expires time.Time
			if c.Valid > 0 {
				expires = time.Now().Add(c.Valid)
			}
			secret, _, err := facts.NewTokens(db, nil).Create(access.WithActor(e.ctx, shell), t.ID, c.Name, expires)
			if err != nil {
				return err
			}
			fmt.Fprintln(e.out, secret)
			return nil
		}
		return fmt.Errorf("there is no tenant with the code %q", c.Tenant)
	})
}

// newPassword makes one that can be read aloud: 80 random bits in lower case.
func newPassword() string {
	raw := make([]byte, 10)
	_, _ = rand.Read(raw) // never fails; it ends the program instead
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(raw))
}
