package e2e_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"fairlane/control/run"
)

// TestMain is also the program that the demo starts as its simulated provider.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "simulated-provider" {
		os.Exit(run.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(tests{m})
}

// tests closes the browser before anybody looks for what is left running.
type tests struct{ m *testing.M }

func (s tests) Run() int {
	code := s.m.Run()
	if err := closeChromium(); err != nil {
		fmt.Fprintln(os.Stderr, "chromium:", err)
		code = 1
	}
	return code
}
