package run

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"fairlane/control/provider"
	"fairlane/store/facts"
)

type serveCmd struct {
	serveSettings
}

// Run serves until it is told to stop.
func (c *serveCmd) Run(e *env) error {
	if err := c.check(); err != nil {
		return err
	}
	return serve(e, &c.serveSettings, platform{
		speed: 1,
		providers: func(context.Context, *app) ([]provider.Provider, func(), error) {
			return nil, func() {}, nil // there is no adapter yet but the demo's
		},
		ready: func(a *app) {
			fmt.Fprintf(e.out, "Fairlane answers at %s\n", a.settings.PublicURL)
			if none, err := facts.NewOperators(a.api).None(e.ctx); err == nil && none {
				fmt.Fprintln(e.out, "Nobody can sign in yet: fairlane user add NAME --role admin")
			}
		},
	})
}

// serve is the life of a serving process.
func serve(e *env, settings *serveSettings, p platform) error {
	log := logger(e.errOut, settings.level())
	listener, err := listen(e.ctx, settings.Listen)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the server closes it first when it has run
	settings.publish(listener.Addr())
	a := &app{settings: settings, platform: p, log: log, replica: replicaName()}
	defer a.close()
	if err := a.open(e.ctx); err != nil {
		return err
	}
	for _, note := range a.stores.notes {
		fmt.Fprintln(e.out, note)
	}
	d, err := a.dispatcher()
	if err != nil {
		return err
	}
	h, hub, err := a.web(e.ctx, d)
	if err != nil {
		return err
	}
	return a.run(e.ctx, listener, h, hub, d)
}

// logger writes JSON lines.
func logger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}
