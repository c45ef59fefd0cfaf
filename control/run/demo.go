package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fairlane/control"
	"fairlane/control/provider"
	"fairlane/control/provider/simulated"
	"fairlane/control/run/demo"
	"fairlane/policy"
	"fairlane/policy/access"
	"fairlane/store/facts"
	"fairlane/web/session"
)

type demoCmd struct {
	serveSettings
	Password string  `env:"FAIRLANE_DEMO_PASSWORD" help:"Password of the demo's accounts; made and printed when empty."`
	Speed    float64 `env:"FAIRLANE_DEMO_SPEED" default:"20" help:"How many seconds of the trace and of the providers' work pass in one, 1 to 100."`
	Quiet    bool    `help:"No traffic of its own."`
}

// demoSeed makes the demo's requests and the providers' fates the same at every first start.
const demoSeed = 20260624

// Run serves the demo until it is told to stop. The simulated provider stops with it; its jobs go on at
// the next start.
func (c *demoCmd) Run(e *env) error {
	if os.Getenv("FAIRLANE_LOG_LEVEL") == "" && c.LogLevel == "info" {
		c.LogLevel = "warn" // dozens of requests a second are no news
	}
	if err := c.check(); err != nil {
		return err
	}
	p, err := demo.New(c.Speed)
	if err != nil {
		return settingError{"FAIRLANE_DEMO_SPEED", strings.TrimPrefix(err.Error(), "FAIRLANE_DEMO_SPEED: ")}
	}
	d := &demoRun{cmd: c, platform: p, dir: filepath.Join(c.DataDir, "provider"), tokens: make([]string, len(p.Tenants))}
	out := platform{
		speed: c.Speed, prepare: d.prepare, providers: d.providers,
		ready: func(a *app) {
			fmt.Fprintf(e.out, "\nFairlane demo: %s\n  accounts  operator, approver, auditor, viewer, admin, wall\n  password  %s\n  wall      %s/wall\n  speed     %gx, %d tenants\n\nCtrl-C stops everything; the next start goes on from here.\n\n",
				a.settings.PublicURL, d.said, a.settings.PublicURL, c.Speed, len(p.Tenants))
		},
	}
	if !c.Quiet {
		out.traffic = d.traffic
	}
	return serve(e, &c.serveSettings, out)
}

// demoRun is one life of the demo.
type demoRun struct {
	cmd      *demoCmd
	platform *demo.Platform
	dir      string   // of the simulated provider
	tokens   []string // by tenant
	said     string   // the password, or that it is the given one
}

// demoPerson is the actor of what the demo sets up.
var demoPerson = control.Actor{Name: "demo"}

// prepare makes the policy, the tenants, their tokens and the accounts, as far as they are not there.
func (d *demoRun) prepare(ctx context.Context, a *app) error {
	tenants := a.tenants()
	doc := d.platform.Document()
	plans := doc.Clone()
	plans.Tenants = nil // there is nobody yet whom an override could name
	if err := firstPolicy(ctx, a.policies, tenants, plans, "The demo's platform."); err != nil {
		return fmt.Errorf("demo policy: %w", err)
	}
	list := make([]facts.NewTenant, len(d.platform.Tenants))
	for i, t := range d.platform.Tenants {
		list[i] = facts.NewTenant{ID: t.ID, Code: t.Code, Name: t.Name, Plan: t.Plan}
		for _, u := range t.Users {
			list[i].Users = append(list[i].Users, facts.NewUser{ID: u.ID, ExternalID: u.ExternalID})
		}
	}
	if _, err := tenants.Onboard(ctx, list, demoPerson, "The demo's tenants."); err != nil {
		return fmt.Errorf("demo tenants: %w", err)
	}
	if err := overrides(ctx, a.policies, tenants, doc); err != nil {
		return fmt.Errorf("demo policy: %w", err)
	}
	if err := d.accounts(ctx, a); err != nil {
		return fmt.Errorf("demo accounts: %w", err)
	}
	if d.cmd.Quiet {
		return nil
	}
	return d.makeTokens(ctx, a)
}

