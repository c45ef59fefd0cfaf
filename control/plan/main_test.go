package plan_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets rapid try more than its default unless -rapid.checks says otherwise.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "250"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
