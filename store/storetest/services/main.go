// Command services starts a private PostgreSQL and Redis for tests, runs a command with their addresses in
// FAIRLANE_TEST_DATABASE_URL and FAIRLANE_TEST_REDIS_URL, and stops both. It is not part of the product.
//
//	services -- go test ./...              runs the command, exits with its code
//	services --hold --env-file FILE        writes the variables to FILE and waits for a signal
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"fairlane/store/embedded"
)

func main() { os.Exit(run()) }

func run() int {
	hold := flag.Bool("hold", false, "wait for a signal instead of running a command")
	envFile := flag.String("env-file", "", "file to which the variables are written")
	flag.Parse()
	if *hold == (flag.NArg() > 0) {
		return fail(errors.New("give either --hold or -- and a command"))
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	dir, err := os.MkdirTemp("", "fairlane-test-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)                      //nolint:errcheck // a temporary folder
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // the database's account passes through
		return fail(err)
	}
	stores, err := embedded.Start(ctx, embedded.Config{DataDir: dir, Logger: slog.New(slog.DiscardHandler), UnsafeNoFsync: true})
	if err != nil {
		return fail(err)
	}
	defer func() {
		stop, end := context.WithTimeout(context.Background(), 10*time.Second)
		defer end()
		if err := stores.Stop(stop); err != nil {
			fail(err)
		}
	}()
	variables := []string{"FAIRLANE_TEST_DATABASE_URL=" + stores.DatabaseURL, "FAIRLANE_TEST_REDIS_URL=" + stores.RedisURL}
	if *envFile != "" {
		if err := writeEnv(*envFile, variables); err != nil {
			return fail(err)
		}
		defer os.Remove(*envFile) //nolint:errcheck // names stores that are gone
	}
	if *hold {
		for _, v := range variables {
			fmt.Println(v)
		}
		select {
		case <-ctx.Done():
			return 0
		case <-stores.Postgres.Done():
			return fail(errors.New("PostgreSQL ended by itself"))
		}
	}
	return command(ctx, flag.Args(), variables)
}

func writeEnv(path string, variables []string) error {
	text := ""
	for _, v := range variables {
		text += quoted(v) + "\n"
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// quoted makes NAME='value', which a shell reads as it stands; the addresses hold no quotes.
func quoted(v string) string {
	for i := range v {
		if v[i] == '=' {
			return v[:i+1] + "'" + v[i+1:] + "'"
		}
	}
	return v
}

// command runs args and forwards signals by ending them politely first.
func command(ctx context.Context, args, variables []string) int {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // the caller's command
	cmd.Env = append(os.Environ(), variables...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	}
	return fail(err)
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "services:", err)
	return 1
}
