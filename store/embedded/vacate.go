package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// vacate waits until no server process of an earlier run works in the cluster (its parent may have been
// killed a moment ago) and then removes its pid file, which may name a process that is somebody else's by
// now. The caller holds the lock, so nothing can start there meanwhile.
func vacate(ctx context.Context, cluster string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for polls := 0; ; polls++ {
		at := inside(cluster)
		if len(at) == 0 {
			break
		}
		switch polls {
		case 0:
			signal(at, syscall.SIGINT)
		case 250: // five seconds
			signal(at, syscall.SIGQUIT)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cluster %s: processes %v of an earlier run do not end", cluster, at)
		case <-tick.C:
		}
	}
	if err := os.Remove(filepath.Join(cluster, "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cluster %s: %w", cluster, err)
	}
	return nil
}

// inside lists the processes of the server whose working directory is the cluster; each of them sits there.
func inside(cluster string) []int {
	real, err := filepath.EvalSymlinks(cluster)
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		cwd, err := os.Readlink(filepath.Join("/proc", entry.Name(), "cwd"))
		if err != nil || cwd != real {
			continue
		}
		if name, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "comm")); err == nil && strings.HasPrefix(string(name), "postgres") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func signal(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig) // it may just have ended
	}
}
