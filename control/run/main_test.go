package run

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asProgram makes the test binary the program itself, so that tests can kill a real process.
const asProgram = "FAIRLANE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	// The demo starts its provider from the same binary, with an environment of its own.
	if os.Getenv(asProgram) != "" || len(os.Args) > 1 && os.Args[1] == "simulated-provider" {
		os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}
