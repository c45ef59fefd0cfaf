package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"fairlane/control"
	"fairlane/views"
)

// commands is the whole command line.
type commands struct {
	Serve     serveCmd     `cmd:"" help:"Run the platform and its console."`
	Demo      demoCmd      `cmd:"" help:"Run the platform with 60 tenants, simulated providers and traffic from a real trace."`
	Check     checkCmd     `cmd:"" help:"Check the invariants of the database."`
	Estimates estimatesCmd `cmd:"" help:"Show how the estimates of each model compare with what its tasks took."`
	Audit     auditCmd     `cmd:"" help:"Work with the audit chain."`
	Migrate   migrateCmd   `cmd:"" help:"Bring the database to this version's schema."`
	User      userCmd      `cmd:"" help:"Work with the console's accounts."`
	Tenant    tenantCmd    `cmd:"" help:"Work with tenants."`
	Token     tokenCmd     `cmd:"" help:"Work with the API tokens of tenants."`
	Simulate  simulateCmd  `cmd:"" help:"Play a trace of arrivals against policies in virtual time, with the scheduler's own code."`
	Trace     traceCmd     `cmd:"" help:"Work with traces of arrivals."`
	Bench     benchCmd     `cmd:"" help:"Measure against a baseline in the same run; prints JSON lines."`
	Provider  providerCmd  `cmd:"" name:"simulated-provider" hidden:"" help:"Run the simulated provider (started by demo)."`
}

// env is what every command gets.
type env struct {
	ctx    context.Context
	out    io.Writer
	errOut io.Writer
}

// Main runs the command line and returns the exit code: 0 done, 1 failed, 2 a wrong flag or setting,
// 3 a check that found something.
func Main(args []string, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return MainContext(ctx, args, out, errOut)
}

// MainContext is Main for callers that say themselves when to stop.
func MainContext(ctx context.Context, args []string, out, errOut io.Writer) int {
	var cli commands
	code := -1
	parser, err := kong.New(&cli,
		kong.Name("fairlane"),
		kong.Description("Fair scheduling of AI video jobs for many tenants over third-party providers."),
		kong.UsageOnError(),
		kong.Writers(out, errOut),
		kong.Exit(func(c int) { code = c }),
	)
	if err != nil {
		fmt.Fprintln(errOut, "fairlane:", err)
		return 1
	}
	cmd, err := parser.Parse(args)
	if code >= 0 { // --help
		return code
	}
	if err != nil {
		fmt.Fprintln(errOut, "fairlane:", oneLine(err))
		return 2
	}
	err = cmd.Run(&env{ctx: ctx, out: out, errOut: errOut})
	var found foundError
	var setting settingError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &found):
		fmt.Fprintln(errOut, "fairlane:", oneLine(err))
		return 3
	case errors.As(err, &setting):
		fmt.Fprintln(errOut, "fairlane:", oneLine(err))
		return 2
	default:
		fmt.Fprintln(errOut, "fairlane:", oneLine(err))
		return 1
	}
}

// foundError ends a check that worked and found something wrong.
type foundError struct{ what string }

func (e foundError) Error() string { return e.what }

// settingError names a wrong setting.
type settingError struct{ name, problem string }

func (e settingError) Error() string { return e.name + ": " + e.problem }

// oneLine says what went wrong; of what somebody typed every wrong field, in the console's words.
func oneLine(err error) string {
	text := err.Error()
	var told *control.Error
	if errors.As(err, &told) {
		says := told.Message
		if len(told.Fields) > 0 {
			rules := make([]string, len(told.Fields))
			for i, f := range told.Fields {
				rules[i] = f.Field + ": " + views.Rule(context.Background(), f.Key, f.Args)
			}
			says = strings.Join(rules, " ")
		}
		text = strings.Replace(text, told.Error(), says, 1)
	}
	return strings.Join(strings.Fields(text), " ")
}
