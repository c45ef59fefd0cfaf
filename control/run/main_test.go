package run

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asProgram makes the test binary the program itself, so that tests can kill a real process.
const asProgram = "FAIRLANE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}
