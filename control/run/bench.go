package run

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"fairlane/control/provider"
	"fairlane/control/run/bench"
	"fairlane/control/run/demo"
	"fairlane/policy"
	"fairlane/policy/access"
	"fairlane/store/facts"
	"fairlane/web/session"
)

type benchCmd struct {
	Fair     benchFairCmd     `cmd:"" help:"Time of one pick of the whole plan, beside deficit round robin over bare arrays."`
	Page     benchPageCmd     `cmd:"" help:"First byte of the console's pages over many tenants and tasks."`
	Simulate benchSimulateCmd `cmd:"" help:"Speed and memory of the simulator over the embedded trace."`
}

type benchPageCmd struct {
	Tenants int `default:"10000" help:"Tenants to fill the database with."`
	Queued  int `default:"200000" help:"Tasks that wait."`
	Runs    int `default:"100" help:"Requests of each page."`
}

// Run fills a database of its own in a temporary folder, serves the console over it without a scheduler,
// and asks for its pages.
func (c *benchPageCmd) Run(e *env) error {
	if c.Tenants < 1 || c.Tenants > 1_000_000 || c.Queued < 0 || c.Queued > 10_000_000 || c.Runs < 10 || c.Runs > 100_000 {
		return settingError{"bench page", "tenants must be 1 to 1000000, queued 0 to 10000000, runs 10 to 100000"}
	}
	dir, err := os.MkdirTemp("", "fairlane-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	settings := &serveSettings{storeSettings: storeSettings{DataDir: dir, LogLevel: "error"}, Listen: "127.0.0.1:0"}
	const password = "bench-password"
	var platformDoc *policy.Document
	ready := make(chan *app, 1)
	ctx, stop := context.WithCancel(e.ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		served <- serve(&env{ctx: ctx, out: e.errOut, errOut: e.errOut}, settings, platform{
			speed: 1,
			prepare: func(ctx context.Context, a *app) error {
				p, err := demo.New(1)
				if err != nil {
					return err
				}
				platformDoc = roomy(p.Document())
				if err := firstPolicy(ctx, a.policies, a.tenants(), platformDoc, "The benchmark's platform."); err != nil {
					return err
				}
				hash, err := session.HashPassword(ctx, password)
				if err != nil {
					return err
				}
				_, err = facts.NewOperators(a.back).EnsureOperators(ctx, shell, "benchmark", []access.NewAccount{
					{Login: "bench", Name: "bench", PasswordHash: hash, Grants: []access.Grant{{Role: access.Admin}}},
				})
				if err != nil {
					return err
				}
				pool, err := pgxpool.New(ctx, a.stores.databaseURL)
				if err != nil {
					return err
				}
				defer pool.Close()
				return bench.Seed(ctx, a.back, pool, platformDoc, bench.Population{Tenants: c.Tenants, Queued: c.Queued})
			},
			providers: func(context.Context, *app) ([]provider.Provider, func(), error) { return nil, func() {}, nil },
			ready:     func(a *app) { ready <- a },
		})
	}()
	select {
	case err := <-served:
		return err
	case a := <-ready:
		err := c.measure(e, a, password)
		stop()
		if ended := <-served; err == nil {
			err = ended
		}
		return err
	}
}

// roomy takes the tenants' reserves away, whose sum over many tenants no lane could hold, and stops the
// scheduler, so that what waits goes on waiting.
func roomy(d *policy.Document) *policy.Document {
	d = d.Clone()
	d.Tenants = nil
	d.Switches.SchedulingRunning = false
	for i := range d.Plans {
		d.Plans[i].Settings.ReservedUnits = 0
		d.Plans[i].Settings.BurstUnits = max(d.Plans[i].Settings.BurstUnits, d.Plans[i].Settings.MaxRunningUnits)
	}
	return d
}

func (c *benchPageCmd) measure(e *env, a *app, password string) error {
	cookie, err := signIn(e.ctx, a.settings.PublicURL, "bench", password)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(e.ctx, a.stores.databaseURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	return bench.Page(e.ctx, bench.Pages{
		Base: a.settings.PublicURL, Cookie: cookie, Pool: pool, Runs: c.Runs,
		Params: map[string]any{"tenants": c.Tenants, "queued": c.Queued, "runs": c.Runs},
	}, e.out)
}

// signIn returns the session's cookie.
func signIn(ctx context.Context, base, login, password string) (*http.Cookie, error) {
	form := url.Values{"login": {login}, "password": {password}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/sign-in", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := &http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	for _, cookie := range res.Cookies() {
		if res.StatusCode == http.StatusSeeOther && cookie.Value != "" {
			return cookie, nil
		}
	}
	return nil, fmt.Errorf("sign-in answered %d", res.StatusCode)
}
