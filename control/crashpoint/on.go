//go:build crashpoint

package crashpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

var hits atomic.Int64

// Hit kills the process when FAIRLANE_CRASHPOINT names this point and its count has come.
func Hit(name string) {
	want, count, _ := strings.Cut(os.Getenv("FAIRLANE_CRASHPOINT"), ":")
	if want != name {
		return
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		n = 1
	}
	if hits.Add(1) >= n {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