// overrides publishes the terms of single tenants as the second version, once they exist.
func overrides(ctx context.Context, store *facts.Policies, tenants *facts.Tenants, doc *policy.Document) error {
	head, err := store.HeadNumber(ctx)
	if err != nil || head != 1 {
		return err
	}
	_, err = policy.NewPublisher(store, tenants).Publish(ctx, policy.Publication{
		Base: 1, Document: doc, Reason: "The largest tenant's own terms.", Actor: demoPerson,
	})
	return err
}

// accounts makes one account per role. Their password is the given one or is made once and kept, readable
// by its owner only, beside the data.
func (d *demoRun) accounts(ctx context.Context, a *app) error {
	kept := filepath.Join(d.cmd.DataDir, "demo-password")
	password := d.cmd.Password
	d.said = "the one of FAIRLANE_DEMO_PASSWORD"
	if password == "" {
		if text, err := os.ReadFile(kept); err == nil {
			password = strings.TrimSpace(string(text))
		} else {
			password = newPassword()
		}
		d.said = password
	}
	if old, err := os.ReadFile(kept); err == nil && strings.TrimSpace(string(old)) == password {
		return nil // the accounts have it already; hashing it again would end their sessions
	}
	hash, err := session.HashPassword(ctx, password)
	if err != nil {
		return err
	}
	var list []access.NewAccount
	for _, role := range access.Roles {
		list = append(list, access.NewAccount{
			Login: string(role), Name: string(role), PasswordHash: hash, Grants: []access.Grant{{Role: role}}, Replace: true,
		})
	}
	if _, err := facts.NewOperators(a.back).EnsureOperators(ctx, demoPerson, "The demo's accounts.", list); err != nil {
		return err
	}
	return os.WriteFile(kept, []byte(password+"\n"), 0o600)
}

// makeTokens gives every tenant's service a token. They are kept, readable by their owner only, beside the
// data, so that a restart makes no new ones.
func (d *demoRun) makeTokens(ctx context.Context, a *app) error {
	path := filepath.Join(d.cmd.DataDir, "demo-tokens.json")
	kept := map[string]string{} // secret by tenant code
	if text, err := os.ReadFile(path); err == nil {
		if json.Unmarshal(text, &kept) != nil {
			kept = map[string]string{}
		}
	}
	tokens := facts.NewTokens(a.back, nil)
	made := 0
	for i, t := range d.platform.Tenants {
		who, err := tokens.Principal(ctx, kept[t.Code])
		switch {
		case err == nil && who.TenantID == t.ID:
			d.tokens[i] = kept[t.Code]
			continue
		case err != nil && control.CodeOf(err) != control.CodeUnauthorized && control.CodeOf(err) != control.CodeForbidden:
			return err
		}
		if d.tokens[i], _, err = tokens.Create(access.WithActor(ctx, demoPerson), t.ID, "demo traffic", time.Time{}); err != nil {
			return err
		}
		kept[t.Code] = d.tokens[i]
		made++
	}
	if made == 0 {
		return nil
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// providers finds the simulated provider, or starts it, and keeps it running until the demo ends.
func (d *demoRun) providers(ctx context.Context, a *app) ([]provider.Provider, func(), error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	launch := simulated.Launch{Dir: d.dir, Exe: exe, Config: d.platform.Providers(demoSeed, "", "")}
	instance, err := simulated.Ensure(ctx, launch)
	if err != nil {
		return nil, nil, fmt.Errorf("simulated provider: %w", err)
	}
	list, done, err := instance.Providers()
	if err != nil {
		return nil, nil, err
	}
	watch, stopWatch := context.WithCancel(context.WithoutCancel(ctx))
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if err := simulated.Keep(watch, launch, a.log); err != nil && watch.Err() == nil {
			a.log.Error("simulated provider is not looked after any more", "error", err)
		}
	}()
	return list, func() {
		stopWatch()
		<-watched
		done()
		if err := simulated.Stop(context.WithoutCancel(ctx), d.dir); err != nil {
			a.log.Warn("simulated provider did not stop", "error", err)
		}
	}, nil
}

type providerCmd struct {
	Dir string `required:"" help:"Folder with its config and journal."`
}

// Run runs the simulated provider until it is told to stop.
func (c *providerCmd) Run(e *env) error {
	return simulated.Main(e.ctx, c.Dir, logger(e.errOut, 0))
}
