package storetest

import (
	"fmt"
	"os"
	"testing"
)

// Figure adds a line to the file that FAIRLANE_TEST_FIGURES names, which is printed at the end of the
// whole run; without it the line goes to the test's log. Figures are shown and not judged.
func Figure(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Logf(format, args...)
	path := os.Getenv("FAIRLANE_TEST_FIGURES")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintf(f, format+"\n", args...)
}
