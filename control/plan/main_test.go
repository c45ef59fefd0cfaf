package plan_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets rapid try more than its default unless -rapid.checks says otherwise.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "250"); err != nil {
		panic(err)
	}
	flag.Parse()
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}
